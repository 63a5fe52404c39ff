"""Calibrating: full fits on a tiny graph, and fits on invented samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tiny
from conekg.answering import calibrate as calibrate_module
from conekg.answering.calibrate import _Sample as Sample
from conekg.answering.calibrate import fit_calibration, fit_count
from conekg.answering.calibration import Calibration, ScoreCurve
from conekg.answering.curves import Curve, fit_curve, foreseen, surprise
from conekg.errors import ConfigError, QueryError
from conekg.graph.ragged import Ragged
from conekg.model.catalog import build_model
from conekg.query.shape import STRUCTURES, grounded
from conekg.query.tree import Anchor, Not, Query
from conekg.sampling.query_set import QueryBlock, QuerySet
from oracle import Oracle


@pytest.mark.parametrize("name", ["cone", "gqe", "box", "beta"])
def test_every_model_is_calibrated(name: str) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model(name, graph.num_entities, graph.num_relations, tiny.CONFIGS[name], 0).eval()
    calibration = fit_calibration(model, graph, queries, depth=10, max_queries=8)
    assert 0 <= calibration.error < 0.5
    assert 0 < calibration.known_kept <= 1
    if name == "gqe":
        assert calibration.count is None, "points have no size"
    if calibration.count is not None:  # sizes of an untrained model may be uninformative
        assert calibration.count.factor >= 1
    for scores in (calibration.predicted, *calibration.predicted_of.values()):
        assert 0 <= scores.curve.y[0] <= scores.curve.y[-1] <= 1
    supported = sum(
        min(8, len(block))
        for block in queries
        if name in ("cone", "beta") or "n" not in block.shape.name
    )
    assert calibration.num_queries == supported
    heard: list[tuple[int, int]] = []
    again = fit_calibration(
        model, graph, queries, depth=10, max_queries=8, progress=lambda *told: heard.append(told)
    )
    assert again == calibration
    assert (heard[0], heard[-1]) == ((0, supported), (supported, supported))
    assert heard == sorted(set(heard))
    assert len(heard) > 2


def test_hits_are_what_the_larger_graph_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    one_hop = QuerySet("valid", (queries.block("1p"),))
    seen: dict[str, np.ndarray] = {}

    def remember(x: np.ndarray, y: np.ndarray) -> Curve:
        if len(y) >= len(seen.get("y", ())):  # halves are fitted too; keep the largest fit
            seen.update(x=x, y=y)
        return fit_curve(x, y)

    monkeypatch.setattr("conekg.answering.calibrate.fit_curve", remember)
    # Deep enough to reach every entity: then each hard answer is found exactly once.
    monkeypatch.setattr("conekg.answering.calibrate._fit_counts", lambda *_: (None, {}))
    calibration = fit_calibration(model.eval(), graph, one_hop, depth=graph.num_entities)
    block = one_hop.blocks[0]
    assert seen["y"].sum() == block.hard.lengths.sum()
    assert len(seen["y"]) == len(block) * graph.num_entities - block.easy.lengths.sum()
    assert calibration.known_kept == 1.0  # nothing negated, nothing lost


def test_missing_answers_are_what_the_larger_graph_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    seen: list[Sample] = []
    monkeypatch.setattr(
        calibrate_module, "_fit_counts", lambda samples, _: seen.extend(samples) or (None, {})
    )
    blocks = tuple(queries.block(name) for name in ("1p", "2in", "pni"))
    fit_calibration(model.eval(), graph, QuerySet("valid", blocks), max_queries=999)
    for block, sample in zip(blocks, seen, strict=True):
        assert sample.missing.tolist() == block.hard.lengths.tolist()
    assert seen[0].known == 0, "nothing is lost without a negation"
    assert seen[1].kept < seen[1].known


def test_entities_that_facts_rule_out_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    block = queries.block("2in")
    seen: list[int] = []
    monkeypatch.setattr(
        calibrate_module, "fit_curve", lambda x, y: seen.append(len(x)) or fit_curve(x, y)
    )
    monkeypatch.setattr(calibrate_module, "_fit_counts", lambda *_: (None, {}))
    fit_calibration(
        model.eval(), graph, QuerySet("valid", (block,)), depth=graph.num_entities, max_queries=999
    )
    oracle = Oracle(graph.edges("train").tolist(), graph.num_entities)
    left = 0
    for place in range(len(block)):
        query = block.query(place)
        (negated,) = [part for part in query.operands if isinstance(part, Not)]
        left += graph.num_entities - len(oracle.answer(query) | oracle.answer(negated.operand))
    assert max(seen) == left


def every_other(number: int) -> np.ndarray:
    """[number] a random half of the items."""
    return np.random.default_rng(0).permutation(number) % 2 == 0


def test_informative_sizes_get_a_count_curve() -> None:
    answers = np.arange(1.0, 201.0)
    curve = fit_count(np.sqrt(answers), np.log1p(answers), every_other(200))
    assert curve is not None
    assert 1.0 <= curve.factor < 1.1
    assert curve.missing(10.0) == pytest.approx(100, rel=0.1)


def test_uninformative_sizes_get_no_count_curve() -> None:
    """If larger regions have fewer answers, no rising curve is better than a constant."""
    answers = np.array([1.0] * 90 + [500.0] * 10)
    assert fit_count(-answers, np.log1p(answers), every_other(100)) is None
    # If all have the same number, the constant is as good.
    assert fit_count(np.arange(6.0), np.full(6, 2.0), every_other(6)) is None
    assert fit_count(np.array([1.0]), np.array([3.0]), every_other(1)) is None
    assert fit_count(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([True, True])) is None


def test_a_shape_with_uninformative_sizes_gets_a_constant_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The constant is the median number of missing answers, the same at every size."""
    generator = np.random.default_rng(5)
    usual = {"e.r": 1.0, "e.r.r": 9.0}
    samples = []
    for region, missing in usual.items():
        sizes = generator.uniform(1, 2, 60)
        lacks = missing * generator.choice([0.5, 1.0, 1.0, 1.0, 2.0], 60)
        samples.append(sample_of(sizes, sizes, regions=(region,), sizes=sizes, missing=lacks))
    monkeypatch.setattr(calibrate_module, "fit_count", lambda *_: None)
    fitted = fit_to(monkeypatch, *samples)
    for region, missing in usual.items():
        curve = fitted.sizes(region)
        assert curve is not None
        assert [curve.missing(size) for size in (0.5, 1.5, 3.0)] == pytest.approx([missing] * 3)
        assert curve.factor == pytest.approx(1.0)


