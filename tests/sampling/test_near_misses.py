"""Near misses by their definition: they answer the query without its negations, but not with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.ragged import Ragged
from conekg.query.relax import without_negations
from conekg.query.shape import NEGATION_STRUCTURES, STRUCTURES, grounded
from conekg.query.tree import Query, Universe
from conekg.sampling.near_misses import find_near_misses
from conekg.sampling.query_set import QueryBlock
from oracle import Oracle
from strategies import graphs_with_queries


def block_of(queries: list[Query]) -> QueryBlock:
    parts = [grounded(query) for query in queries]
    nothing = Ragged.from_rows([[]] * len(queries))
    return QueryBlock(
        parts[0].shape,
        np.array([part.entity_ids for part in parts], dtype=np.int32).reshape(len(parts), -1),
        np.array([part.relation_ids for part in parts], dtype=np.int32).reshape(len(parts), -1),
        nothing,
        nothing,
    )


@given(graphs_with_queries())
def test_near_misses_answer_the_query_without_its_negations_and_not_the_query(
    case: tuple[KnowledgeGraph, Query],
) -> None:
    graph, query = case
    oracle = Oracle([tuple(edge) for edge in graph.edges("train").tolist()], graph.num_entities)
    wider, answers = oracle.answer(without_negations(query)), oracle.answer(query)
    assert answers <= wider
    found = find_near_misses(graph.adjacency("train"), block_of([query]), seed=0, most=1000)
    assert found[0].tolist() == sorted(wider - answers)


@given(most=st.integers(1, 12), seed=st.integers(0, 5), name=st.sampled_from(NEGATION_STRUCTURES))
def test_at_most_the_given_number_of_each_query_is_kept(
    random_graph: KnowledgeGraph, most: int, seed: int, name: str
) -> None:
    shape, rng = STRUCTURES[name], np.random.default_rng(seed)
    queries = [
        shape.ground(
            rng.integers(0, 60, shape.num_anchors), rng.integers(0, 10, shape.num_relations)
        )
        for _ in range(20)
    ]
    adjacency = random_graph.adjacency("train")
    everything = find_near_misses(adjacency, block_of(queries), seed=0, most=1000)
    kept = find_near_misses(adjacency, block_of(queries), seed=seed, most=most)
    assert kept.lengths.tolist() == np.minimum(everything.lengths, most).tolist()
    for row in range(len(kept)):
        entities = kept[row].tolist()
        assert entities == sorted(set(entities))
        assert set(entities) <= set(everything[row].tolist())
    again = find_near_misses(adjacency, block_of(queries), seed=seed, most=most)
    assert np.array_equal(again.values, kept.values)


def test_every_near_miss_can_be_kept(random_graph: KnowledgeGraph) -> None:
    adjacency = random_graph.adjacency("train")
    block = block_of([Universe() & ~Universe().project(relation) for relation in range(10)])
    everything = find_near_misses(adjacency, block, seed=0, most=1000)
    row = int(everything.lengths.argmax())
    assert everything.lengths[row] > 3
    kept = [find_near_misses(adjacency, block, seed=seed, most=3)[row] for seed in range(60)]
    assert set(np.concatenate(kept).tolist()) == set(everything[row].tolist())


def test_more_queries_than_are_answered_at_once_keep_their_order(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, rng = STRUCTURES["2in"], np.random.default_rng(2)
    block = block_of(
        [shape.ground(rng.integers(0, 60, 2), rng.integers(0, 10, 2)) for _ in range(23)]
    )
    adjacency = random_graph.adjacency("train")
    whole = find_near_misses(adjacency, block, seed=0, most=1000)
    monkeypatch.setattr("conekg.sampling.near_misses._ROWS_AT_ONCE", 5)
    pieces = find_near_misses(adjacency, block, seed=0, most=1000)
    assert np.array_equal(whole.offsets, pieces.offsets)
    assert np.array_equal(whole.values, pieces.values)
