from __future__ import annotations

import pytest

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import open_graph
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS


@pytest.mark.parametrize(
    ("name", "cap", "train", "negation", "evaluation"),
    [
        ("fb15k", 100, 273_710, 27_371, 8_000),
        ("fb15k-237", 120, 149_689, 14_968, 5_000),
        ("nell995", 80, 107_982, 10_798, 4_000),
    ],
)
def test_published_values(name: str, cap: int, train: int, negation: int, evaluation: int) -> None:
    protocol = PRESETS[name]
    path, negated = STRUCTURES["3p"], STRUCTURES["2in"]
    assert protocol.answer_cap("test", path) == protocol.answer_cap("valid", negated) == cap
    assert protocol.answer_cap("train", path) is None
    assert protocol.answer_cap("train", negated) == cap
    assert protocol.relation_tries == 40
    assert protocol.count("train", STRUCTURES["3p"]) == train
    assert protocol.count("train", STRUCTURES["inp"]) == negation
    assert protocol.count("test", STRUCTURES["inp"]) == evaluation
    assert protocol.count("valid", STRUCTURES["2u"]) == evaluation
    assert protocol.count("test", STRUCTURES["1p"]) is None
    assert len(protocol.shapes("train")) == 10
    assert len(protocol.shapes("test")) == len(protocol.shapes("valid")) == 14


def test_missing_counts_follow_the_size_of_the_graph(random_graph: KnowledgeGraph) -> None:
    resolved = PRESETS["small"].for_graph(random_graph)
    links = len(random_graph.adjacency("train").pair_heads)
    assert resolved.train_count == links
    assert resolved.train_negation_count == links // 10
    assert resolved.evaluation_count == 100


def test_given_counts_stay_as_they_are(random_graph: KnowledgeGraph) -> None:
    assert PRESETS["nell995"].for_graph(random_graph) == PRESETS["nell995"]


def test_more_training_queries_are_as_many_of_every_shape() -> None:
    more = PRESETS["nell995"].with_more_training(4)
    assert more.count("train", STRUCTURES["3p"]) == 4 * 107_982
    assert more.count("train", STRUCTURES["inp"]) == 4 * 107_982
    assert more.count("train", STRUCTURES["1p"]) is None
    assert more.count("test", STRUCTURES["inp"]) == 4_000
    assert more.answer_cap("train", STRUCTURES["inp"]) == 80


@pytest.mark.parametrize(
    ("folder", "name"), [("FB15k-237", "fb15k-237"), ("NELL", "nell995"), ("FB15k", "fb15k")]
)
def test_published_training_counts_are_the_numbers_of_training_links(
    benchmark_data, folder: str, name: str
) -> None:
    links = len(open_graph(benchmark_data / folder).adjacency("train").pair_heads)
    assert PRESETS[name].train_count == links
