"""The compiled loops of the exact engine: sets of entities as sorted arrays, and stack programs.

A set on the stack is a sorted array and a flag that says whether the set is that
array or everything but it, so that a negation costs nothing and an intersection
with one is a difference. The tails of a single (relation, head) pair are used
where they lie, without a copy. Compiled code does not check ids: callers do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from conekg.graph.adjacency import Adjacency, IntArray, LongArray
from conekg.symbolic.program import (
    INTERSECT,
    NEGATE,
    PROJECT,
    PUSH_ANCHOR,
    PUSH_UNIVERSE,
    UNITE,
)
from conekg.symbolic.sorted_arrays import (
    GALLOP,
    gallop,
    grown,
    intersect,
    lower_bound,
    subtract,
    unite,
)

WordArray = NDArray[np.uint64]

# Columns of `Workspace.stack`.
_ROW = 0
_IS_VIEW = 1
_START = 2
_LENGTH = 3
_IS_COMPLEMENT = 4

# Sets shorter than this are merged; marking them would not pay.
_MERGE = 16

# Looking each head up beats walking a relation's pairs once there are this many more pairs.
_LOOK_UP = 4


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


class Workspace(NamedTuple):
    """Memory of one worker, reused from query to query."""

    rows: IntArray
    """[stack_size + 1, num_entities] one row a set on the stack, and a spare."""
    stack: LongArray
    """[stack_size + 1, 5] row, is it a view into the tails, start, length, is it a complement."""
    words: WordArray
    """One bit an entity; all zero between operations."""
    summary: WordArray
    """One bit a word, set where the word is not zero, so that sparse sets scan quickly."""


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
    )


def make_workspace(num_entities: int, stack_size: int) -> Workspace:
    """Memory for programs that keep at most `stack_size` sets alive."""
    num_words = (num_entities + 63) // 64
    stack = np.zeros((stack_size + 1, 5), dtype=np.int64)
    stack[:, _ROW] = np.arange(stack_size + 1)
    return Workspace(
        np.empty((stack_size + 1, max(num_entities, 1)), dtype=np.int32),
        stack,
        np.zeros(num_words, dtype=np.uint64),
        np.zeros((num_words + 63) // 64, dtype=np.uint64),
    )


@intrinsic
def _trailing_zeros(_context: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


# --- the stack -------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def stored(graph: GraphArrays, work: Workspace, place: int) -> IntArray:
    """The sorted array of the set at a place of the stack, its complement flag aside."""
    start, length = work.stack[place, _START], work.stack[place, _LENGTH]
    if work.stack[place, _IS_VIEW]:
        return graph.tails[start : start + length]
    return work.rows[work.stack[place, _ROW], :length]


@njit(cache=True, nogil=True, inline="always")
def is_complement(work: Workspace, place: int) -> bool:
    """Whether the set at a place is everything but its stored array."""
    return work.stack[place, _IS_COMPLEMENT] != 0


@njit(cache=True, nogil=True, inline="always")
def _put(work: Workspace, place: int, length: int, complement: int) -> None:
    """Declare what this place's own row now holds."""
    work.stack[place, _IS_VIEW] = 0
    work.stack[place, _START] = 0
    work.stack[place, _LENGTH] = length
    work.stack[place, _IS_COMPLEMENT] = complement


@njit(cache=True, nogil=True, inline="always")
def _keep_spare(work: Workspace, place: int, length: int, complement: int) -> None:
    """Let the spare row be this place's own, and its former row the spare."""
    spare = work.stack.shape[0] - 1
    own = work.stack[place, _ROW]
    work.stack[place, _ROW] = work.stack[spare, _ROW]
    work.stack[spare, _ROW] = own
    _put(work, place, length, complement)


@njit(cache=True, nogil=True)
def _filter(words: WordArray, left: IntArray, right: IntArray, keep: bool, out: IntArray) -> int:
    """Write what `left` has in common with `right`, or has not, to `out`; its length.

    By marks in a bitmap: twice as quick as a merge once there is something to merge.
    """
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in right:
        words[np.uint64(value) >> six] |= one << (np.uint64(value) & low)
    count = 0
    for value in left:
        is_member = (words[np.uint64(value) >> six] >> (np.uint64(value) & low)) & one
        out[count] = value
        count += (is_member != 0) == keep
    for value in right:
        words[np.uint64(value) >> six] = 0
    return count


