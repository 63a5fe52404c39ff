"""Every rule of the sampling protocol, restated with plain sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.source import open_graph
from conekg.query.shape import NEGATION_STRUCTURES, STRUCTURES, Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe
from conekg.sampling.attempt import REASONS
from conekg.sampling.protocol import PRESETS, PathEnd, SamplingProtocol
from conekg.sampling.query_set import QuerySet, load_query_set, save_query_set
from conekg.sampling.sample import links_of, sample_query_set
from oracle import Oracle

PLAIN = SamplingProtocol("plain", cap=12, train_cap=12, train_negation_cap=12, patience=20_000)
CAP_OF = {"train": "train_cap", "valid": "cap", "test": "cap"}
FOURTEEN = [shape for name, shape in STRUCTURES.items() if not name.endswith("-DM")]
UNNAMED = shape_of(
    Project(
        And((Or((Project(Anchor(0), 0), Project(Project(Anchor(0), 0), 0))), Not(Anchor(0)))), 0
    )
)

# ConE's table in the reference: mean hard answers of the official NELL test queries.
NELL_HARD = {
    "1p": 1.59,
    "2p": 14.86,
    "3p": 17.52,
    "2i": 5.71,
    "3i": 6.01,
    "ip": 17.41,
    "pi": 11.85,
    "2u": 14.85,
    "up": 19.05,
    "2in": 12.87,
    "3in": 11.13,
    "inp": 12.90,
    "pin": 15.97,
    "pni": 12.95,
}


def oracles(graph: KnowledgeGraph, split: Split) -> tuple[Oracle | None, Oracle]:
    place = SPLITS.index(split)

    def nested(count: int) -> Oracle:
        edges = np.concatenate([graph.edges(part) for part in SPLITS[:count]])
        return Oracle(edges.tolist(), graph.num_entities)

    return (nested(place) if place else None), nested(place + 1)


def same(left: QuerySet, right: QuerySet) -> bool:
    return all(
        np.array_equal(a.anchors, b.anchors)
        and np.array_equal(a.relations, b.relations)
        and np.array_equal(a.easy.values, b.easy.values)
        and np.array_equal(a.hard.offsets, b.hard.offsets)
        and np.array_equal(a.hard.values, b.hard.values)
        for a, b in zip(left.blocks, right.blocks, strict=True)
    )


@pytest.mark.parametrize("split", SPLITS)
def test_every_sampled_query_keeps_every_rule(random_graph: KnowledgeGraph, split: Split) -> None:
    shapes = [*FOURTEEN, UNNAMED]
    sampled = sample_query_set(random_graph, split, PLAIN, 3, shapes=shapes, count=25)
    small, full = oracles(random_graph, split)
    assert len(sampled.query_set) > 100
    for block in sampled.query_set:
        rows = np.hstack([block.anchors, block.relations])
        assert len(np.unique(rows, axis=0)) == len(block)
        for row in range(len(block)):
            query = block.query(row)
            answers = full.answer(query)
            known = small.answer(query) if small else set()
            assert block.easy[row].tolist() == sorted(known)
            assert block.hard[row].tolist() == sorted(answers - known)
            assert answers - known
            if block.shape == STRUCTURES["1p"]:
                continue
            assert max(len(answers - known), len(known - answers)) <= 12
            if small and block.shape.name in NEGATION_STRUCTURES:
                assert known - answers


@pytest.mark.parametrize("split", ["valid", "test"])
def test_shapes_that_can_retract_no_answer_need_no_retracted_answer(
    random_graph: KnowledgeGraph, split: Split
) -> None:
    other_than = shape_of(And((Project(Anchor(0), 0), Not(Anchor(1)))))
    shapes = [STRUCTURES["2u-DM"], STRUCTURES["up-DM"], other_than, UNNAMED]
    sampled = sample_query_set(random_graph, split, PLAIN, 3, shapes=shapes, count=15)
    small, full = oracles(random_graph, split)
    assert small is not None
    assert [len(block) for block in sampled.query_set] == [15] * len(shapes)
    for block in sampled.query_set:
        for row in range(len(block)):
            known, answers = (oracle.answer(block.query(row)) for oracle in (small, full))
            assert block.easy[row].tolist() == sorted(known)
            assert block.hard[row].tolist() == sorted(answers - known)
            assert 0 < len(answers - known) <= 12
            assert known <= answers


def test_the_cap_is_on_hard_and_on_retracted_answers(random_graph: KnowledgeGraph) -> None:
    shapes = [STRUCTURES[name] for name in ("2in", "pin", "pni")]
    sampled = sample_query_set(
        random_graph, "test", replace(PLAIN, cap=1), 3, shapes=shapes, count=60
    )
    small, full = oracles(random_graph, "test")
    assert small is not None
    assert len(sampled.query_set) > 30
    for block in sampled.query_set:
        for row in range(len(block)):
            known, answers = (oracle.answer(block.query(row)) for oracle in (small, full))
            assert len(answers - known) == len(known - answers) == 1


def test_training_queries_without_and_with_negation_have_caps_of_their_own(
    random_graph: KnowledgeGraph,
) -> None:
    protocol = replace(PLAIN, cap=2, train_cap=None, train_negation_cap=5)
    shapes = [STRUCTURES["3p"], STRUCTURES["inp"]]

    def most(split: Split) -> list[int]:
        sampled = sample_query_set(random_graph, split, protocol, 0, shapes=shapes, count=60)
        return [int(block.hard.lengths.max()) for block in sampled.query_set]

    paths, negations = most("train")
    assert paths > 12
    assert negations == 5
    assert most("test") == [2, 2]


def test_training_paths_are_walked_from_the_end_that_the_protocol_names(
    random_graph: KnowledgeGraph,
) -> None:
    def sample(split: Split, name: str, end: PathEnd) -> QuerySet:
        protocol, shapes = replace(PLAIN, train_paths_from=end), [STRUCTURES[name]]
        found = sample_query_set(random_graph, split, protocol, 0, shapes=shapes, count=40)
        assert found.query_set.paths_from == (end if split == "train" else None)
        return found.query_set

    for split, name, differ in (
        ("train", "2p", True),
        ("train", "2i", False),
        ("test", "2p", False),
    ):
        anchor, answer = (sample(split, name, end) for end in get_args(PathEnd))
        assert same(anchor, answer) != differ, (split, name)


def test_a_link_that_an_earlier_split_holds_is_no_query(film_graph: KnowledgeGraph) -> None:
    edges = {split: film_graph.edges(split) for split in SPLITS}
    twice = edges | {"valid": np.concatenate([edges["valid"], edges["train"][:2]])}
    link = [STRUCTURES["1p"]]
    for graph in (film_graph, KnowledgeGraph("twice", film_graph.vocabulary, twice)):
        sampled = sample_query_set(graph, "valid", PLAIN, 0, shapes=link)
        assert len(sampled.query_set) == len(edges["valid"])
        assert (sampled.query_set.blocks[0].hard.lengths > 0).all()


def test_reports_account_for_every_attempt(random_graph: KnowledgeGraph) -> None:
    sampled = sample_query_set(random_graph, "test", PLAIN, 0, count=20)
    for block, report in zip(sampled.query_set, sampled.reports, strict=True):
        assert report.shape == block.shape
        assert report.found == len(block)
        assert report.shortfall == 20 - len(block)
        assert set(report.rejected) <= set(REASONS.values())
        assert 0 not in report.rejected.values()
        assert report.mean_hard == pytest.approx(block.hard.lengths.mean())
        assert report.mean_easy == pytest.approx(block.easy.lengths.mean())
        if report.shape != STRUCTURES["1p"]:
            assert report.attempts == report.found + sum(report.rejected.values())
    reasons = set().union(*(report.rejected for report in sampled.reports))
    assert {"identical branches", "no hard answer", "no retracted answer", "duplicate"} <= reasons


def test_the_set_depends_on_the_seed_and_not_on_workers_or_other_shapes(
    random_graph: KnowledgeGraph,
) -> None:
    shapes = [STRUCTURES["2i"], STRUCTURES["pin"]]

    def sample(seed: int, workers: int, chosen: list[Shape]) -> QuerySet:
        return sample_query_set(
            random_graph, "valid", PLAIN, seed, shapes=chosen, count=60, workers=workers
        ).query_set

    one = sample(0, 1, shapes)
    assert same(one, sample(0, 3, shapes))
    assert same(QuerySet("valid", (one.block("pin"),)), sample(0, 2, [STRUCTURES["pin"]]))
    assert not same(one, sample(1, 1, shapes))


def test_fewer_queries_are_the_first_of_more(random_graph: KnowledgeGraph) -> None:
    few, many = (
        sample_query_set(random_graph, "train", PLAIN, 0, shapes=[STRUCTURES["3p"]], count=count)
        for count in (10, 40)
    )
    first = many.query_set.blocks[0].take(np.arange(10))
    assert np.array_equal(few.query_set.blocks[0].anchors, first.anchors)
    assert few.reports[0].attempts < many.reports[0].attempts


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("cap", [None, 2])
def test_links_are_enumerated(random_graph: KnowledgeGraph, split: Split, cap: int | None) -> None:
    tails: dict[tuple[int, int], set[int]] = {}
    for head, relation, tail in random_graph.edges(split).tolist():
        tails.setdefault((head, relation), set()).add(tail)
    expected = {link for link, found in tails.items() if cap is None or len(found) <= cap}
    heads, relations, left_out = links_of(random_graph, split, cap)
    assert set(zip(heads.tolist(), relations.tolist(), strict=True)) == expected
    assert len(heads) == len(expected)
    assert left_out == len(tails) - len(expected)
    protocol = replace(PLAIN, **{"cap": 1, "train_cap": 1, CAP_OF[split]: cap})
    sampled = sample_query_set(random_graph, split, protocol, 0, shapes=[STRUCTURES["1p"]])
    assert sampled.reports[0].found == len(expected)
    assert sampled.reports[0].wanted is None


def test_a_choice_of_links_is_seeded(random_graph: KnowledgeGraph) -> None:
    def sample(seed: int) -> QuerySet:
        shapes = [STRUCTURES["1p"]]
        return sample_query_set(
            random_graph, "train", PLAIN, seed, shapes=shapes, count=9
        ).query_set

    assert len(sample(0)) == 9
    assert same(sample(0), sample(0))
    assert not same(sample(0), sample(1))


def test_a_set_of_all_links_has_no_shortfall(film_graph: KnowledgeGraph) -> None:
    (report,) = sample_query_set(film_graph, "train", PLAIN, 0, shapes=[STRUCTURES["1p"]]).reports
    assert report.wanted is None
    assert report.shortfall == 0


def test_a_shape_that_is_asked_for_twice_is_refused(film_graph: KnowledgeGraph) -> None:
    shapes = [STRUCTURES[name] for name in ("1p", "2p", "2p")]
    with pytest.raises(
        ConfigError, match=r"^shape 2p is asked for 2 times; name each shape once$"
    ) as caught:
        sample_query_set(film_graph, "train", PLAIN, 0, shapes=shapes, count=1)
    assert caught.value.key == "shapes"


def test_a_shape_the_graph_hardly_holds_is_given_up_and_reported(
    film_graph: KnowledgeGraph,
) -> None:
    sampled = sample_query_set(
        film_graph, "train", PLAIN, 0, shapes=[STRUCTURES["2i"]], count=1_000
    )
    report = sampled.reports[0]
    assert 0 < report.found < 100
    assert report.shortfall == 1_000 - report.found
    assert report.attempts >= PLAIN.patience


def test_a_shape_with_a_fair_yield_is_not_given_up(random_graph: KnowledgeGraph) -> None:
    hasty = replace(PLAIN, patience=2048, min_yield=0.05)
    (report,) = sample_query_set(
        random_graph, "train", hasty, 0, shapes=[STRUCTURES["3p"]], count=5_000
    ).reports
    assert report.found == 5_000
    assert report.attempts > 3 * hasty.patience


def test_a_graph_without_edges_gives_no_queries(film_graph: KnowledgeGraph) -> None:
    none = np.zeros((0, 3), dtype=np.int32)
    empty = KnowledgeGraph("empty", film_graph.vocabulary, dict.fromkeys(SPLITS, none))
    sampled = sample_query_set(empty, "train", PLAIN, 0, count=5)
    assert len(sampled.query_set) == 0
    assert [report.found for report in sampled.reports] == [0] * len(sampled.reports)


def test_a_split_without_held_out_edges_takes_no_attempts(random_graph: KnowledgeGraph) -> None:
    edges = {split: random_graph.edges(split) for split in SPLITS}
    edges["valid"] = np.empty((0, 3), np.int32)
    graph = KnowledgeGraph("unsplit", random_graph.vocabulary, edges)
    for split, attempts in (("train", True), ("valid", False), ("test", True)):
        sampled = sample_query_set(graph, split, PLAIN, 0, shapes=FOURTEEN[1:], count=2)
        assert all(bool(report.attempts) == attempts for report in sampled.reports)
        assert len(sampled.query_set.blocks) == 13
        assert bool(len(sampled.query_set)) == attempts


def test_the_universe_and_negation_at_the_root_are_sampled(random_graph: KnowledgeGraph) -> None:
    shape = shape_of(And((Project(Universe(), 0), Not(Project(Anchor(0), 0)))))
    protocol = replace(PLAIN, cap=None, train_cap=None, train_negation_cap=None)
    block = sample_query_set(
        random_graph, "train", protocol, 0, shapes=[shape, shape_of(Not(Anchor(0)))], count=5
    ).query_set.blocks
    full = oracles(random_graph, "train")[1]
    for part in block:
        assert len(part) == 5
        for row in range(5):
            assert set(part.hard[row].tolist()) == full.answer(part.query(row))


def test_progress_is_told_shape_by_shape(random_graph: KnowledgeGraph) -> None:
    told = []
    shapes = [STRUCTURES["1p"], STRUCTURES["2p"]]
    sample_query_set(
        random_graph, "train", PLAIN, 0, shapes=shapes, count=7, progress=lambda *a: told.append(a)
    )
    assert told[0] == (shapes[0], 7, 7)
    assert told[-1] == (shapes[1], 7, 7)


@pytest.mark.parametrize("count", [0, 2.5])
def test_a_count_that_is_no_number_of_queries_is_refused(
    random_graph: KnowledgeGraph, count: int
) -> None:
    with pytest.raises(ConfigError, match=f"count is {count}; it must be a whole number") as caught:
        sample_query_set(random_graph, "train", PLAIN, 0, count=count)
    assert caught.value.key == "count"


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_that_is_no_whole_number_is_refused(random_graph: KnowledgeGraph, seed: int) -> None:
    with pytest.raises(ConfigError, match=f"seed is {seed}; it must be a whole number"):
        sample_query_set(random_graph, "train", PLAIN, seed, shapes=[STRUCTURES["1p"]], count=1)


def test_a_seed_may_be_a_numpy_integer(random_graph: KnowledgeGraph, tmp_path: Path) -> None:
    shapes = [STRUCTURES["2p"]]
    drawn = np.random.default_rng(0).integers(1 << 30)
    sampled = sample_query_set(random_graph, "train", PLAIN, drawn, shapes=shapes, count=5)
    save_query_set(tmp_path / "train.arrow", sampled.query_set)
    again = sample_query_set(random_graph, "train", PLAIN, int(drawn), shapes=shapes, count=5)
    assert same(load_query_set(tmp_path / "train.arrow"), again.query_set)


def test_zero_workers_are_refused(random_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match="workers is 0; it must be 1 or more"):
        sample_query_set(
            random_graph, "train", PLAIN, 0, shapes=[STRUCTURES["2i"]], count=1, workers=0
        )


@pytest.mark.slow
def test_a_fresh_nell_test_set_has_the_published_distribution(benchmark_data) -> None:
    graph = open_graph(benchmark_data / "NELL")
    sampled = sample_query_set(graph, "test", PRESETS["nell995"], 0)
    for report in sampled.reports:
        assert report.found == (17_021 if report.shape.name == "1p" else 4_000)
        assert report.mean_hard == pytest.approx(NELL_HARD[report.shape.name], rel=0.1)
    valid = sample_query_set(graph, "valid", PRESETS["nell995"], 0, shapes=[STRUCTURES["1p"]])
    assert len(valid.query_set) == 16_910
