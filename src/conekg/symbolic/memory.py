"""What compiled code works on: the arrays of a graph, and the memory of one worker.

Both are tuples of plain arrays, made once in Python and passed down. Compiled code
does not check ids: callers do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from conekg.graph.adjacency import Adjacency, IntArray, LongArray
from conekg.symbolic.bitmaps import SLACK, WordArray

_STEPS = 4096
"""Tails read in one go; what they need stays in the nearest cache."""


class GraphArrays(NamedTuple):
    """The arrays of an adjacency as compiled code takes them, all read-only."""

    num_entities: int
    relation_offsets: LongArray
    pair_heads: IntArray
    pair_offsets: LongArray
    tails: IntArray
    entity_offsets: LongArray
    entity_relations: IntArray
    entity_pairs: IntArray
    head_words: WordArray
    head_firsts: IntArray
    tail_words: WordArray
    tail_rows: IntArray


class Workspace(NamedTuple):
    """Memory of one worker, reused from query to query."""

    rows: IntArray
    """[stack_size + 1, num_entities + SLACK] one row a set on the stack, and a spare."""
    words: WordArray
    """[stack_size + 1, words] a bitmap beside each row; all zero where no set is in it."""
    stack: LongArray
    """[stack_size + 1, 5] row, form, pair, length, is it a complement; see `kernels`."""
    summary: WordArray
    """One bit a word, set where the word is not zero, so that sparse sets scan quickly."""
    steps: LongArray
    """From each tail to the next while pairs are read; all one between operations."""


def graph_arrays(adjacency: Adjacency) -> GraphArrays:
    """Read-only views of an adjacency; the same types whether built or memory-mapped.

    One set of types means that every kernel is compiled once and found in the cache after.
    """

    def frozen(array: NDArray[Any], dtype: type) -> Any:
        view = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray)
        view.flags.writeable = False
        return view

    return GraphArrays(
        adjacency.num_entities,
        frozen(adjacency.relation_offsets, np.int64),
        frozen(adjacency.pair_heads, np.int32),
        frozen(adjacency.pair_offsets, np.int64),
        frozen(adjacency.tails, np.int32),
        frozen(adjacency.entity_offsets, np.int64),
        frozen(adjacency.entity_relations, np.int32),
        frozen(adjacency.entity_pairs, np.int32),
        frozen(adjacency.head_index.words, np.uint64),
        frozen(adjacency.head_index.firsts, np.int32),
        frozen(adjacency.tail_index.words, np.uint64),
        frozen(adjacency.tail_index.rows, np.int32),
    )


def make_workspace(num_entities: int, stack_size: int) -> Workspace:
    """Memory for programs that keep at most `stack_size` sets alive."""
    num_words = (num_entities + 63) // 64
    stack = np.zeros((stack_size + 1, 5), dtype=np.int64)
    stack[:, 0] = np.arange(stack_size + 1)
    return Workspace(
        np.empty((stack_size + 1, num_entities + SLACK), dtype=np.int32),
        np.zeros((stack_size + 1, num_words), dtype=np.uint64),
        stack,
        np.zeros((num_words + 63) // 64, dtype=np.uint64),
        np.ones(_STEPS + num_words, dtype=np.int64),
    )


@intrinsic
def borrowed(_context: Any, arrays: Any) -> Any:
    """The same tuple of arrays, not counted as references; the caller's must outlive it.

    Every slice of a counted array adds to and takes from a number that all threads share,
    which cost more than a small query itself does.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[0]
        for place, kind in enumerate(signature.args[0]):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(
                    context, builder, builder.extract_value(value, place)
                )
                array.meminfo = ir.Constant(array.meminfo.type, None)
                array.parent = ir.Constant(array.parent.type, None)
                value = builder.insert_value(value, array._getvalue(), place)
        return value

    return arrays(arrays), generate
