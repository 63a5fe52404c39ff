"""Sets of entities as bitmaps: setting, testing and listing bits.

A bitmap has one bit per entity. The bitmaps of a worker are all zero while they hold no
set: the code that sets bits clears them afterwards. Indices are unsigned because numba
tests every signed index for a negative value.
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
"""How many entries past the end of a set `write_bits` may overwrite."""


@intrinsic
def trailing_zeros(_context: Any, value: Any) -> Any:
    """The number of zeros below the lowest set bit; 64 if no bit is set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def count_ones(_context: Any, value: Any) -> Any:
    """The number of set bits."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True)
def write_bits(bits: np.uint64, base: np.uint64, out: IntArray, count: np.uint64) -> np.uint64:
    """Write `base` plus the position of each set bit to `out[count:]`; return the new count.

    Positions are written four at a time, even if fewer are left: a word seldom has more than
    four set bits, and the surplus writes cost less than a branch that the processor cannot
    predict (a third of the time for sets of 300).
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
    """Set the bits of the given entities."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in values:
        words[np.uint64(value) >> six] |= one << (np.uint64(value) & low)


@njit(cache=True, nogil=True)
def unmark(words: WordArray, values: IntArray) -> None:
    """Clear the bits of the given entities."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in values:
        words[np.uint64(value) >> six] &= ~(one << (np.uint64(value) & low))


@njit(cache=True, nogil=True)
def add_marks(words: WordArray, others: WordArray) -> None:
    """Set every bit that is set in `others`."""
    for word in range(np.uint64(len(words))):
        words[word] |= others[word]


@njit(cache=True, nogil=True)
def select_marks(words: WordArray, others: WordArray, keep: bool) -> None:
    """Keep only the bits that are set in `others` or, without `keep`, only those that are not."""
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
    """Write the marked entities to `out` in order, clear the bitmap, and return their number."""
    six = np.uint64(6)
    count = np.uint64(0)
    for word in range(np.uint64(len(words))):
        count = write_bits(words[word], word << six, out, count)
        words[word] = 0
    return np.int64(count)


@njit(cache=True, nogil=True)
def filter_marked(words: WordArray, values: IntArray, keep: bool, out: IntArray) -> np.int64:
    """Write the marked values or, without `keep`, the others to `out`; return their number."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    flip = np.uint64(not keep)
    count = np.uint64(0)
    for value in values:
        entity = np.uint64(value)
        out[count] = value
        count += ((words[entity >> six] >> (entity & low)) & one) ^ flip
    return np.int64(count)