@njit(cache=True, nogil=True)
def _combine(graph: GraphArrays, work: Workspace, place: int, is_union: bool) -> None:
    """Replace the sets at `place` and `place + 1` by their intersection or union."""
    left, right = stored(graph, work, place), stored(graph, work, place + 1)
    out = work.rows[work.stack[work.stack.shape[0] - 1, _ROW]]
    # a | b = !(!a & !b): a union is an intersection with all three flags turned.
    not_left = is_complement(work, place) != is_union
    not_right = is_complement(work, place + 1) != is_union
    if not_left and not_right:
        _keep_spare(work, place, unite(left, right, out), not is_union)
        return
    if not_left:
        left, right = right, left
    shorter, longer = min(len(left), len(right)), max(len(left), len(right))
    if shorter >= _MERGE and shorter * GALLOP >= longer:
        length = _filter(work.words, left, right, not (not_left or not_right), out)
    elif not_left or not_right:
        length = subtract(left, right, out)
    else:
        length = intersect(left, right, out)
    _keep_spare(work, place, length, is_union)


# --- projection ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _look_up_pairs(
    entity_offsets: LongArray,
    entity_relations: IntArray,
    entity_pairs: IntArray,
    heads: IntArray,
    relation: int,
    out: IntArray,
) -> int:
    """Write the pairs of a relation and each of the heads that has it to `out`; how many."""
    count = 0
    for head in heads:
        stop = entity_offsets[head + 1]
        place = lower_bound(entity_relations, entity_offsets[head], stop, relation)
        if place < stop and entity_relations[place] == relation:
            out[count] = entity_pairs[place]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _search_pairs(
    pair_heads: IntArray, span: tuple[int, int], heads: IntArray, complement: bool, out: IntArray
) -> int:
    """Write the pairs in `span` whose head is in the set to `out`, by searching; how many."""
    count = place = 0
    for pair in range(span[0], span[1]):
        head = pair_heads[pair]
        place = gallop(heads, place, head)
        if (place < len(heads) and heads[place] == head) != complement:
            out[count] = pair
            count += 1
    return count


@njit(cache=True, nogil=True)
def _test_pairs(
    pair_heads: IntArray,
    span: tuple[int, int],
    words: WordArray,
    heads: IntArray,
    complement: bool,
    out: IntArray,
) -> int:
    """As `_search_pairs`, by marks in a bitmap."""
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for value in heads:
        words[np.uint64(value) >> six] |= one << (np.uint64(value) & low)
    count = 0
    for pair in range(span[0], span[1]):
        head = np.uint64(pair_heads[pair])
        is_member = (words[head >> six] >> (head & low)) & one
        out[count] = pair  # as in `intersect`, without branches on the data
        count += (is_member != 0) != complement
    for value in heads:
        words[np.uint64(value) >> six] = 0
    return count


@njit(cache=True, nogil=True, inline="always")
def _select_pairs(
    graph: GraphArrays,
    work: Workspace,
    heads: IntArray,
    complement: bool,
    relation: int,
    out: IntArray,
) -> int:
    """Write the pairs of a relation whose head is in the set to `out`; how many."""
    first, last = graph.relation_offsets[relation], graph.relation_offsets[relation + 1]
    if not complement and len(heads) * _LOOK_UP < last - first:
        count = _look_up_pairs(
            graph.entity_offsets, graph.entity_relations, graph.entity_pairs, heads, relation, out
        )
    elif (last - first) * GALLOP < len(heads):
        count = _search_pairs(graph.pair_heads, (first, last), heads, complement, out)
    else:
        count = _test_pairs(graph.pair_heads, (first, last), work.words, heads, complement, out)
    return count


@njit(cache=True, nogil=True, inline="always")
def _unite_tails(graph: GraphArrays, work: Workspace, pairs: IntArray, out: IntArray) -> int:
    """Write the distinct tails of the pairs to `out`, in order; how many.

    Entities are marked in a bitmap, which is then read in order. Where there are few tails
    for the size of the bitmap, a second one says which words to read.
    """
    if _count_edges(graph.pair_offsets, pairs) * 4 < len(work.words):
        count = _unite_sparse(graph.pair_offsets, graph.tails, work.words, work.summary, pairs, out)
    else:
        count = _unite_dense(graph.pair_offsets, graph.tails, work.words, pairs, out)
    return count


@njit(cache=True, nogil=True)
def _count_edges(pair_offsets: LongArray, pairs: IntArray) -> int:
    edges = 0
    for pair in pairs:
        edges += pair_offsets[pair + 1] - pair_offsets[pair]
    return edges


