from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from conekg.errors import ConfigError
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.source import open_graph
from conekg.query.shape import STRUCTURES
from conekg.sampling import protocol
from conekg.sampling.protocol import PRESETS, preset_of


@pytest.mark.parametrize(
    ("name", "cap", "train", "negation", "evaluation"),
    [
        ("fb15k", 100, 273_710, 27_371, 8_000),
        ("fb15k-237", 120, 149_689, 14_968, 5_000),
        ("nell995", 80, 107_982, 10_798, 4_000),
    ],
)
def test_published_values(name: str, cap: int, train: int, negation: int, evaluation: int) -> None:
    preset = PRESETS[name]
    path, negated = STRUCTURES["3p"], STRUCTURES["2in"]
    assert preset.answer_cap("test", path) == preset.answer_cap("valid", negated) == cap
    assert preset.answer_cap("train", path) is None
    assert preset.answer_cap("train", negated) == cap
    assert preset.relation_tries == 40
    assert preset.walks_forwards("train", path)
    assert not preset.walks_forwards("test", path)
    assert not preset.walks_forwards("valid", path)
    assert not preset.walks_forwards("train", STRUCTURES["2i"])
    assert preset.count("train", STRUCTURES["3p"]) == train
    assert preset.count("train", STRUCTURES["inp"]) == negation
    assert preset.count("test", STRUCTURES["inp"]) == evaluation
    assert preset.count("valid", STRUCTURES["2u"]) == evaluation
    assert preset.count("test", STRUCTURES["1p"]) is None
    assert len(preset.shapes("train")) == 10
    assert len(preset.shapes("test")) == len(preset.shapes("valid")) == 14


def test_missing_counts_follow_the_size_of_the_graph(random_graph: KnowledgeGraph) -> None:
    resolved = PRESETS["small"].for_graph(random_graph)
    links = len(random_graph.adjacency("train").pair_heads)
    assert resolved.train_count == links
    assert resolved.train_negation_count == links // 10
    assert resolved.evaluation_count == 100


@pytest.mark.parametrize(
    ("held_out", "count"),
    [(0, 100), (403, 100), (404, 101), (8_000, 2_000), (20_004, 5_000), (50_000, 5_000)],
)
def test_evaluation_queries_are_a_quarter_of_the_test_links(held_out: int, count: int) -> None:
    links = {"train": 70, "test": 70 + held_out}
    sized = SimpleNamespace(adjacency=lambda split: SimpleNamespace(pair_heads=range(links[split])))
    resolved = PRESETS["small"].for_graph(sized)
    assert resolved.evaluation_count == count
    assert (resolved.train_count, resolved.train_negation_count) == (70, 7)


def test_given_counts_stay_as_they_are(random_graph: KnowledgeGraph) -> None:
    assert PRESETS["nell995"].for_graph(random_graph) == PRESETS["nell995"]
    given = replace(PRESETS["small"], train_negation_count=3).for_graph(random_graph)
    assert given == replace(PRESETS["small"].for_graph(random_graph), train_negation_count=3)


@pytest.mark.parametrize("links", [0, 1, 9])
def test_the_smallest_graphs_are_trained_on_one_query_at_least(links: int) -> None:
    sized = SimpleNamespace(adjacency=lambda split: SimpleNamespace(pair_heads=range(links)))
    resolved = PRESETS["small"].for_graph(sized)
    assert (resolved.train_count, resolved.train_negation_count) == (max(links, 1), 1)


@pytest.mark.parametrize(
    "key",
    ["cap", "train_count", "train_negation_count", "evaluation_count", "train_cap",
     "train_negation_cap", "relation_tries", "patience"],
)  # fmt: skip
def test_counts_below_one_are_refused(key: str) -> None:
    for value in (0, 2.5, "7"):
        told = (
            f"{key} of the sampling protocol 'small' is {value!r}; it must be a whole number, 1 or"
        )
        with pytest.raises(ConfigError, match=told) as caught:
            replace(PRESETS["small"], **{key: value})
        assert caught.value.key == key
    assert getattr(replace(PRESETS["small"], **{key: 1}), key) == 1


def test_a_yield_that_is_no_share_is_refused() -> None:
    for value in (-1e-4, 0, 1.5, float("nan")):
        told = f"min_yield of .* is {value}; it is a share of the attempts, above 0 and at most 1"
        with pytest.raises(ConfigError, match=told) as caught:
            replace(PRESETS["small"], min_yield=value)
        assert caught.value.key == "min_yield"
    assert replace(PRESETS["small"], min_yield=1).min_yield == 1


def test_an_unknown_end_of_a_path_is_refused() -> None:
    told = "train_paths_from of the sampling protocol 'small' is 'head'; it must be answer or"
    with pytest.raises(ConfigError, match=told) as caught:
        replace(PRESETS["small"], train_paths_from="head")
    assert caught.value.key == "train_paths_from"


def test_paths_are_walked_from_an_answer_where_no_protocol_was_published() -> None:
    assert not PRESETS["small"].walks_forwards("train", STRUCTURES["2p"])


def test_more_training_gives_every_shape_the_same_count() -> None:
    more = PRESETS["nell995"].with_more_training(4)
    assert more.count("train", STRUCTURES["3p"]) == 4 * 107_982
    assert more.count("train", STRUCTURES["inp"]) == 4 * 107_982
    assert more.count("train", STRUCTURES["1p"]) is None
    assert more.count("test", STRUCTURES["inp"]) == 4_000
    assert more.answer_cap("train", STRUCTURES["inp"]) == 80
    assert not more.walks_forwards("train", STRUCTURES["3p"])


def test_derived_counts_are_bounded(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the answers on a graph of millions of links would not fit into memory."""
    links = len(random_graph.adjacency("train").pair_heads)
    monkeypatch.setattr(protocol, "MOST_TRAINING_QUERIES", links // 2)
    resolved = PRESETS["small"].for_graph(random_graph)
    assert resolved.train_count == links // 2
    assert resolved.with_more_training(4).train_count == links // 2
    given = replace(resolved, train_count=links)
    assert given.with_more_training(4).train_count == links, "never less than it was"
    monkeypatch.setattr(protocol, "MOST_TRAINING_QUERIES", 3 * links)
    more = PRESETS["small"].for_graph(random_graph).with_more_training(4)
    assert more.train_count == more.train_negation_count == 3 * links


@pytest.mark.parametrize(
    ("folder", "name"), [("FB15k-237", "fb15k-237"), ("NELL", "nell995"), ("FB15k", "fb15k")]
)
def test_published_training_counts_are_the_numbers_of_training_links(
    benchmark_data, folder: str, name: str
) -> None:
    links = len(open_graph(benchmark_data / folder).adjacency("train").pair_heads)
    assert PRESETS[name].train_count == links


def test_a_graph_takes_the_preset_of_its_release_or_small(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert preset_of(random_graph) == (PRESETS["small"], None)
    edges = {split: random_graph.edges(split) for split in SPLITS}
    without = KnowledgeGraph("WN18RR-QA", random_graph.vocabulary, edges)
    assert preset_of(without) == (PRESETS["small"], None), "which has no preset of its own"
    called = KnowledgeGraph("NELL", random_graph.vocabulary, edges)
    preset, why = preset_of(called)
    assert preset == PRESETS["small"]
    assert why is not None
    assert "called 'NELL' but has" in why
    size = (called.num_entities, len(called.vocabulary.relations))
    own = replace(BENCHMARKS["nell995"], size=size)
    monkeypatch.setitem(BENCHMARKS, "nell995", own)
    assert preset_of(called) == (PRESETS["nell995"], None)
