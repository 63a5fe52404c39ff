from __future__ import annotations

from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError, QueryError
from conekg.graph.adjacency import Adjacency, build_adjacency
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.query.shape import STRUCTURES, shape_of, slots_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from conekg.symbolic import engine
from conekg.symbolic.engine import answer, answer_batch
from conekg.symbolic.kernels import answer_rows
from oracle import Oracle
from strategies import graphs_with_queries, queries


def triples(graph: KnowledgeGraph, *splits: str) -> list[tuple[int, int, int]]:
    return [tuple(edge) for split in splits for edge in graph.edges(split).tolist()]


def sparse_adjacency(num_entities: int) -> tuple[Adjacency, Oracle]:
    """Few edges among many entities, so that bitmaps are read through their summary."""
    generator = np.random.default_rng(3)
    edges = generator.integers(0, (num_entities, 4, num_entities), size=(400, 3)).astype(np.int32)
    edges[:200, 0] %= 40
    edges[200:, 2] %= 40
    return build_adjacency(edges, num_entities, 4), Oracle(edges.tolist(), num_entities)


@given(graphs_with_queries())
def test_the_engine_equals_the_oracle_on_every_nested_graph(
    case: tuple[KnowledgeGraph, Query],
) -> None:
    graph, query = case
    for index, split in enumerate(SPLITS):
        oracle = Oracle(triples(graph, *SPLITS[: index + 1]), graph.num_entities)
        found = answer(graph.adjacency(split), query)
        assert found.dtype == np.int32
        assert found.tolist() == sorted(oracle.answer(query))


@pytest.mark.parametrize("num_entities", [41, 64, 4_096, 20_000])
def test_the_engine_equals_the_oracle_on_sparse_graphs(num_entities: int) -> None:
    adjacency, oracle = sparse_adjacency(num_entities)
    anchor = Anchor(7)
    fan_out = Project(Universe(), 1)
    for query in (
        Project(anchor, 0),
        Project(Project(fan_out, 2), 3),
        Project(Not(fan_out), 2),
        Not(And((Not(fan_out), Not(Project(anchor, 0))))),
        And((fan_out, Not(Project(fan_out, 0)), Or((anchor, Not(anchor))))),
    ):
        assert answer(adjacency, query).tolist() == sorted(oracle.answer(query))


@given(st.data())
def test_a_batch_answers_each_row_as_it_is_answered_alone(
    random_graph: KnowledgeGraph, data: st.DataObject
) -> None:
    query = data.draw(queries(random_graph.num_entities, random_graph.num_relations))
    shape = shape_of(query)
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    anchors = generator.integers(0, 60, (7, shape.num_anchors)).astype(np.int32)
    relations = generator.integers(0, 10, (7, shape.num_relations)).astype(np.int32)
    adjacency = random_graph.adjacency("test")
    found = answer_batch(adjacency, shape, anchors, relations)
    assert len(found) == 7
    for row in range(7):
        alone = answer(adjacency, shape.ground(anchors[row], relations[row]))
        assert found[row].tolist() == alone.tolist()


@pytest.mark.parametrize("count", [511, 512, 513, 1100])
def test_a_long_batch_has_every_row_once_and_in_order(
    random_graph: KnowledgeGraph, count: int
) -> None:
    # Threads take pieces of 512 rows; the last piece may be shorter.
    generator = np.random.default_rng(count)
    anchors = generator.integers(0, 60, (count, 1)).astype(np.int32)
    relations = generator.integers(0, 10, (count, 1)).astype(np.int32)
    oracle = Oracle(triples(random_graph, "train"), random_graph.num_entities)
    found = answer_batch(random_graph.adjacency("train"), STRUCTURES["1p"], anchors, relations)
    assert len(found) == count
    for row in range(count):
        tails = oracle.tails.get((anchors[row, 0], relations[row, 0]), set())
        assert found[row].tolist() == sorted(tails)


@pytest.mark.parametrize("name", ["3p", "pin", "up-DM"])
def test_answers_do_not_depend_on_the_number_of_threads(
    random_graph: KnowledgeGraph, name: str
) -> None:
    shape = STRUCTURES[name]
    generator = np.random.default_rng(1)
    anchors = generator.integers(0, 60, (3_000, shape.num_anchors)).astype(np.int32)
    relations = generator.integers(0, 10, (3_000, shape.num_relations)).astype(np.int32)
    one, three = (
        answer_batch(random_graph.adjacency("test"), shape, anchors, relations, workers=workers)
        for workers in (1, 3)
    )
    assert one.offsets.tolist() == three.offsets.tolist()
    assert one.values.tolist() == three.values.tolist()
    assert len(one.values) > 0


