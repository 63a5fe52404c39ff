from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.adjacency import Adjacency, build_adjacency


def random_adjacency(seed: int, num_entities: int, num_relations: int, size: int) -> Adjacency:
    limits = (num_entities, num_relations, num_entities)
    edges = np.random.default_rng(seed).integers(0, limits, (size, 3)).astype(np.int32)
    return build_adjacency(edges, num_entities, num_relations)


@pytest.mark.parametrize("num_entities", [1, 63, 64, 65, 300])
@given(seed=st.integers(0, 2**20))
def test_every_pair_is_where_the_index_says(num_entities: int, seed: int) -> None:
    adjacency = random_adjacency(seed, num_entities, 3, 200)
    index = adjacency.head_index
    assert index.words.shape == index.firsts.shape == (3, -(-num_entities // 64))
    for relation in range(3):
        for head in range(num_entities):
            word = int(index.words[relation, head // 64])
            has_pair = word >> (head % 64) & 1
            assert has_pair == (len(adjacency.neighbors(head, relation)) > 0)
            if has_pair:
                below = (word & ((1 << head % 64) - 1)).bit_count()
                pair = index.firsts[relation, head // 64] + below
                start, stop = adjacency.relation_offsets[relation : relation + 2]
                assert start <= pair < stop
                assert adjacency.pair_heads[pair] == head


def test_it_is_made_once() -> None:
    adjacency = random_adjacency(0, 20, 2, 30)
    assert adjacency.head_index is adjacency.head_index


def test_nothing_writes_into_it() -> None:
    for array in random_adjacency(0, 20, 2, 30).head_index:
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


def test_the_index_is_empty_for_many_entities_with_few_pairs() -> None:
    assert random_adjacency(0, 6_400, 2, 100).head_index.words.shape == (2, 100)
    left_out = random_adjacency(0, 64_000, 2, 100).head_index
    assert left_out.words.shape == left_out.firsts.shape == (0, 0)
    assert random_adjacency(0, 10, 2, 0).head_index.words.shape == (0, 0)
