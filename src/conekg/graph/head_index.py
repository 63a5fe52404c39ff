"""Head index: finds the pair of a (relation, head) in constant time, by bitmap.

One bit for each (relation, entity) says whether the pair exists. Each word of 64 bits is stored
with the number of its first pair, so the number of any other pair is that plus the count of
lower bits. The index is worth its memory only where there are few entities for the number of
pairs; for other graphs it is empty and pairs are found by binary search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MAX_WORDS_PER_PAIR = 4
"""A larger index would take several times the memory of the pairs themselves."""
_MAX_WORDS = 1 << 22
"""50 MB; a larger index fits in no processor cache."""


class HeadIndex(NamedTuple):
    """The pairs of every relation by head; both arrays have no rows if it would be too large."""

    words: NDArray[np.uint64]
    """[num_relations, words] bit `h % 64` of word `h // 64` is set if the relation leaves h."""
    firsts: NDArray[np.int32]
    """[num_relations, words] the number of the pair of the word's lowest set bit."""


def build_head_index(
    relation_offsets: NDArray[np.int64], pair_heads: NDArray[np.int32], num_entities: int
) -> HeadIndex:
    """The index of pairs that are sorted by relation, then head; empty if it would be too large."""
    num_relations, width = len(relation_offsets) - 1, (num_entities + 63) // 64
    if num_relations * width > min(_MAX_WORDS_PER_PAIR * len(pair_heads), _MAX_WORDS):
        return HeadIndex(np.zeros((0, 0), dtype=np.uint64), np.zeros((0, 0), dtype=np.int32))
    relations = np.repeat(np.arange(num_relations), np.diff(relation_offsets))
    places = relations * width + (pair_heads >> 6)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    firsts = np.zeros((num_relations, width), dtype=np.int32)
    firsts.reshape(-1)[places[starts]] = starts
    words = mark_rows(relations, pair_heads, firsts.shape)
    for array in (words, firsts):
        array.flags.writeable = False
    return HeadIndex(words, firsts)


def mark_rows(
    rows: NDArray[np.int64], entity_ids: NDArray[np.int32], shape: tuple[int, int]
) -> NDArray[np.uint64]:
    """[rows, words] one bitmap per row, with bit `e` set for each entity `e` of that row.

    `rows` and `entity_ids` are parallel arrays, sorted by row, then entity.
    """
    words = np.zeros(shape, dtype=np.uint64)
    places = rows * shape[1] + (entity_ids >> 6)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    words.reshape(-1)[places[starts]] = np.bitwise_or.reduceat(
        np.uint64(1) << (entity_ids & 63).astype(np.uint64), starts
    )
    return words
