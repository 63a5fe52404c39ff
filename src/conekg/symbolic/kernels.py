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

WordArray = NDArray[np.uint64]

NO_LIMIT = np.int64(2**62)

# Columns of `Workspace.stack`.
_ROW = 0
_IS_VIEW = 1
_START = 2
_LENGTH = 3
_IS_COMPLEMENT = 4

# A search by doubling steps beats a merge once one side is this many times longer (measured:
# anything from 8 to 32 is within a tenth of the best).
_GALLOP = 16


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


# --- sorted arrays ---------------------------------------------------------------------------


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
    if len(left) * _GALLOP < len(right):
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
    count = 0
    j = 0
    far = len(left) * _GALLOP < len(right)
    for value in left:
        if far:
            j = gallop(right, j, value)
        else:
            while j < len(right) and right[j] < value:
                j += 1
        if j == len(right) or right[j] != value:
            out[count] = value
            count += 1
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


# --- the stack -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def stored(graph: GraphArrays, work: Workspace, place: int) -> IntArray:
    """The sorted array of the set at a place of the stack, its complement flag aside."""
    start, length = work.stack[place, _START], work.stack[place, _LENGTH]
    if work.stack[place, _IS_VIEW]:
        return graph.tails[start : start + length]
    return work.rows[work.stack[place, _ROW], :length]


@njit(cache=True, nogil=True)
def is_complement(work: Workspace, place: int) -> bool:
    """Whether the set at a place is everything but its stored array."""
    return work.stack[place, _IS_COMPLEMENT] != 0


@njit(cache=True, nogil=True)
def _put(work: Workspace, place: int, length: int, complement: int) -> None:
    """Declare what this place's own row now holds."""
    work.stack[place, _IS_VIEW] = 0
    work.stack[place, _START] = 0
    work.stack[place, _LENGTH] = length
    work.stack[place, _IS_COMPLEMENT] = complement


@njit(cache=True, nogil=True)
def _keep_spare(work: Workspace, place: int, length: int, complement: int) -> None:
    """Let the spare row be this place's own, and its former row the spare."""
    spare = work.stack.shape[0] - 1
    own = work.stack[place, _ROW]
    work.stack[place, _ROW] = work.stack[spare, _ROW]
    work.stack[spare, _ROW] = own
    _put(work, place, length, complement)


@njit(cache=True, nogil=True)
def _combine(graph: GraphArrays, work: Workspace, place: int, is_union: bool) -> None:
    """Replace the sets at `place` and `place + 1` by their intersection or union."""
    left, right = stored(graph, work, place), stored(graph, work, place + 1)
    out = work.rows[work.stack[work.stack.shape[0] - 1, _ROW]]
    # a | b = !(!a & !b): a union is an intersection with all three flags turned.
    not_left = is_complement(work, place) != is_union
    not_right = is_complement(work, place + 1) != is_union
    complement = is_union
    if not_left and not_right:
        length = unite(left, right, out)
        complement = not complement
    elif not_left:
        length = subtract(right, left, out)
    elif not_right:
        length = subtract(left, right, out)
    else:
        length = intersect(left, right, out)
    _keep_spare(work, place, length, complement)


# --- projection ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def find_pair(graph: GraphArrays, head: int, relation: int) -> int:
    """The pair of a head and a relation, or -1."""
    stop = graph.entity_offsets[head + 1]
    place = lower_bound(graph.entity_relations, graph.entity_offsets[head], stop, relation)
    if place < stop and graph.entity_relations[place] == relation:
        return graph.entity_pairs[place]
    return -1


@njit(cache=True, nogil=True)
def _select_pairs(
    graph: GraphArrays, heads: IntArray, complement: bool, relation: int, out: IntArray
) -> int:
    """Write the pairs of a relation whose head is in the set to `out`; how many."""
    first, last = graph.relation_offsets[relation], graph.relation_offsets[relation + 1]
    count = 0
    if not complement and len(heads) * 4 < last - first:
        for head in heads:
            pair = find_pair(graph, head, relation)
            if pair >= 0:
                out[count] = pair
                count += 1
        return count
    i = 0
    far = (last - first) * _GALLOP < len(heads)
    for pair in range(first, last):
        head = graph.pair_heads[pair]
        if far:
            i = gallop(heads, i, head)
        else:
            while i < len(heads) and heads[i] < head:
                i += 1
        if (i < len(heads) and heads[i] == head) != complement:
            out[count] = pair
            count += 1
    return count


