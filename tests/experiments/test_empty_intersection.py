from dataclasses import replace

import numpy as np
import pytest
import torch

from conekg.errors import DataError
from conekg.experiments import empty_intersection as experiment
from conekg.experiments.empty_intersection import (
    empty_intersection,
    intersections_with_answers,
    intersections_without_answers,
)
from conekg.query.shape import STRUCTURES
from conekg.training.run import open_run
from oracle import Oracle
from tiny import tiny_graph


@pytest.fixture(scope="module")
def oracle():
    graph = tiny_graph()
    edges = np.concatenate([graph.edges(split) for split in ("train", "valid", "test")])
    return Oracle(edges.tolist(), graph.num_entities)


def counts(oracle, queries):
    shape = STRUCTURES["2i"]
    return [
        len(oracle.answer(shape.ground(anchors.tolist(), relations.tolist())))
        for anchors, relations in zip(*queries, strict=True)
    ]


def test_queries_of_both_kinds_have_the_right_answers(oracle, random_graph):
    none = intersections_without_answers(tiny_graph().adjacency("test"), 30, seed=4)
    assert counts(oracle, none) == [0] * 30
    for anchors, relations in zip(*none, strict=True):
        assert all(oracle.tails[int(a), int(r)] for a, r in zip(anchors, relations, strict=True))
        assert (anchors[0], relations[0]) != (anchors[1], relations[1])
    again = intersections_without_answers(tiny_graph().adjacency("test"), 30, seed=4)
    assert np.array_equal(none[0], again[0])


def dense_graph():
    """A graph in which pairs of links often share more than five answers."""
    from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
    from conekg.graph.vocabulary import NameTable, Vocabulary

    triples = np.argwhere(np.random.default_rng(0).random((14, 2, 14)) < 0.7).astype(np.int32)
    vocabulary = Vocabulary(
        NameTable("entity", [f"e{i}" for i in range(14)]), NameTable("relation", ["r", "s"])
    )
    parts = {"train": triples[::2], "valid": triples[1::4], "test": triples[3::4]}
    return KnowledgeGraph("dense", vocabulary, {s: with_inverses(p) for s, p in parts.items()})


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("intersections_with_answers", "no intersection of two links with an answer"),
        ("intersections_without_answers", "no intersection of two links with no answer"),
    ],
)
def test_a_graph_without_intersections_of_one_kind_is_refused(
    trained, options, monkeypatch, missing, told
):
    none = np.empty((0, 2), dtype=np.int32)
    monkeypatch.setattr(experiment, missing, lambda *_, **__: (none, none))
    with pytest.raises(DataError, match=f"the graph 'tiny' has {told}") as caught:
        empty_intersection([trained["cone"]], replace(options, pairs=5))
    assert "a larger graph" in str(caught.value.hint)


def test_queries_with_many_answers_have_them_on_all_facts():
    graph = dense_graph()
    edges = np.concatenate([graph.edges(split) for split in ("train", "valid", "test")])
    some = intersections_with_answers(graph, 60, seed=0)
    assert len(some[0]) == 60
    assert min(counts(Oracle(edges.tolist(), 14), some)) > 5
    fewer = Oracle(edges[: -len(graph.edges("test"))].tolist(), 14)
    assert min(counts(fewer, some)) <= 5, "facts of the test are drawn from, too"


def test_few_wanted_queries_are_searched_for_as_long_as_many():
    rare = [intersections_with_answers(dense_graph(), 1, seed, more_than=10) for seed in range(10)]
    assert [len(anchors) for anchors, _ in rare] == [1] * 10


@pytest.mark.parametrize("model_name", ["cone", "box"])
def test_apertures_and_area(model_name, trained, reproduce):
    (table,) = reproduce("empty-intersection", trained[model_name].folder, "--pairs", 12)
    (row,) = table["rows"]
    assert any("no numbers for the graph 'tiny' here, only for fb15k" in n for n in table["notes"])
    graph, model = tiny_graph(), trained[model_name].load_model("best")
    # The tiny graph's intersections are small: those with any answer are used, with a note.
    assert not len(intersections_with_answers(graph, 12, seed=0)[0])
    assert any("those with one answer or more stand in" in note for note in table["notes"])
    some = intersections_with_answers(graph, 12, seed=0, more_than=0)
    none = intersections_without_answers(graph.adjacency("test"), 12, seed=0)

    def apertures(queries):
        links = []
        for column in range(2):
            ids = [torch.from_numpy(part[:, column].astype(np.int64)) for part in queries]
            links.append(model.project(model.anchor(ids[0]), ids[1]))
        region = model.intersect(tuple(torch.stack(p) for p in zip(*links, strict=True)))
        return (2 * region[1].abs()).mean(dim=-1).tolist()

    with torch.no_grad():
        high, low = apertures(some), apertures(none)
    assert row["values"]["more than five"] == pytest.approx(np.mean(high), rel=1e-4)
    assert row["values"]["none"] == pytest.approx(np.mean(low), rel=1e-4)
    spread, curve = table["plots"]
    for series, sizes in zip(spread["series"], (high, low), strict=True):
        edges, shares = np.array(series["x"]), np.array(series["y"])
        assert shares[:-1].sum() == pytest.approx(1.0, abs=1e-4)
        middle = (edges[:-1] + edges[1:]) / 2
        assert middle @ shares[:-1] == pytest.approx(np.mean(sizes), abs=edges[1] - edges[0])
    false, true = (np.array(curve["series"][0][axis]) for axis in "xy")
    area = np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2)
    assert area == pytest.approx(row["values"]["ROC-AUC"], abs=1e-4)
    wins = np.mean([(a > b) + 0.5 * (a == b) for a in high for b in low])
    assert row["values"]["ROC-AUC"] == pytest.approx(wins, abs=0.02)


def test_the_title_has_as_many_queries_as_there_were(trained, options):
    """The tiny graph has few intersections with answers, fewer than are wanted."""
    (table,) = empty_intersection([trained["cone"]], replace(options, pairs=1000))
    found = len(intersections_with_answers(tiny_graph(), 1000, seed=0, more_than=0)[0])
    assert 0 < found < 1000
    title = f"Empty intersections, tiny, {found} queries with answers and 1,000 without"
    assert table.title == title
    (table,) = empty_intersection([trained["cone"]], replace(options, pairs=4))
    assert table.title == "Empty intersections, tiny, 4 queries of each kind"


def test_the_papers_apertures_stand_beside(trained, options):
    run = open_run(trained["cone"].folder)
    run.graph.name = "FB15k"
    (table,) = empty_intersection([run], replace(options, pairs=4))
    assert table.row("ConE, Section 5.4").values["none"] == 1.737
    ours, apart = (table.row(f"ConE (cone){end}").values for end in ("", " − paper"))
    assert apart["ROC-AUC"] == pytest.approx(ours["ROC-AUC"] - 0.9632)
