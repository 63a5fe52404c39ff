"""The compiled core of the exact engine: programs run on a stack of sets.

A set on the stack is a sorted array or a bitmap, with a flag for the complement: a negation
only flips the flag, and an intersection with a negated set is a difference. The tails of a
single (relation, head) pair are read from the graph's own array without a copy. A bitmap is
turned into a sorted array only when its entities are needed in order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.tail_index import WIDE
from conekg.symbolic.bitmaps import (
    SLACK,
    WordArray,
    add_marks,
    clear,
    filter_marked,
    mark,
    read_marks,
    select_marks,
    unmark,
)
from conekg.symbolic.memory import GraphArrays, Workspace, borrowed
from conekg.symbolic.program import (
    NEGATE,
    PROJECT,
    PUSH_ANCHOR,
    PUSH_UNIVERSE,
    UNITE,
)
from conekg.symbolic.projection import (
    count_edges,
    mark_tails,
    marked_pairs,
    select_pairs,
    unite_tails,
)
from conekg.symbolic.sorted_arrays import (
    GALLOP,
    append,
    grown,
    intersect,
    list_others,
    subtract,
    unite,
)

# Columns of `Workspace.stack`.
_ROW = 0
_FORM = 1
_PAIR = 2
_LENGTH = 3
_IS_COMPLEMENT = 4

# Forms of a set: a sorted array in its own row, the tails of one pair in the graph's array, or
# its own bitmap, not yet turned into a sorted array.
_LISTED = 0
_VIEW = 1
_MARKED = 2

# Sets shorter than this are merged; a bitmap would cost more than it saves.
_MERGE = 16

# A projection with fewer tails than one per this many words is listed at once.
_SPARSE = 4

# With a head index, the pairs of a set without a sorted array are found word by word in its bitmap.
# A set that has both is read that way once it has this many times more heads than its bitmap has
# words.
_LOOK_UP = 3

# --- the stack -------------------------------------------------------------------------------
#
# Functions that take a whole graph or workspace are inlined, since passing all those arrays costs
# more than most operations do. The others take the few arrays they need and compile faster.


@njit(cache=True, nogil=True)
def _put(stack: LongArray, place: int, form: int, length: int) -> None:
    """Declare the form and length of the set at a place; it is not a complement."""
    stack[place, _FORM] = form
    stack[place, _LENGTH] = length
    stack[place, _IS_COMPLEMENT] = 0


@njit(cache=True, nogil=True)
def _swap(stack: LongArray, place: int, other: int) -> None:
    """Exchange the sets of two places."""
    for column in range(stack.shape[1]):
        stack[place, column], stack[other, column] = stack[other, column], stack[place, column]


@njit(cache=True, nogil=True)
def _has_marks(stack: LongArray, place: int, width: int) -> bool:
    """Whether the set at a place has a bitmap, its own or one of the tail index."""
    form = stack[place, _FORM]
    return form == _MARKED or (form == _VIEW and stack[place, _LENGTH] * WIDE > width)


@njit(cache=True, nogil=True)
def _forget(stack: LongArray, place: int, words: WordArray) -> None:
    """Clear the bitmap of a set that is no longer needed."""
    if stack[place, _FORM] == _MARKED:
        clear(words[stack[place, _ROW]])


@njit(cache=True, nogil=True, inline="always")
def _listed(graph: GraphArrays, work: Workspace, place: int) -> IntArray:
    """The sorted array of the set at a place; the complement flag is ignored."""
    return _as_list(work.stack, place, work.rows, work.words, graph.pair_offsets, graph.tails)


@njit(cache=True, nogil=True)
def _as_list(
    stack: LongArray,
    place: int,
    rows: IntArray,
    words: WordArray,
    pair_offsets: LongArray,
    tails: IntArray,
) -> IntArray:
    row = stack[place, _ROW]
    if stack[place, _FORM] == _MARKED:
        stack[place, _LENGTH] = read_marks(words[row], rows[row])
        stack[place, _FORM] = _LISTED
    length = stack[place, _LENGTH]
    if stack[place, _FORM] == _VIEW:
        start = pair_offsets[stack[place, _PAIR]]
        return tails[start : start + length]
    return rows[row, :length]


@njit(cache=True, nogil=True, inline="always")
def _marks(graph: GraphArrays, work: Workspace, place: int) -> WordArray:
    """The bitmap of a set that has one; the complement flag is ignored."""
    return _as_marks(work.stack, place, work.words, graph.tail_words, graph.tail_rows)


@njit(cache=True, nogil=True)
def _as_marks(
    stack: LongArray, place: int, words: WordArray, tail_words: WordArray, tail_rows: IntArray
) -> WordArray:
    if stack[place, _FORM] == _MARKED:
        return words[stack[place, _ROW]]
    return tail_words[tail_rows[stack[place, _PAIR]]]


# --- operators -------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _combine(graph: GraphArrays, work: Workspace, place: int, is_union: bool) -> None:
    """Replace the sets at `place` and `place + 1` by their intersection or union."""
    stack, width = work.stack, work.words.shape[1]
    # a | b = !(!a & !b): a union is an intersection with all three flags turned.
    not_left = (stack[place, _IS_COMPLEMENT] != 0) != is_union
    not_right = (stack[place + 1, _IS_COMPLEMENT] != 0) != is_union
    if not_left and not_right:
        _unite(graph, work, place)
        stack[place, _IS_COMPLEMENT] = not is_union
    else:
        keep = not (not_left or not_right)
        # A complement goes second. So does the only set with a bitmap: the entities of the first
        # set are looked up in it.
        if not_left or (
            keep and _has_marks(stack, place, width) and not _has_marks(stack, place + 1, width)
        ):
            _swap(stack, place, place + 1)
        _select(graph, work, place, keep)
        stack[place, _IS_COMPLEMENT] = is_union


@njit(cache=True, nogil=True, inline="always")
def _unite(graph: GraphArrays, work: Workspace, place: int) -> None:
    """Add the next set to the set at `place`; complement flags are ignored."""
    stack, other, spare = work.stack, place + 1, work.stack.shape[0] - 1
    width = work.words.shape[1]
    if _has_marks(stack, place, width) or _has_marks(stack, other, width):
        if stack[other, _FORM] == _MARKED:
            _swap(stack, place, other)
        words = work.words[stack[place, _ROW]]
        for operand in (place, other):
            if _has_marks(stack, operand, width):
                add_marks(words, _marks(graph, work, operand))
            else:
                mark(words, _listed(graph, work, operand))
        _forget(stack, other, work.words)
        _put(stack, place, _MARKED, 0)
    else:
        left, right = _listed(graph, work, place), _listed(graph, work, other)
        length = unite(left, right, work.rows[stack[spare, _ROW]])
        _swap(stack, place, spare)
        _put(stack, place, _LISTED, length)


@njit(cache=True, nogil=True, inline="always")
def _select(graph: GraphArrays, work: Workspace, place: int, keep: bool) -> None:
    """Keep the entities of the set at `place` that the next set has or, without `keep`, has not."""
    stack, other, spare = work.stack, place + 1, work.stack.shape[0] - 1
    has_marks = _has_marks(stack, other, work.words.shape[1])
    if stack[place, _FORM] == _MARKED:
        words = work.words[stack[place, _ROW]]
        if has_marks:
            select_marks(words, _marks(graph, work, other), keep)
        else:
            unmark(words, _listed(graph, work, other))
    else:
        left, row = _listed(graph, work, place), stack[spare, _ROW]
        if has_marks:
            length = filter_marked(_marks(graph, work, other), left, keep, work.rows[row])
        else:
            right = _listed(graph, work, other)
            length = _select_listed(left, right, keep, work.words[row], work.rows[row])
        _swap(stack, place, spare)
        _put(stack, place, _LISTED, length)
    _forget(stack, other, work.words)


@njit(cache=True, nogil=True)
def _select_listed(
    left: IntArray, right: IntArray, keep: bool, words: WordArray, out: IntArray
) -> int:
    """Write `left & right` or, without `keep`, `left - right` to `out`; return its length."""
    shorter, longer = min(len(left), len(right)), max(len(left), len(right))
    if shorter >= _MERGE and shorter * GALLOP >= longer:
        # Twice as fast as a merge of sets of this size.
        mark(words, right)
        length = filter_marked(words, left, keep, out)
        unmark(words, right)
        return length
    return intersect(left, right, out) if keep else subtract(left, right, out)


@njit(cache=True, nogil=True, inline="always")
def _project(graph: GraphArrays, work: Workspace, place: int, relation: int) -> None:
    """Replace the set at `place` by its image under a relation."""
    stack, width, spare = work.stack, work.words.shape[1], work.stack.shape[0] - 1
    words, out = work.words[stack[place, _ROW]], work.rows[stack[spare, _ROW]]
    complement = stack[place, _IS_COMPLEMENT] != 0
    if (
        graph.head_words.shape[0] > 0
        and _has_marks(stack, place, width)
        and (stack[place, _FORM] == _MARKED or stack[place, _LENGTH] > _LOOK_UP * width)
    ):
        marks = _marks(graph, work, place)
        count = marked_pairs(graph.head_words, graph.head_firsts, marks, complement, relation, out)
        _forget(stack, place, work.words)
    else:
        heads = _listed(graph, work, place)
        count = select_pairs(graph, words, heads, complement, relation, out)
    pairs = out[:count]
    if count == 1:
        stack[place, _PAIR] = pairs[0]
        length = graph.pair_offsets[pairs[0] + 1] - graph.pair_offsets[pairs[0]]
        _put(stack, place, _VIEW, length)
    elif count * _SPARSE < width and count_edges(graph.pair_offsets, pairs) * _SPARSE < width:
        row = work.rows[stack[place, _ROW]]
        length = unite_tails(graph.pair_offsets, graph.tails, words, work.summary, pairs, row)
        _put(stack, place, _LISTED, length)
    else:
        mark_tails(
            graph.pair_offsets,
            graph.tails,
            graph.tail_words,
            graph.tail_rows,
            pairs,
            work.steps,
            words,
        )
        _put(stack, place, _MARKED, 0)


# --- programs --------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _run(
    graph: GraphArrays,
    work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
) -> None:
    """Leave the set that answers a query at the bottom of the stack."""
    top = -1
    for step in range(instructions.shape[0]):
        opcode, slot = instructions[step, 0], instructions[step, 1]
        if opcode == PUSH_ANCHOR:
            top += 1
            work.rows[work.stack[top, _ROW], 0] = anchors[slot]
            _put(work.stack, top, _LISTED, 1)
        elif opcode == PUSH_UNIVERSE:
            top += 1
            _put(work.stack, top, _LISTED, 0)
            work.stack[top, _IS_COMPLEMENT] = 1
        elif opcode == PROJECT:
            _project(graph, work, top, relations[slot])
        elif opcode == NEGATE:
            work.stack[top, _IS_COMPLEMENT] ^= 1
        else:  # INTERSECT or UNITE
            top -= 1
            _combine(graph, work, top, opcode == UNITE)


@njit(cache=True, nogil=True, inline="always")
def _settled(graph: GraphArrays, work: Workspace) -> IntArray:
    """The sorted entities of the set at the bottom of the stack, with a complement listed."""
    stack, spare = work.stack, work.stack.shape[0] - 1
    if stack[0, _IS_COMPLEMENT]:
        out = work.rows[stack[spare, _ROW]]
        count = list_others(_listed(graph, work, 0), graph.num_entities, out)
        _swap(stack, 0, spare)
        _put(stack, 0, _LISTED, count)
    return _listed(graph, work, 0)


@njit(cache=True, nogil=True)
def evaluate(
    graph: GraphArrays,
    work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
) -> IntArray:
    """The sorted entities that answer a query, valid until the workspace is used again."""
    _run(graph, work, instructions, anchors, relations)
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
    """Answer one query per row: the offsets of the rows, and `buffer` or a longer copy of it
    with the answers of all rows."""
    graph, work = borrowed(graph), borrowed(work)
    instructions, anchors, relations = borrowed((instructions, anchors, relations))
    offsets = np.zeros(anchors.shape[0] + 1, dtype=np.int64)
    for row in range(anchors.shape[0]):
        _run(graph, work, instructions, anchors[row], relations[row])
        start = offsets[row]
        buffer = grown(buffer, start, graph.num_entities + SLACK)
        out = buffer[start:]
        if work.stack[0, _FORM] == _MARKED and not work.stack[0, _IS_COMPLEMENT]:
            count = read_marks(work.words[work.stack[0, _ROW]], out)
        else:
            found = _settled(graph, work)
            count = append(found, 0, len(found), out, 0)
        offsets[row + 1] = start + count
    return offsets, buffer