@njit(cache=True, nogil=True)
def _drain(work: Workspace, out: IntArray) -> int:
    """Write the marked entities to `out` in order, unmark them; how many."""
    count = 0
    one = np.uint64(1)
    for block in range(len(work.summary)):
        marked = work.summary[block]
        if marked == 0:
            continue
        work.summary[block] = 0
        while marked != 0:
            word = (block << 6) + np.int64(_trailing_zeros(marked))
            marked &= marked - one
            bits = work.words[word]
            work.words[word] = 0
            while bits != 0:
                out[count] = (word << 6) + np.int64(_trailing_zeros(bits))
                count += 1
                bits &= bits - one
    return count


@njit(cache=True, nogil=True)
def _mark_tails(graph: GraphArrays, work: Workspace, pairs: IntArray, limit: int) -> bool:
    """Mark the tails of the pairs; whether more than `limit` entities are marked."""
    count = 0
    one = np.uint64(1)
    for pair in pairs:
        for place in range(graph.pair_offsets[pair], graph.pair_offsets[pair + 1]):
            tail = np.uint64(graph.tails[place])
            word = tail >> np.uint64(6)
            bit = one << (tail & np.uint64(63))
            before = work.words[word]
            if before == 0:
                work.summary[word >> np.uint64(6)] |= one << (word & np.uint64(63))
            work.words[word] = before | bit
            count += (before & bit) == 0
        if count > limit:
            return True
    return False


@njit(cache=True, nogil=True)
def _project(graph: GraphArrays, work: Workspace, place: int, relation: int, limit: int) -> bool:
    """Replace a set by its image; False, and no set, when the image exceeds `limit`."""
    spare = work.rows[work.stack[work.stack.shape[0] - 1, _ROW]]
    heads = stored(graph, work, place)
    count = _select_pairs(graph, heads, is_complement(work, place), relation, spare)
    if count <= 1:
        _put(work, place, 0, 0)
        if count == 1:
            work.stack[place, _IS_VIEW] = 1
            work.stack[place, _START] = graph.pair_offsets[spare[0]]
            work.stack[place, _LENGTH] = (
                graph.pair_offsets[spare[0] + 1] - work.stack[place, _START]
            )
        return work.stack[place, _LENGTH] <= limit
    exceeds = _mark_tails(graph, work, spare[:count], limit)
    own = work.rows[work.stack[place, _ROW]]
    _put(work, place, _drain(work, own), 0)
    return not exceeds


# --- programs --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def evaluate(
    graph: GraphArrays,
    work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
    limit: int,
) -> bool:
    """Leave a query's answer set at the bottom of the stack.

    False, and no answer, when the last step is a projection whose image exceeds `limit`: then
    the query is known to be too large before all of it is computed.
    """
    top = -1
    last = instructions.shape[0] - 1
    for step in range(last + 1):
        opcode, slot = instructions[step, 0], instructions[step, 1]
        if opcode == PUSH_ANCHOR:
            top += 1
            work.rows[work.stack[top, _ROW], 0] = anchors[slot]
            _put(work, top, 1, 0)
        elif opcode == PUSH_UNIVERSE:
            top += 1
            _put(work, top, 0, 1)
        elif opcode == PROJECT:
            allowed = limit if step == last else NO_LIMIT
            if not _project(graph, work, top, relations[slot], allowed):
                return False
        elif opcode == NEGATE:
            work.stack[top, _IS_COMPLEMENT] ^= 1
        else:
            assert opcode == INTERSECT or opcode == UNITE
            top -= 1
            _combine(graph, work, top, opcode == UNITE)
    return True


@njit(cache=True, nogil=True)
def grown(values: IntArray, used: int, needed: int) -> IntArray:
    """`values`, or a longer copy of its first `used` entries with room for `needed` more."""
    if used + needed <= len(values):
        return values
    longer = np.empty(max(2 * len(values), used + needed), dtype=np.int32)
    longer[:used] = values[:used]
    return longer


@njit(cache=True, nogil=True)
def settled(graph: GraphArrays, work: Workspace) -> IntArray:
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
def answer_rows(
    graph: GraphArrays,
    work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
) -> tuple[LongArray, IntArray]:
    """Where each query's answers start, and all answers in one array."""
    offsets = np.zeros(anchors.shape[0] + 1, dtype=np.int64)
    values = np.empty(16 * anchors.shape[0] + 64, dtype=np.int32)
    used = 0
    for row in range(anchors.shape[0]):
        evaluate(graph, work, instructions, anchors[row], relations[row], NO_LIMIT)
        found = settled(graph, work)
        values = grown(values, used, len(found))
        values[used : used + len(found)] = found
        used += len(found)
        offsets[row + 1] = used
    return offsets, values[:used]
