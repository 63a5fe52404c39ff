"""Tail index: bitmaps of the pairs that have many tails.

A (relation, head) pair is *wide* if it has more tails than half the words of a bitmap over all
entities. For a wide pair the tails are also stored as such a bitmap, so that sets are united,
intersected and looked up 64 entities at a time; this makes queries with negation a quarter
faster. Other pairs have no bitmap: reading their list of tails is faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conekg.graph.head_index import mark_rows

WIDE = 2
"""A pair is wide if this times its number of tails exceeds the number of words of a bitmap."""


class TailIndex(NamedTuple):
    """Bitmaps of the tails of every wide pair; at most four times the size of the lists."""

    words: NDArray[np.uint64]
    """[wide pairs, words] bit `t % 64` of word `t // 64` is set if t is a tail."""
    rows: NDArray[np.int32]
    """[num_pairs] the row of a wide pair in `words`, -1 for other pairs."""


def build_tail_index(
    pair_offsets: NDArray[np.int64], tails: NDArray[np.int32], num_entities: int
) -> TailIndex:
    """The tail index of an adjacency's pairs, whose tails are sorted within each pair."""
    width = (num_entities + 63) // 64
    lengths = np.diff(pair_offsets)
    is_wide = WIDE * lengths > width
    rows = np.where(is_wide, np.cumsum(is_wide) - 1, -1).astype(np.int32)
    wide_lengths = lengths[is_wide]
    words = mark_rows(
        np.repeat(np.arange(len(wide_lengths)), wide_lengths),
        tails[np.repeat(is_wide, lengths)],
        (len(wide_lengths), width),
    )
    for array in (words, rows):
        array.flags.writeable = False
    return TailIndex(words, rows)