def test_training_queries_cannot_calibrate() -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["train"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    with pytest.raises(ConfigError, match="training queries cannot calibrate"):
        fit_calibration(model, graph, queries)


def test_one_query_a_shape_is_enough_for_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to compare curves on, so there are no curves by shape and no counts."""
    one = np.ones(1)
    samples = [sample_of(one, one, regions=(r,), sizes=one, missing=one) for r in ("e.r", "e.r.r")]
    fitted = fit_to(monkeypatch, *samples)
    assert (fitted.count, fitted.count_of, fitted.predicted_of) == (None, {}, {})
    assert fitted.predicted.probability(1.0, 0.0) == 1.0


def test_known_answers_of_negations_can_be_lost() -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    negated = QuerySet("valid", (queries.block("2in"),))
    calibration = fit_calibration(model.eval(), graph, negated)
    assert calibration.known_kept < 1.0
    assert calibration.kept(("((!e.r) & e.r)",)) == calibration.known_kept
    both = fit_calibration(model, graph, QuerySet("valid", (*negated, queries.block("pni"))))
    edges = [edge for split in ("train", "valid") for edge in graph.edges(split).tolist()]
    oracle = Oracle(edges, graph.num_entities)
    shares = {}
    for block in (queries.block("2in"), queries.block("pni")):
        known = [set(block.easy[place].tolist()) for place in range(len(block))]
        kept = [known[place] & oracle.answer(block.query(place)) for place in range(len(block))]
        shares[block.shape.name] = (sum(map(len, kept)) + 1) / (sum(map(len, known)) + 1)
    assert shares["2in"] != shares["pni"]
    for regions, name in (("((!e.r) & e.r)", "2in"), ("((!e.r.r) & e.r)", "pni")):
        assert both.kept((regions,)) == pytest.approx(shares[name])
    assert both.kept(("(!e.r)",)) == both.known_kept, "what has not been seen, by all that was"


def test_answers_that_no_fact_can_undo_say_nothing_about_those_that_can() -> None:
    """A union by De Morgan's law has negations, but keeps every answer."""
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    negated, union = queries.block("2in"), queries.block("2u")
    by_law = replace(union, shape=STRUCTURES["2u-DM"])
    alone = fit_calibration(model.eval(), graph, QuerySet("valid", (negated,)))
    assert alone.known_kept < 1.0
    both = fit_calibration(model, graph, QuerySet("valid", (negated, by_law)))
    assert both.known_kept == alone.known_kept
    assert both.kept_of == alone.kept_of


def test_easy_answers_of_a_file_that_the_graph_lacks_are_not_lost_to_negations() -> None:
    """Files of queries can list answers that are none on the graph; no negation undid them."""
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    block = queries.block("1p")
    rows = []
    for place in range(len(block)):
        answers = set(block.easy[place].tolist()) | set(block.hard[place].tolist())
        wrong = min(set(range(graph.num_entities)) - answers)
        rows.append(sorted([*block.easy[place].tolist(), wrong]))
    wrong_block = replace(block, easy=Ragged.from_rows(rows))
    fitted = fit_calibration(
        model.eval(), graph, QuerySet("valid", (wrong_block, queries.block("2in")))
    )
    plain = fit_calibration(model.eval(), graph, QuerySet("valid", (queries.block("2in"),)))
    assert fitted.known_kept == plain.known_kept


def altered(block: QueryBlock, alter: Callable[[Query], Query]) -> QueryBlock:
    """Each query of a block altered, to queries of one shape, with its answers left as they are."""
    queries = [grounded(alter(block.query(place))) for place in range(len(block))]
    return replace(
        block,
        shape=queries[0].shape,
        anchors=np.array([query.entity_ids for query in queries], dtype=np.int32),
        relations=np.array([query.relation_ids for query in queries], dtype=np.int32),
    )


def test_parts_that_facts_leave_empty_change_no_calibration() -> None:
    """They are dropped before a question is answered."""
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    block, path = queries.block("1p"), queries.block("2p")
    # Person 0 is known to live in a town, so nobody there is an answer.
    head, relation_id, tail = next(edge for edge in graph.edges("train").tolist() if edge[1] == 0)
    empty = Anchor(tail) & ~Anchor(head).project(relation_id)
    possible = Anchor(head) & ~Anchor(head).project(relation_id)
    plain = fit_calibration(model.eval(), graph, QuerySet("valid", (block, path)))
    for part in (empty, empty.project(1), (empty.project(1) & Anchor(3)).project(2)):
        same = tuple(altered(each, lambda query, part=part: query | part) for each in (block, path))
        assert fit_calibration(model, graph, QuerySet("valid", same)) == plain
        negated = altered(path, lambda query, part=part: query & ~part.project(0))
        assert fit_calibration(model, graph, QuerySet("valid", (block, negated))) == plain
    other = (altered(block, lambda query: query | possible), path)
    assert fit_calibration(model, graph, QuerySet("valid", other)) != plain


def test_queries_of_one_shape_may_lack_different_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    head, relation_id, tail = next(edge for edge in graph.edges("train").tolist() if edge[1] == 0)
    block = queries.block("1p")
    names = iter([tail, head] * len(block))
    mixed = altered(
        block,
        lambda query: query | (Anchor(next(names)) & ~Anchor(head).project(relation_id)).project(2),
    )
    seen: list[Sample] = []
    monkeypatch.setattr(
        calibrate_module, "_fit_counts", lambda samples, _: seen.extend(samples) or (None, {})
    )
    fit_calibration(model.eval(), graph, QuerySet("valid", (mixed,)))
    assert [sample.regions for sample in seen] == [("e.r",), ("e.r", "((!e.r) & e).r")]
    assert [sample.num_queries for sample in seen] == [(len(block) + 1) // 2, len(block) // 2]
    # Only a single region has a size that says how many answers are missing.
    assert seen[0].missing.tolist() == block.hard.lengths[::2].tolist()
    assert seen[1].missing.tolist() == []


def test_queries_that_name_their_answers_do_not_calibrate() -> None:
    """The named entity always is an answer, as queries without any are not sampled."""
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    block = queries.block("1p")
    plain = fit_calibration(model.eval(), graph, QuerySet("valid", (block,)))
    answers = iter([int(block.hard[place][0]) for place in range(len(block))])
    named = altered(block, lambda query: query & Anchor(next(answers)))
    assert fit_calibration(model, graph, QuerySet("valid", (block, named))) == plain
    with pytest.raises(QueryError, match="can calibrate 'cone'"):
        fit_calibration(model, graph, QuerySet("valid", (named,)))


def test_a_name_that_is_excluded_is_no_part_of_the_region() -> None:
    """Leaving out a known answer changes neither the missing ones nor how they rank."""
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    block = queries.block("1p")
    block = block.take(np.flatnonzero(block.easy.lengths))
    plain = fit_calibration(model.eval(), graph, QuerySet("valid", (block,)))
    known = iter([int(block.easy[place][0]) for place in range(len(block))])
    without = altered(block, lambda query: query & ~Anchor(next(known)))
    assert fit_calibration(model, graph, QuerySet("valid", (without,))) == plain


def test_calibrating_without_supported_queries_is_refused() -> None:
    graph = tiny.tiny_graph()
    model = build_model("gqe", graph.num_entities, graph.num_relations, tiny.CONFIGS["gqe"], 0)
    block = tiny.tiny_queries()["valid"].block("2in")
    assert block.shape == STRUCTURES["2in"]
    with pytest.raises(QueryError, match="can calibrate 'gqe'"):
        fit_calibration(model, graph, QuerySet("valid", (block,)))
    with pytest.raises(QueryError, match="there are no valid queries to calibrate 'gqe' on"):
        fit_calibration(model, graph, QuerySet("valid", ()))


def test_scores_are_taken_above_the_background_if_that_predicts_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(1)
    backgrounds = generator.normal(0, 20, 4000)
    above = generator.normal(0, 2, 4000)
    hits = (generator.uniform(size=4000) < 1 / (1 + np.exp(-2 * above))).astype(float)
    half = np.arange(4000) < 1000
    surprises = [
        surprise(foreseen(scores, hits, half), hits).mean()
        for scores in (above, above + backgrounds)
    ]
    assert surprises[0] < 0.9 * surprises[1]
    # Whichever kind of score predicts the held-out half better is chosen.
    for scores, is_relative in ((above + backgrounds, True), (above, False)):
        sample = sample_of(scores, hits, backgrounds)
        fitted = fit_to(monkeypatch, sample).predicted
        assert fitted.relative == is_relative
        assert fitted.curve.x == pytest.approx(fit_curve(above, hits).x)
    relative = ScoreCurve(Curve((0.0, 2.0), (0.0, 1.0)), relative=True, error=0.0)
    assert relative.probability(11.0, 10.0) == 0.5
    assert replace(relative, relative=False).probability(11.0, 10.0) == 1.0


def sample_of(
    scores: np.ndarray,
    hits: np.ndarray,
    backgrounds: np.ndarray | float = 0.0,
    *,
    regions: tuple[str, ...] = ("e.r",),
    sizes: np.ndarray | None = None,
    missing: np.ndarray | None = None,
) -> Sample:
    """A sample of queries of one shape, with one score per query."""
    number, none = len(scores), np.empty(0)
    return Sample(
        regions=regions,
        num_queries=number,
        scores=scores,
        backgrounds=np.broadcast_to(backgrounds, scores.shape),
        hits=hits,
        owners=np.arange(number),
        known=0,
        kept=0,
        sizes=none if sizes is None else sizes,
        missing=none if missing is None else missing,
    )


def fit_to(monkeypatch: pytest.MonkeyPatch, *samples: Sample) -> Calibration:
    """The calibration fitted on the given samples in place of a model's."""
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    blocks = [queries.block(name) for name in ("1p", "2p", "2i", "3i")[: len(samples)]]
    model = build_model("gqe", graph.num_entities, graph.num_relations, tiny.CONFIGS["gqe"], 0)
    left = iter(samples)
    monkeypatch.setattr(calibrate_module, "_examine", lambda *_: next(left))
    return fit_calibration(model, graph, QuerySet("valid", tuple(blocks)))


def test_a_shape_whose_scores_mean_something_else_has_a_curve_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Links are likely from a score of 0, paths from 3; the paths come in two samples."""
    generator = np.random.default_rng(2)
    samples = []
    for regions, middle in ((("e.r",), 0.0), (("e.r.r",), 3.0), (("e.r.r",), 3.0)):
        scores = generator.normal(1.5, 2, 3000)
        hits = (generator.uniform(size=3000) < 1 / (1 + np.exp(2 * (middle - scores)))).astype(
            float
        )
        samples.append(sample_of(scores, hits, regions=regions))
    fitted = fit_to(monkeypatch, *samples)
    assert set(fitted.predicted_of) == {"e.r", "e.r.r"}
    for regions, middle in ((("e.r",), 0.0), (("e.r.r",), 3.0)):
        own = fitted.scores(regions)
        assert own.probability(middle, 0.0) == pytest.approx(0.5, abs=0.08)
        assert own.error < 0.05
    assert fitted.error < 0.05
    # For an unseen shape, the error is that of the curve of all shapes on these.
    unseen = fitted.scores(("e.r", "e.r"))
    assert unseen == fitted.predicted
    assert unseen.error > 0.15
    pooled = np.concatenate([samples[1].scores, samples[2].scores])
    truth = np.concatenate([samples[1].hits, samples[2].hits])
    assert fitted.predicted_of["e.r.r"].curve == fit_curve(pooled, truth)


def test_shapes_that_are_alike_share_a_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few cases of a shape say less than many of another shape with the same curve."""
    generator = np.random.default_rng(3)
    samples = []
    for regions, number in ((("e.r",), 4000), (("e.r.r",), 30)):
        scores = generator.normal(0, 2, number)
        hits = (generator.uniform(size=number) < 1 / (1 + np.exp(-scores))).astype(float)
        samples.append(sample_of(scores, hits, regions=regions))
    fitted = fit_to(monkeypatch, *samples)
    assert "e.r.r" not in fitted.predicted_of
    assert fitted.scores(("e.r.r",)) == fitted.predicted


def test_shapes_of_a_single_query_are_judged_by_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all of them were in one half, the other would have no curve to predict them by."""
    generator = np.random.default_rng(6)
    samples = []
    for place in range(4):
        scores = generator.normal(0, 2, 500)
        hits = (generator.uniform(size=500) < 1 / (1 + np.exp(-scores))).astype(float)
        sizes = np.full(1, 10.0 + place)
        sample = sample_of(scores, hits, regions=(f"r{place}",), sizes=sizes, missing=sizes)
        samples.append(replace(sample, num_queries=1, owners=np.zeros(500, dtype=np.int64)))
    fitted = fit_to(monkeypatch, *samples)
    assert fitted.error == fitted.predicted.error < 0.1
    assert fitted.count is not None
    assert 1 < fitted.count.factor < 1.5


def test_a_single_query_of_a_shape_gives_it_no_curve_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No other query of the shape is left to judge the curve on."""
    generator = np.random.default_rng(4)
    scores = generator.normal(0, 2, 2000)
    hits = (generator.uniform(size=2000) < 1 / (1 + np.exp(-scores))).astype(float)
    usual = sample_of(scores, hits, regions=("e.r",))
    single = replace(
        sample_of(np.linspace(-1, 1, 20), np.zeros(20), regions=("e.r.r",)),
        num_queries=1,
        owners=np.zeros(20, dtype=np.int64),
    )
    fitted = fit_to(monkeypatch, usual, single)
    assert "e.r.r" not in fitted.predicted_of
    assert fitted.scores(("e.r.r",)).probability(1.0, 0.0) > 0.5


def test_regions_whose_sizes_mean_something_else_have_counts_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A link of size s lacks s answers, a path of the same size 100 s."""
    sizes = np.arange(1.0, 201.0)
    samples = [
        sample_of(sizes, np.ones(200), regions=(region,), sizes=sizes, missing=times * sizes)
        for region, times in (("e.r", 1.0), ("e.r.r", 100.0))
    ]
    fitted = fit_to(monkeypatch, *samples)
    for region, times in (("e.r", 1.0), ("e.r.r", 100.0)):
        curve = fitted.sizes(region)
        assert curve is not None
        assert curve.missing(50.0) == pytest.approx(50 * times, rel=0.05)
        assert curve.factor < 1.1
    assert fitted.sizes("(e.r & e.r)") is fitted.count


def test_a_region_has_a_count_curve_of_its_own_only_if_that_is_clearly_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(9)
    samples = []
    for region, number, times in (
        ("e.r", 200, 1.0),
        ("e.r.r", 20, 100.0),
        ("(e.r & e.r)", 200, 1.0),
    ):
        sizes = np.linspace(1.0, 200.0, number)
        missing = times * sizes * generator.uniform(0.8, 1.2, number)
        scores = np.zeros(number)
        samples.append(
            sample_of(scores, np.ones(number), regions=(region,), sizes=sizes, missing=missing)
        )
    alike = fit_to(monkeypatch, samples[0], samples[2])
    assert alike.count is not None
    assert not alike.count_of
    fitted = fit_to(monkeypatch, *samples)
    assert fitted.count is not None
    assert fitted.count.missing(50.0) < 100
    curve = fitted.sizes("e.r.r")
    assert curve is not None
    assert curve.missing(50.0) == pytest.approx(5_000, rel=0.3)


def test_halves_are_equal_and_single_items_alternate() -> None:
    numbers = [5, 1, 400, 0, 1, 1]
    halves = calibrate_module._halves(numbers, np.random.default_rng(0))
    assert [len(half) for half in halves] == numbers
    assert [int(half.sum()) for half in halves] == [3, 1, 200, 0, 0, 1]
    assert 50 < halves[2][:200].sum() < 150, "at random"
