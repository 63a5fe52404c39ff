from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from conekg.graph.adjacency import build_adjacency
from conekg.graph.head_index import HeadIndex
from conekg.symbolic.memory import borrowed, graph_arrays, make_workspace
from conekg.symbolic.projection import select_pairs, unite_tails

ENTITIES = 700


@njit
def project(graph, work, heads, complement, relation):
    graph, work = borrowed(graph), borrowed(work)
    count = select_pairs(graph, work, heads, complement, relation, work.rows[0])
    pairs = work.rows[0][:count].copy()
    size = unite_tails(graph, work, pairs, work.rows[1])
    return pairs, work.rows[1][:size].copy()


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("complement", [True, False])
@given(
    seed=st.integers(0, 2**20),
    num_edges=st.sampled_from([0, 5, 60, 3_000]),
    num_heads=st.sampled_from([0, 1, 2, 40, 699, 700]),
)
def test_every_way_finds_the_same_tails(
    is_indexed: bool, complement: bool, seed: int, num_edges: int, num_heads: int
) -> None:
    generator = np.random.default_rng(seed)
    limits = (ENTITIES, 2, ENTITIES)
    edges = generator.integers(0, limits, (num_edges, 3)).astype(np.int32)
    adjacency = build_adjacency(edges, ENTITIES, 2)
    if not is_indexed:
        adjacency = replace(adjacency)
        none = np.zeros((0, 0))
        adjacency.__dict__["head_index"] = HeadIndex(none.astype(np.uint64), none.astype(np.int32))
    heads = np.sort(generator.choice(ENTITIES, num_heads, replace=False)).astype(np.int32)
    work = make_workspace(ENTITIES, 1)
    pairs, tails = project(graph_arrays(adjacency), work, heads, complement, 1)
    inside = np.isin(edges[:, 0], heads) != complement
    wanted = edges[inside & (edges[:, 1] == 1)]
    assert adjacency.pair_heads[pairs].tolist() == sorted(set(wanted[:, 0].tolist()))
    assert tails.tolist() == sorted(set(wanted[:, 2].tolist()))
    assert not work.words.any()
    assert not work.summary.any()
