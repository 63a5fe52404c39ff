from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from conekg.graph.adjacency import Adjacency, build_adjacency
from conekg.graph.head_index import HeadIndex
from conekg.symbolic.bitmaps import clear, mark, read_marks
from conekg.symbolic.memory import borrowed, graph_arrays, make_workspace
from conekg.symbolic.projection import (
    count_edges,
    mark_tails,
    marked_pairs,
    select_pairs,
    unite_tails,
)

ENTITIES = 700


@njit
def project(graph, work, heads, complement, relation):
    """The pairs of some heads, found from a list and from a bitmap of them, and their tails."""
    graph, work = borrowed(graph), borrowed(work)
    words, other_words = work.words[0], work.words[1]
    count = select_pairs(graph, words, heads, complement, relation, work.rows[0])
    pairs = work.rows[0][:count].copy()
    by_marks = pairs
    if graph.head_words.shape[0] > 0:
        mark(words, heads)
        count = marked_pairs(
            graph.head_words, graph.head_firsts, words, complement, relation, work.rows[0]
        )
        clear(words)
        by_marks = work.rows[0][:count].copy()
    count = unite_tails(graph.pair_offsets, graph.tails, words, work.summary, pairs, work.rows[1])
    mark_tails(
        graph.pair_offsets,
        graph.tails,
        graph.tail_words,
        graph.tail_rows,
        pairs,
        work.steps,
        other_words,
    )
    tails_by_marks = work.rows[0][: read_marks(other_words, work.rows[0])].copy()
    edges = count_edges(graph.pair_offsets, pairs)
    return pairs, by_marks, work.rows[1][:count].copy(), tails_by_marks, edges


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("complement", [True, False])
@settings(max_examples=8)  # of 30 sizes each: every method is the cheapest for some of them
@given(seed=st.integers(0, 2**20))
def test_every_method_finds_the_same_tails(is_indexed: bool, complement: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for num_edges in (0, 5, 60, 3_000, 20_000):
        edges = generator.integers(0, (ENTITIES, 2, ENTITIES), (num_edges, 3)).astype(np.int32)
        edges[: num_edges // 3, 0] %= 9  # some heads have many tails
        adjacency = build_adjacency(edges, ENTITIES, 2)
        if not is_indexed:
            adjacency = replace(adjacency)
            none = np.zeros((0, 0))
            index = HeadIndex(none.astype(np.uint64), none.astype(np.int32))
            adjacency.__dict__["head_index"] = index
        for num_heads in (0, 1, 2, 40, 699, 700):
            heads = np.sort(generator.choice(ENTITIES, num_heads, replace=False)).astype(np.int32)
            check_projection(adjacency, edges, heads, complement)


def check_projection(
    adjacency: Adjacency, edges: np.ndarray, heads: np.ndarray, complement: bool
) -> None:
    work = make_workspace(ENTITIES, 1)
    pairs, by_marks, tails, tails_by_marks, size = project(
        graph_arrays(adjacency), work, heads, complement, 1
    )
    inside = np.isin(edges[:, 0], heads) != complement
    wanted = np.unique(edges[inside & (edges[:, 1] == 1)], axis=0)
    assert size == len(wanted)
    assert adjacency.pair_heads[pairs].tolist() == sorted(set(wanted[:, 0].tolist()))
    assert by_marks.tolist() == pairs.tolist()
    assert tails.tolist() == sorted(set(wanted[:, 2].tolist()))
    assert tails_by_marks.tolist() == tails.tolist()
    assert not work.words.any()
    assert not work.summary.any()
    assert (work.steps == 1).all()
