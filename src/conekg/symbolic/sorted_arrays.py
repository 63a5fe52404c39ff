"""Sets of entities as sorted arrays: search, intersection, difference, union.

Results are written into arrays the caller provides, which must have room for them;
nothing here allocates but `grown`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import IntArray

# A search by doubling steps beats a merge once one side is this many times longer (measured:
# anything from 8 to 32 is within a tenth of the best).
GALLOP = 16


@njit(cache=True, nogil=True)
def lower_bound(values: IntArray, start: int, stop: int, wanted: int) -> int:
    """The first place in `values[start:stop]` that is not below `wanted`."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < wanted:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True, nogil=True)
def gallop(values: IntArray, start: int, wanted: int) -> int:
    """As `lower_bound` to the end of `values`, quick when the place is near `start`."""
    size = len(values)
    step = 1
    while start + step < size and values[start + step] < wanted:
        start += step
        step <<= 1
    return lower_bound(values, start, min(start + step + 1, size), wanted)


@njit(cache=True, nogil=True)
def intersect(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write what both sets hold to `out`; its length."""
    if len(left) > len(right):
        left, right = right, left
    count = 0
    j = 0
    if len(left) * GALLOP < len(right):
        for value in left:
            j = gallop(right, j, value)
            if j == len(right):
                break
            if right[j] == value:
                out[count] = value
                count += 1
        return count
    i = 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        # Written unconditionally and without branches on the data: mispredicted jumps, not
        # stores, are what a merge costs.
        out[count] = a
        count += a == b
        i += a <= b
        j += b <= a
    return count


@njit(cache=True, nogil=True)
def subtract(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write what `left` holds and `right` does not to `out`; its length."""
    count = i = j = 0
    if len(left) * GALLOP < len(right):
        for value in left:
            j = gallop(right, j, value)
            if j == len(right) or right[j] != value:
                out[count] = value
                count += 1
        return count
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        out[count] = a
        count += a < b
        i += a <= b
        j += b <= a
    while i < len(left):
        out[count] = left[i]
        count += 1
        i += 1
    return count


@njit(cache=True, nogil=True)
def unite(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write what either set holds to `out`; its length."""
    count = i = j = 0
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        out[count] = min(a, b)
        count += 1
        i += a <= b
        j += b <= a
    while i < len(left):
        out[count] = left[i]
        count += 1
        i += 1
    while j < len(right):
        out[count] = right[j]
        count += 1
        j += 1
    return count


@njit(cache=True, nogil=True)
def grown(values: IntArray, used: int, needed: int) -> IntArray:
    """`values`, or a longer copy of its first `used` entries with room for `needed` more."""
    if used + needed <= len(values):
        return values
    longer = np.empty(max(2 * len(values), used + needed), dtype=np.int32)
    longer[:used] = values[:used]
    return longer