def test_threads_that_work_at_once_do_not_share_memory(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_at_work = Barrier(2)
    seen = []

    def answer_together(graph, work, instructions, anchors, relations, buffer):
        seen.append([*work, buffer])
        both_at_work.wait(timeout=60)
        return answer_rows(graph, work, instructions, anchors, relations, buffer)

    monkeypatch.setattr(engine, "answer_rows", answer_together)
    zeros = np.zeros((1024, 1), dtype=np.int32)
    answer_batch(random_graph.adjacency("train"), STRUCTURES["1p"], zeros, zeros, workers=2)
    one, other = seen
    for mine, others in zip(one, other, strict=True):
        assert not np.shares_memory(mine, others)


@given(graphs_with_queries(negation=False))
def test_more_edges_never_remove_answers_without_negation(
    case: tuple[KnowledgeGraph, Query],
) -> None:
    graph, query = case
    fewer, more = (set(answer(graph.adjacency(split), query)) for split in ("train", "test"))
    assert fewer <= more


def test_more_edges_can_remove_answers_with_negation(film_graph: KnowledgeGraph) -> None:
    # Films of c1 that did not win: f2 wins only in the validation facts.
    entities, relations = film_graph.vocabulary.entities, film_graph.vocabulary
    produced = Anchor(entities.id_of("c1")).project(relations.relation_id("produced"))
    won = Anchor(entities.id_of("a1")).project(relations.relation_id("won_by"))
    query = produced & ~won
    assert answer(film_graph.adjacency("train"), query).tolist() == [entities.id_of("f2")]
    assert answer(film_graph.adjacency("valid"), query).tolist() == []


@given(graphs_with_queries(), st.data())
def test_de_morgan_holds(case: tuple[KnowledgeGraph, Query], data: st.DataObject) -> None:
    graph, left = case
    right = data.draw(queries(graph.num_entities, graph.num_relations))
    adjacency = graph.adjacency("test")
    united = answer(adjacency, Or((left, right)))
    rewritten = answer(adjacency, Not(And((Not(left), Not(right)))))
    assert united.tolist() == rewritten.tolist()


def test_a_batch_of_no_queries_has_no_rows(random_graph: KnowledgeGraph) -> None:
    none = np.zeros((0, 1), dtype=np.int32)
    assert len(answer_batch(random_graph.adjacency("train"), STRUCTURES["1p"], none, none)) == 0


def test_deep_queries_are_answered(random_graph: KnowledgeGraph) -> None:
    query: Query = Anchor(0)
    for step in range(150):
        query = Project(query, step % 10)
    assert answer(random_graph.adjacency("train"), query).dtype == np.int32
    entity_ids, relation_ids = slots_of(query)
    assert (len(entity_ids), len(relation_ids)) == (1, 150)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (Anchor(60), "entity id 60 .* has ids 0 to 59"),
        (Anchor(-1), "entity id -1"),
        (Project(Anchor(0), 10), "relation id 10 .* has ids 0 to 9"),
        (Anchor(2**40), "entity id 1099511627776 .* has ids 0 to 59"),
        (Anchor(2**70), "has ids 0 to 59"),
        (Anchor(-(2**70)), "has ids 0 to 59"),
        (Anchor(0.5), "0.5 in a query is no entity id"),
        (Anchor("a"), "'a' in a query is no entity id"),
        (And((Anchor(0), Anchor(0.5))), "0.5 in a query is no entity id"),
        (Project(Anchor(0), True), "True in a query is no relation id"),
    ],
)
def test_ids_the_graph_does_not_have_are_refused(
    random_graph: KnowledgeGraph, query: Query, told: str
) -> None:
    with pytest.raises(QueryError, match=told):
        answer(random_graph.adjacency("train"), query)


def test_ids_may_come_from_arrays(random_graph: KnowledgeGraph) -> None:
    adjacency = random_graph.adjacency("train")
    plain = answer(adjacency, Not(Project(Anchor(7), 3)))
    for kind in (np.int32, np.int64, np.uint8):
        assert np.array_equal(answer(adjacency, Not(Project(Anchor(kind(7)), kind(3)))), plain)


def test_a_batch_needs_one_column_per_slot(random_graph: KnowledgeGraph) -> None:
    # Compiled code would read past the end of a row.
    one, two = np.zeros((3, 1), dtype=np.int32), np.zeros((3, 2), dtype=np.int32)
    for anchors, relations in ((one, two), (two, one), (two, two[:2])):
        with pytest.raises(AssertionError, match="one column"):
            answer_batch(random_graph.adjacency("train"), STRUCTURES["2i"], anchors, relations)


def test_a_knowledge_graph_instead_of_an_adjacency_is_refused(random_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"adjacency is a KnowledgeGraph; .*graph\.adjacency"):
        answer(random_graph, Project(Anchor(0), 0))  # type: ignore[arg-type]