@njit(cache=True, nogil=True)
def _unite_dense(
    pair_offsets: LongArray, tails: IntArray, words: WordArray, pairs: IntArray, out: IntArray
) -> np.int64:
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for pair in pairs:
        # Unsigned numbers throughout: an index that may be negative costs a test each time.
        for place in range(np.uint64(pair_offsets[pair]), np.uint64(pair_offsets[pair + 1])):
            tail = np.uint64(tails[place])
            words[tail >> six] |= one << (tail & low)
    count = np.uint64(0)
    for word in range(np.uint64(len(words))):
        bits = words[word]
        if bits != 0:
            words[word] = 0
            while bits != 0:
                out[count] = (word << six) + _trailing_zeros(bits)
                count += one
                bits &= bits - one
    return np.int64(count)


@njit(cache=True, nogil=True)
def _unite_sparse(
    pair_offsets: LongArray,
    tails: IntArray,
    words: WordArray,
    summary: WordArray,
    pairs: IntArray,
    out: IntArray,
) -> np.int64:
    one, six, low = np.uint64(1), np.uint64(6), np.uint64(63)
    for pair in pairs:
        for place in range(np.uint64(pair_offsets[pair]), np.uint64(pair_offsets[pair + 1])):
            tail = np.uint64(tails[place])
            word = tail >> six
            words[word] |= one << (tail & low)
            summary[word >> six] |= one << (word & low)
    count = np.uint64(0)
    for block in range(np.uint64(len(summary))):
        marked = summary[block]
        summary[block] = 0
        while marked != 0:
            word = (block << six) + _trailing_zeros(marked)
            marked &= marked - one
            bits = words[word]
            words[word] = 0
            while bits != 0:
                out[count] = (word << six) + _trailing_zeros(bits)
                count += one
                bits &= bits - one
    return np.int64(count)


@njit(cache=True, nogil=True)
def _project(graph: GraphArrays, work: Workspace, place: int, relation: int) -> None:
    """Replace the set at `place` by its image under a relation."""
    spare = work.rows[work.stack[work.stack.shape[0] - 1, _ROW]]
    heads = stored(graph, work, place)
    count = _select_pairs(graph, work, heads, is_complement(work, place), relation, spare)
    if count == 1:
        start, stop = graph.pair_offsets[spare[0]], graph.pair_offsets[spare[0] + 1]
        _put(work, place, stop - start, 0)
        work.stack[place, _IS_VIEW] = 1
        work.stack[place, _START] = start
    else:
        out = work.rows[work.stack[place, _ROW]]
        _put(work, place, _unite_tails(graph, work, spare[:count], out), 0)


# --- programs --------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _settled(graph: GraphArrays, work: Workspace) -> IntArray:
    """The sorted entities of the set at the bottom of the stack, a complement written out."""
    if is_complement(work, 0):
        left_out = stored(graph, work, 0)
        out = work.rows[work.stack[work.stack.shape[0] - 1, _ROW]]
        count = 0
        i = 0
        for entity in range(graph.num_entities):
            if i < len(left_out) and left_out[i] == entity:
                i += 1
            else:
                out[count] = entity
                count += 1
        _keep_spare(work, 0, count, 0)
    return stored(graph, work, 0)


@njit(cache=True, nogil=True)
def evaluate(
    graph: GraphArrays,
    work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
) -> IntArray:
    """The sorted entities that answer a query; they stay as they are until the next one."""
    top = -1
    for step in range(instructions.shape[0]):
        opcode, slot = instructions[step, 0], instructions[step, 1]
        if opcode == PUSH_ANCHOR:
            top += 1
            work.rows[work.stack[top, _ROW], 0] = anchors[slot]
            _put(work, top, 1, 0)
        elif opcode == PUSH_UNIVERSE:
            top += 1
            _put(work, top, 0, 1)
        elif opcode == PROJECT:
            _project(graph, work, top, relations[slot])
        elif opcode == NEGATE:
            work.stack[top, _IS_COMPLEMENT] ^= 1
        else:
            assert opcode in (INTERSECT, UNITE)
            top -= 1
            _combine(graph, work, top, opcode == UNITE)
    return _settled(graph, work)


@njit(cache=True, nogil=True)
def answer_rows(
    graph: GraphArrays,
    work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
    buffer: IntArray,
) -> tuple[LongArray, IntArray]:
    """Where each query's answers start, and `buffer`, or a longer one, with all answers."""
    offsets = np.zeros(anchors.shape[0] + 1, dtype=np.int64)
    for row in range(anchors.shape[0]):
        found = evaluate(graph, work, instructions, anchors[row], relations[row])
        start = offsets[row]
        buffer = grown(buffer, start, len(found))
        buffer[start : start + len(found)] = found
        offsets[row + 1] = start + len(found)
    return offsets, buffer
