"""Tests of the strategies: what they generate is valid and includes the cases that tests need."""

import numpy as np
from hypothesis import Phase, find, given, settings

import strategies
from conekg.graph.knowledge_graph import SPLITS
from conekg.query.shape import STRUCTURES, shape_of, slots_of
from conekg.query.tree import Not, Or, Universe, has_negation, has_union, subtrees

SEARCH = settings(max_examples=20_000, deadline=None, phases=[Phase.generate])
"""Stop at the first example found: it is not shown, so it need not be made smaller."""


@given(strategies.graphs())
def test_graphs_hold_both_directions_of_distinct_edges(graph):
    for split in SPLITS:
        edges = {tuple(edge) for edge in graph.edges(split).tolist()}
        assert len(edges) == len(graph.edges(split))
        assert {(t, r ^ 1, h) for h, r, t in edges} == edges
        assert all(max(h, t) < graph.num_entities and r < graph.num_relations for h, r, t in edges)


@given(strategies.graphs())
def test_splits_do_not_overlap(graph):
    edges = np.concatenate([graph.edges(split) for split in SPLITS])
    assert len(np.unique(edges, axis=0)) == len(edges)


@given(strategies.graphs_with_queries())
def test_queries_use_ids_of_their_graph(pair):
    graph, query = pair
    entity_ids, relation_ids = slots_of(query)
    assert all(0 <= e < graph.num_entities for e in entity_ids)
    assert all(0 <= r < graph.num_relations for r in relation_ids)


@given(strategies.queries(universe=False, union=False, negation=False))
def test_operators_can_be_excluded(query):
    assert not any(isinstance(node, Universe | Or | Not) for node in subtrees(query))


@given(strategies.vocabularies())
def test_vocabularies_have_the_size_asked_for(vocabulary):
    assert len(vocabulary.entities) == strategies.MAX_ENTITIES
    assert vocabulary.num_relations == 2 * strategies.MAX_RELATION_NAMES


def test_some_queries_have_unions_negations_and_literature_shapes():
    find(strategies.queries(), lambda q: has_union(q) and has_negation(q), settings=SEARCH)
    find(
        strategies.queries(universe=False, union=False, negation=False),
        lambda q: shape_of(q) == STRUCTURES["ip"],
        settings=SEARCH,
    )


def test_some_graphs_have_edges_in_every_split():
    find(
        strategies.graphs(),
        lambda graph: all(len(graph.edges(split)) for split in SPLITS),
        settings=SEARCH,
    )
