from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.adjacency import build_adjacency

ENTITIES, RELATIONS = 7, 4
edge_lists = st.lists(
    st.tuples(
        st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)
    ),
    max_size=60,
)


def as_array(edges: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array(edges, dtype=np.int32).reshape(-1, 3)


@given(edge_lists)
def test_neighbors_are_those_of_the_edges(edges: list[tuple[int, int, int]]) -> None:
    adjacency = build_adjacency(as_array(edges), ENTITIES, RELATIONS)
    for head in range(ENTITIES):
        expected_relations = sorted({r for h, r, _ in edges if h == head})
        assert adjacency.relations_of(head).tolist() == expected_relations
        for relation in range(RELATIONS):
            expected = sorted({t for h, r, t in edges if (h, r) == (head, relation)})
            assert adjacency.neighbors(head, relation).tolist() == expected
    assert adjacency.num_edges == len(set(edges))


@given(edge_lists)
def test_pairs_are_grouped_by_relation_then_head(edges: list[tuple[int, int, int]]) -> None:
    adjacency = build_adjacency(as_array(edges), ENTITIES, RELATIONS)
    pairs = [
        (relation, int(adjacency.pair_heads[pair]))
        for relation in range(RELATIONS)
        for pair in range(
            adjacency.relation_offsets[relation], adjacency.relation_offsets[relation + 1]
        )
    ]
    assert pairs == sorted({(r, h) for h, r, _ in edges})
    assert adjacency.pair_relations.tolist() == [relation for relation, _ in pairs]
    assert len(adjacency.pair_offsets) == len(pairs) + 1


def test_arrays_are_compact_and_read_only() -> None:
    adjacency = build_adjacency(as_array([(0, 1, 2)]), ENTITIES, RELATIONS)
    assert adjacency.tails.dtype == np.int32
    assert adjacency.pair_offsets.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        adjacency.tails[0] = 3
