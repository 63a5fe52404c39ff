"""The arrays that compiled code works on: those of a graph, and the memory of one worker.

Both are tuples of plain arrays that Python creates once and passes to the compiled code.
Compiled code does not check ids; its callers do.
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
"""Tails read at once: few enough that their steps stay in the processor's first-level cache."""


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
    """[stack_size + 1, num_entities + SLACK] one row per set on the stack, and a spare."""
    words: WordArray
    """[stack_size + 1, words] one bitmap per row; all zero while it holds no set."""
    stack: LongArray
    """[stack_size + 1, 5] row, form, pair, length and complement flag of each set; see
    `kernels`."""
    summary: WordArray
    """One bit per word of a bitmap, set if the word is not zero: sparse bitmaps are read faster."""
    steps: LongArray
    """The distance from each tail to the next while pairs are read; all one between operations."""


def graph_arrays(adjacency: Adjacency) -> GraphArrays:
    """Read-only views of an adjacency, of the same types whether it was built or memory-mapped.

    With one set of types, each kernel is compiled only once and then loaded from the cache.
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
    """Memory for programs with at most `stack_size` sets on the stack."""
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
    """The same tuple of arrays without reference counting; the caller must keep the originals.

    Every slice of a counted array changes a reference count that all threads share, which costs
    more than answering a small query.
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
