from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.adjacency import build_adjacency
from conekg.graph.tail_index import WIDE


@pytest.mark.parametrize("num_entities", [1, 64, 65, 900])
@given(seed=st.integers(0, 2**20), num_edges=st.sampled_from([0, 1, 200, 2_000]))
def test_wide_pairs_and_no_others_have_their_tails_marked(
    num_entities: int, seed: int, num_edges: int
) -> None:
    limits = (num_entities, 3, num_entities)
    edges = np.random.default_rng(seed).integers(0, limits, (num_edges, 3)).astype(np.int32)
    edges[: num_edges // 2, 0] %= 4
    adjacency = build_adjacency(edges, num_entities, 3)
    index = adjacency.tail_index
    num_words = -(-num_entities // 64)
    next_row = 0
    for pair in range(len(adjacency.pair_heads)):
        start, stop = adjacency.pair_offsets[pair : pair + 2]
        if WIDE * (stop - start) <= num_words:
            assert index.rows[pair] == -1
            continue
        assert index.rows[pair] == next_row
        words = [int(word) for word in index.words[next_row]]
        marked = [t for t in range(64 * num_words) if words[t // 64] >> t % 64 & 1]
        assert marked == adjacency.tails[start:stop].tolist()
        next_row += 1
    assert index.words.shape == (next_row, num_words)
    assert adjacency.tail_index is index
    assert [array.flags.writeable for array in index] == [False, False]
