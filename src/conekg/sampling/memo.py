"""The memo: a table of bounded size in which each worker keeps the outcomes of its queries.

If a graph holds few queries of a shape, most attempts draw a query that was judged before.
Its outcome is the same again, or "duplicate" if it was accepted, and need not be computed.
A slot keeps all ids of the last query that was hashed to it, so a match is never wrong, and
a query that was overwritten is only judged again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray
from conekg.query.shape import Shape

UNKNOWN: Final = 0
"""The outcome of a query that is not in the table; no outcome in the table is zero."""
SLOTS: Final = 1 << 20
"""How many queries a table has room for; a power of two. Memory is taken only when it is used."""

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class Memo(NamedTuple):
    """Queries of one shape, each with its outcome."""

    ids: IntArray
    """[slots, anchors + relations]"""
    outcomes: NDArray[np.int8]
    """[slots] zero if the slot is free"""


def make_memo(shape: Shape, slots: int = SLOTS) -> Memo:
    """An empty table for queries of a shape."""
    width = shape.num_anchors + shape.num_relations
    return Memo(np.zeros((slots, width), dtype=np.int32), np.zeros(slots, dtype=np.int8))


@njit(cache=True, nogil=True, inline="always")
def recall(memo: Memo, anchors: IntArray, relations: IntArray) -> tuple[int, int]:
    """(slot, outcome) of a query: where it belongs, and its outcome or UNKNOWN."""
    mixed = np.uint64(0)
    for anchor in anchors:
        mixed = (mixed ^ np.uint64(anchor)) * _MULTIPLIER
        mixed ^= mixed >> _SHIFT
    for relation in relations:
        mixed = (mixed ^ np.uint64(relation)) * _MULTIPLIER
        mixed ^= mixed >> _SHIFT
    slot = int(mixed & np.uint64(len(memo.outcomes) - 1))
    outcome = memo.outcomes[slot]
    if outcome == UNKNOWN:
        return slot, UNKNOWN
    for place in range(len(anchors)):
        if memo.ids[slot, place] != anchors[place]:
            return slot, UNKNOWN
    for place in range(len(relations)):
        if memo.ids[slot, len(anchors) + place] != relations[place]:
            return slot, UNKNOWN
    return slot, outcome


@njit(cache=True, nogil=True, inline="always")
def remember(memo: Memo, slot: int, anchors: IntArray, relations: IntArray, outcome: int) -> None:
    """Keep the outcome of a query in the slot that `recall` returned."""
    for place in range(len(anchors)):
        memo.ids[slot, place] = anchors[place]
    for place in range(len(relations)):
        memo.ids[slot, len(anchors) + place] = relations[place]
    memo.outcomes[slot] = outcome
