"""The compiled core of the exact engine: programs run on a stack of sets.

A set on the stack is a sorted array and a flag that says whether the set is that
array or everything but it, so that a negation costs nothing and an intersection
with one is a difference. The tails of a single (relation, head) pair are used
where they lie, without a copy.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import IntArray, LongArray
from conekg.symbolic.bitmaps import filter_marked
from conekg.symbolic.memory import GraphArrays, Workspace, borrowed
from conekg.symbolic.program import (
    INTERSECT,
    NEGATE,
    PROJECT,
    PUSH_ANCHOR,
    PUSH_UNIVERSE,
    UNITE,
)
from conekg.symbolic.projection import select_pairs, unite_tails
from conekg.symbolic.sorted_arrays import GALLOP, grown, intersect, subtract, unite

# Columns of `Workspace.stack`.
_ROW = 0
_IS_VIEW = 1
_START = 2
_LENGTH = 3
_IS_COMPLEMENT = 4

# Sets shorter than this are merged; marking them would not pay.
_MERGE = 16

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
        length = filter_marked(work.words, left, right, not (not_left or not_right), out)
    elif not_left or not_right:
        length = subtract(left, right, out)
    else:
        length = intersect(left, right, out)
    _keep_spare(work, place, length, is_union)


@njit(cache=True, nogil=True)
def _project(graph: GraphArrays, work: Workspace, place: int, relation: int) -> None:
    """Replace the set at `place` by its image under a relation."""
    spare = work.rows[work.stack[work.stack.shape[0] - 1, _ROW]]
    heads = stored(graph, work, place)
    count = select_pairs(graph, work, heads, is_complement(work, place), relation, spare)
    if count == 1:
        start, stop = graph.pair_offsets[spare[0]], graph.pair_offsets[spare[0] + 1]
        _put(work, place, stop - start, 0)
        work.stack[place, _IS_VIEW] = 1
        work.stack[place, _START] = start
    else:
        out = work.rows[work.stack[place, _ROW]]
        _put(work, place, unite_tails(graph, work, spare[:count], out), 0)


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
    graph, work = borrowed(graph), borrowed(work)
    instructions, anchors, relations = borrowed((instructions, anchors, relations))
    offsets = np.zeros(anchors.shape[0] + 1, dtype=np.int64)
    for row in range(anchors.shape[0]):
        found = evaluate(graph, work, instructions, anchors[row], relations[row])
        start = offsets[row]
        buffer = grown(buffer, start, len(found))
        buffer[start : start + len(found)] = found
        offsets[row + 1] = start + len(found)
    return offsets, buffer
