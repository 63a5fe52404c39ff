"""Head index: which heads a relation has, as a bitmap that also knows their places.

One bit for each (relation, entity) says whether the pair exists; beside every word of
64 bits stands the number of the first pair in it, so that the pair of any head is one
look and one count of bits away. Worth its memory only where entities are few for the
number of pairs; elsewhere it is left out and pairs are found by searching.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_WORDS_A_PAIR = 4
"""An index larger than this would outgrow the pairs it points to several times."""
_MOST_WORDS = 1 << 22
"""50 MB, past which the index no longer stays in any cache."""


class HeadIndex(NamedTuple):
    """The pairs of every relation by head; no rows at all where it would be too large."""

    words: NDArray[np.uint64]
    """[num_relations, words] bit `h % 64` of word `h // 64` is set where h has the relation."""
    firsts: NDArray[np.int32]
    """[num_relations, words] the pair of the lowest bit set in the word."""


def build_head_index(
    relation_offsets: NDArray[np.int64], pair_heads: NDArray[np.int32], num_entities: int
) -> HeadIndex:
    """The index of pairs that are sorted by relation, then head; empty where too large."""
    num_relations, width = len(relation_offsets) - 1, (num_entities + 63) // 64
    if num_relations * width > min(_WORDS_A_PAIR * len(pair_heads), _MOST_WORDS):
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
    """Bitmaps, one bit an entity, of sets that are given in order of row, then entity."""
    words = np.zeros(shape, dtype=np.uint64)
    places = rows * shape[1] + (entity_ids >> 6)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    words.reshape(-1)[places[starts]] = np.bitwise_or.reduceat(
        np.uint64(1) << (entity_ids & 63).astype(np.uint64), starts
    )
    return words
