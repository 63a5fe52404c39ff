"""Sets of entities as sorted arrays: search, intersection, difference, union.

Results are written into arrays that the caller provides and that must be long enough;
only `grown` allocates memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import IntArray

# A search by doubling steps is faster than a merge once one set is this many times larger
# (measured: anything from 8 to 32 is within a tenth of the best).
GALLOP = 16


@njit(cache=True, nogil=True)
def lower_bound(values: IntArray, start: int, stop: int, wanted: int) -> int:
    """The first index from `start` to `stop` whose value is not below `wanted`, else `stop`."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < wanted:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True, nogil=True)
def gallop(values: IntArray, start: int, wanted: int) -> int:
    """As `lower_bound` to the end of `values`; fast if the result is near `start`."""
    size = len(values)
    step = 1
    while start + step < size and values[start + step] < wanted:
        start += step
        step <<= 1
    return lower_bound(values, start, min(start + step + 1, size), wanted)


@njit(cache=True, nogil=True)
def intersect(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write the entities in both sets to `out`; return their number."""
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
        # Written unconditionally, without branches on the data: the cost of a merge is its
        # mispredicted branches, not its stores.
        out[count] = a
        count += a == b
        i += a <= b
        j += b <= a
    return count


@njit(cache=True, nogil=True)
def subtract(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write the entities in `left` but not in `right` to `out`; return their number."""
    count = i = j = 0
    if len(left) * GALLOP < len(right):
        for value in left:
            j = gallop(right, j, value)
            if j == len(right) or right[j] != value:
                out[count] = value
                count += 1
        return count
    if len(right) * GALLOP < len(left):
        for value in right:
            stop = gallop(left, i, value)
            count = append(left, i, stop, out, count)
            i = stop + (stop < len(left) and left[stop] == value)
        return append(left, i, len(left), out, count)
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        out[count] = a
        count += a < b
        i += a <= b
        j += b <= a
    return append(left, i, len(left), out, count)


@njit(cache=True, nogil=True)
def unite(left: IntArray, right: IntArray, out: IntArray) -> int:
    """Write the entities in either set to `out`; return their number."""
    if len(left) > len(right):
        left, right = right, left
    count = i = j = 0
    if len(left) * GALLOP < len(right):
        for value in left:
            stop = gallop(right, j, value)
            count = append(right, j, stop, out, count)
            out[count] = value
            count += 1
            j = stop + (stop < len(right) and right[stop] == value)
        return append(right, j, len(right), out, count)
    while i < len(left) and j < len(right):
        a, b = left[i], right[j]
        out[count] = min(a, b)
        count += 1
        i += a <= b
        j += b <= a
    count = append(left, i, len(left), out, count)
    return append(right, j, len(right), out, count)


@njit(cache=True, nogil=True)
def list_others(values: IntArray, stop: int, out: IntArray) -> int:
    """Write the numbers from 0 to `stop - 1` that are not in `values` to `out`; return how many."""
    count = i = 0
    for number in range(stop):
        if i < len(values) and values[i] == number:
            i += 1
        else:
            out[count] = number
            count += 1
    return count


@njit(cache=True, nogil=True)
def append(values: IntArray, start: int, stop: int, out: IntArray, count: int) -> int:
    """Write `values[start:stop]` to `out[count:]`; return the new count.

    A loop, because numba takes seconds to compile the checks of a slice assignment.
    """
    for place in range(start, stop):
        out[count + place - start] = values[place]
    return count + stop - start


@njit(cache=True, nogil=True)
def grown(values: IntArray, used: int, needed: int) -> IntArray:
    """`values`, or a longer copy of its first `used` entries with room for `needed` more."""
    if used + needed <= len(values):
        return values
    longer = np.empty(max(2 * len(values), used + needed), dtype=np.int32)
    append(values, 0, used, longer, 0)
    return longer
