"""Sets of entities as bitmaps: marking, testing, and reading the marks in order.

A bitmap has one bit an entity; those of a worker are all zero where no set is kept in
them: what marks them clears them. Numbers are unsigned throughout, since an index that
may be negative costs a test each time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray

WordArray = NDArray[np.uint64]

SLACK: Final = 4
"""Entries past the end of a set that `write_bits` may write to."""


@intrinsic
def trailing_zeros(_context: Any, value: Any) -> Any:
    """How many zeros are below the lowest bit that is set; 64 where none is."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def count_ones(_context: Any, value: Any) -> Any:
    """How many bits are set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def write_bits(bits: np.uint64, base: np.uint64, out: IntArray, count: np.uint64) -> np.uint64:
    """Write `base` and the place of each bit set to `out` from `count` on; the new count.

    Four at a time whether there are four or not: a word seldom has more, and what is written
    too much costs less than a jump that cannot be foreseen (a third of the time for sets of 300).
    """
    one = np.uint64(1)
    place = count
    count += count_ones(bits)
    while True:
        for step in range(np.uint64(SLACK)):
            out[place + step] = base + trailing_zeros(bits)
            bits &= bits - one
        place += np.uint64(SLACK)
        if place >= count:
            return count


@njit(cache=True, nogil=True)
def mark(words: WordArray, values: IntArray) -> None:
    """Set the bits of some entities."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in values:
        words[np.uint64(value) >> six] |= one << (np.uint64(value) & low)


@njit(cache=True, nogil=True)
def unmark(words: WordArray, values: IntArray) -> None:
    """Clear the bits of some entities."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in values:
        words[np.uint64(value) >> six] &= ~(one << (np.uint64(value) & low))


@njit(cache=True, nogil=True)
def add_marks(words: WordArray, others: WordArray) -> None:
    """Set the bits that another bitmap has."""
    for word in range(np.uint64(len(words))):
        words[word] |= others[word]


@njit(cache=True, nogil=True)
def select_marks(words: WordArray, others: WordArray, keep: bool) -> None:
    """Leave of a bitmap the bits that another one has, or has not."""
    flip = np.uint64(0) if keep else ~np.uint64(0)
    for word in range(np.uint64(len(words))):
        words[word] &= others[word] ^ flip


@njit(cache=True, nogil=True)
def clear(words: WordArray) -> None:
    """Clear all bits."""
    for word in range(np.uint64(len(words))):
        words[word] = 0


@njit(cache=True, nogil=True)
def read_marks(words: WordArray, out: IntArray) -> np.int64:
    """Write the marked entities to `out`, in order, and clear the marks; how many."""
    six = np.uint64(6)
    count = np.uint64(0)
    for word in range(np.uint64(len(words))):
        count = write_bits(words[word], word << six, out, count)
        words[word] = 0
    return np.int64(count)


@njit(cache=True, nogil=True)
def filter_marked(words: WordArray, values: IntArray, keep: bool, out: IntArray) -> np.int64:
    """Write the values that are marked, or those that are not, to `out`; how many."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    flip = np.uint64(not keep)
    count = np.uint64(0)
    for value in values:
        entity = np.uint64(value)
        out[count] = value
        count += ((words[entity >> six] >> (entity & low)) & one) ^ flip
    return np.int64(count)
