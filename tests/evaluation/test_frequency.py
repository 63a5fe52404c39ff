import tracemalloc

import numpy as np
import pytest

from conekg.errors import ConfigError
from conekg.evaluation import frequency
from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.frequency import FrequencyScorer, answer_counts
from conekg.graph.adjacency import build_adjacency
from conekg.graph.ragged import Ragged
from conekg.query.shape import STRUCTURES, Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project
from conekg.sampling.query_set import QueryBlock, QuerySet
from tiny import tiny_graph, tiny_queries

GRAPH = tiny_graph()


def count(relation, entity):
    edges = GRAPH.edges("train")
    return int(((edges[:, 1] == relation) & (edges[:, 2] == entity)).sum())


def scores(shape: Shape, relations):
    block = QueryBlock(
        shape,
        np.zeros((1, shape.num_anchors), dtype=np.int32),
        np.array([relations], dtype=np.int32).reshape(1, -1),
        Ragged.from_rows([[]]),
        Ragged.from_rows([[]]),
    )
    return FrequencyScorer(GRAPH.adjacency("train")).scores(block)[0].tolist()


def expected(combine):
    return [combine(entity) for entity in range(GRAPH.num_entities)]


def test_counts_are_incoming_edges():
    adjacency = GRAPH.adjacency("train")
    counts = np.stack([answer_counts(adjacency, r) for r in range(GRAPH.num_relations)])
    assert counts.sum() == len(np.unique(GRAPH.edges("train"), axis=0))
    for relation in range(GRAPH.num_relations):
        assert counts[relation].tolist() == expected(lambda e, r=relation: count(r, e))


def test_memory_is_that_of_a_few_relations(monkeypatch):
    """With a million entities and a thousand relations, all counts would take four gigabytes."""
    size = 1_000_000
    edges = np.array([(0, 2 * r, size - 1 - r) for r in range(1000)], dtype=np.int32)
    monkeypatch.setattr(frequency, "_COUNTS_KEPT", 2 * size)
    scorer = FrequencyScorer(build_adjacency(edges, size, 2000))
    tracemalloc.start()
    for relation in range(0, 2000, 200):
        found = scorer.scores(links([relation, relation])).numpy()
        assert found.sum() == 2
        assert (found[:, size - 1 - relation // 2] == 1).all()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * size  # bytes


def links(relations):
    """1p queries from entity 0, one for each relation."""
    return QueryBlock(
        STRUCTURES["1p"],
        np.zeros((len(relations), 1), dtype=np.int32),
        np.array(relations, dtype=np.int32)[:, None],
        Ragged.from_rows([[]] * len(relations)),
        Ragged.from_rows([[]] * len(relations)),
    )


def test_rows_have_their_own_relation():
    scorer = FrequencyScorer(GRAPH.adjacency("train"))
    found = scorer.scores(links([2, 0, 2])).tolist()
    assert found == [expected(lambda e, r=relation: count(r, e)) for relation in (2, 0, 2)]


def test_only_the_last_relations_count():
    assert scores(STRUCTURES["3p"], [4, 2, 0]) == expected(lambda e: count(0, e))
    both = expected(lambda e: min(count(1, e), count(3, e)))
    assert 0 < sum(both) < sum(expected(lambda e: min(count(1, e), 1)))
    assert scores(STRUCTURES["2i"], [1, 3]) == both
    assert scores(STRUCTURES["2u"], [0, 3]) == expected(lambda e: max(count(0, e), count(3, e)))
    assert scores(STRUCTURES["2in"], [0, 3]) == expected(lambda e: count(0, e))
    assert scores(STRUCTURES["pni"], [1, 3, 0]) == expected(lambda e: count(0, e))
    assert scores(STRUCTURES["up"], [1, 3, 0]) == expected(lambda e: count(0, e))


def test_double_negations_count():
    for union, by_law, relations in (("2u", "2u-DM", [0, 3]), ("up", "up-DM", [1, 3, 0])):
        assert scores(STRUCTURES[by_law], relations) == scores(STRUCTURES[union], relations)
        assert max(scores(STRUCTURES[by_law], relations)) > 0
    link = Anchor(0).project(0)
    both = expected(lambda e: min(count(1, e), count(3, e)))
    assert 0 < sum(both) < sum(expected(lambda e: min(count(1, e), 1)))
    assert scores(shape_of(link & ~~link), [1, 3]) == both
    # The first and not (not the second or the third): the third alone is negated.
    assert scores(shape_of(link & ~(~link | link)), [1, 3, 4]) == both


def test_a_query_without_relations_scores_all_entities_alike():
    assert set(scores(shape_of(Not(Anchor(0))), [])) == {0.0}


def test_a_query_of_negations_and_entities_alone_scores_all_entities_alike():
    negated = [Not(Project(Anchor(slot), slot)) for slot in range(2)]
    for query in (And(tuple(negated)), Or(tuple(negated)), Or((Anchor(0), Anchor(1)))):
        shape = shape_of(query)
        assert set(scores(shape, [1, 3][: shape.num_relations])) == {0.0}


def test_any_number_of_branches_is_answered():
    """Seven unions of two have 128 branches by DNF, but the baseline does not build them."""
    links_of = [Project(Anchor(slot), slot) for slot in range(14)]
    pairs = zip(links_of[::2], links_of[1::2], strict=True)
    shape = Shape(And(tuple(Or(pair) for pair in pairs)))
    relations = [0, 2, 0, 3, 1, 0, 5, 0, 4, 0, 0, 0, 2, 0]
    found = scores(shape, relations)
    pairs = list(zip(relations[::2], relations[1::2], strict=True))
    assert found == expected(lambda e: min(max(count(a, e), count(b, e)) for a, b in pairs))
    block = QueryBlock(
        shape,
        np.zeros((1, 14), dtype=np.int32),
        np.array([relations], dtype=np.int32),
        Ragged.from_rows([[]]),
        Ragged.from_rows([[int(np.argmax(found))]]),
    )
    scorer = FrequencyScorer(GRAPH.adjacency("train"))
    report = evaluate(scorer, QuerySet("test", (block,)), num_entities=GRAPH.num_entities)
    assert max(found) > 0
    assert report.measured[shape.name].mrr == 1 / (1 + (found.count(max(found)) - 1) / 2)


def test_every_structure_is_answered():
    report = evaluate(
        FrequencyScorer(GRAPH.adjacency("train")),
        tiny_queries()["test"],
        num_entities=GRAPH.num_entities,
    )
    assert report.model == "frequency"
    assert not [why for why in report.unanswered.values() if "no query" not in why]
    assert 0 < report.measured["1p"].mrr < 1


def test_unions_by_de_morgan_are_refused():
    scorer, queries = FrequencyScorer(GRAPH.adjacency("train")), tiny_queries()["test"]
    assert evaluate(scorer, queries, num_entities=GRAPH.num_entities).union == "dnf"
    with pytest.raises(ConfigError, match="'frequency' answers unions as 'dnf'"):
        evaluate(scorer, queries, num_entities=GRAPH.num_entities, union="demorgan")
