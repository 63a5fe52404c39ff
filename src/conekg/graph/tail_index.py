"""Tail index: bitmaps of the pairs that have many tails.

A (relation, head) pair that is wide, having more tails than half the words of a bitmap, has
them also as one bit an entity, so that they are united, intersected and looked up by words
instead of one by one, which takes a quarter off queries with negation. Other pairs have
none: reading their lists is quicker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conekg.graph.head_index import mark_rows

WIDE = 2
"""A pair is wide where this many times its tails are more than the words of a bitmap."""


class TailIndex(NamedTuple):
    """The tails of every wide pair, in at most four times the memory of their lists."""

    words: NDArray[np.uint64]
    """[wide pairs, words] bit `t % 64` of word `t // 64` is set where t is a tail."""
    rows: NDArray[np.int32]
    """[num_pairs] the row of a wide pair, -1 for others."""


def build_tail_index(
    pair_offsets: NDArray[np.int64], tails: NDArray[np.int32], num_entities: int
) -> TailIndex:
    """The index of tails that are sorted within each pair."""
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
