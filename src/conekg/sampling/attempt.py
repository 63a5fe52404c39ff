"""Attempts: draw a query, answer it on both graphs, and accept or reject it.

The rejection rules are those of the BetaE release. Attempts are numbered. The outcome of
an attempt depends only on its number, the seed, the shape, the rules and the graphs, so any
number of workers can make them, and they are read in order. Only which duplicates are noticed
depends on the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.query.shape import Shape
from conekg.query.tree import is_monotone
from conekg.sampling.answers import graphs_of
from conekg.sampling.ground import (
    DEAD_END,
    GROUNDED,
    TWIN_BRANCHES,
    GroundingProgram,
    compile_grounding,
    compile_path_grounding,
    draw_query,
    possible_starts,
    random_below,
    random_state,
)
from conekg.sampling.memo import UNKNOWN, Memo, make_memo, recall, remember
from conekg.sampling.query_set import QueryBlock
from conekg.symbolic.kernels import evaluate
from conekg.symbolic.memory import (
    GraphArrays,
    Workspace,
    borrowed,
    graph_arrays,
    make_workspace,
)
from conekg.symbolic.program import compile_shape
from conekg.symbolic.sorted_arrays import append, grown, subtract
from conekg.symbolic.workers import PerThread, map_in_order

ACCEPTED: Final = GROUNDED
NO_ANSWER: Final = 3
NO_HARD_ANSWER: Final = 4
NO_RETRACTED_ANSWER: Final = 5
OVER_CAP: Final = 6
DUPLICATE: Final = 7

REASONS: dict[int, str] = {
    DEAD_END: "dead end",
    TWIN_BRANCHES: "identical branches",
    NO_ANSWER: "no answer",
    NO_HARD_ANSWER: "no hard answer",
    NO_RETRACTED_ANSWER: "no retracted answer",
    OVER_CAP: "over the cap",
    DUPLICATE: "duplicate",
}
"""Why an attempt was rejected, in the order in which the rules are applied."""

_ATTEMPTS_PER_PIECE = 2048


@dataclass(frozen=True)
class Piece:
    """The outcomes of consecutive attempts, and the queries that were accepted."""

    outcomes: NDArray[np.int8]
    """[attempts]"""
    accepted: QueryBlock
    """One query for each outcome `ACCEPTED`, in their order."""


class _Rules(NamedTuple):
    """The rejection rules, as compiled code takes them."""

    has_smaller: bool
    """Whether there is a smaller graph, whose answers are easy."""
    needs_retraction: bool
    """Whether at least one easy answer must be false on the larger graph: be retracted."""
    cap: int
    """The largest number of hard answers, and of retracted ones."""
    tries: int
    """Draws of a relation before a walk is given up as a dead end."""
    distinct: bool
    """Whether a query that was accepted before is rejected, as far as the memo remembers it."""


def attempts(
    graph: KnowledgeGraph,
    split: Split,
    shape: Shape,
    *,
    key: np.uint64,
    cap: int | None,
    tries: int,
    distinct: bool,
    forwards: bool = False,
    first: int = 0,
    workers: int | None = None,
) -> Iterator[Piece]:
    """Endless attempts, numbered from `first`, in order; none if the larger graph has no edges.

    `cap` limits the number of hard and of retracted answers, `tries` the draws of a relation.
    With `forwards`, a path is drawn from its anchor instead of from an answer. With `distinct`, a
    query that was accepted before is rejected if the worker remembers it. Each worker remembers
    only its own queries, so the caller must still remove the remaining duplicates.
    """
    smaller, larger = graphs_of(graph, split)
    full = graph_arrays(larger)
    small = full if smaller is None else graph_arrays(smaller)
    program = compile_shape(shape)
    grounding = compile_path_grounding(shape) if forwards else compile_grounding(shape)
    starts = possible_starts(larger)
    if not len(starts):
        return
    works = PerThread(
        lambda: (
            make_workspace(graph.num_entities, program.stack_size),
            make_workspace(graph.num_entities, program.stack_size),
            make_memo(shape),
        )
    )
    rules = _Rules(
        has_smaller=smaller is not None,
        # In a monotone query, such as `!e` or a union by De Morgan's law, no fact can retract an
        # answer, so none is required.
        needs_retraction=smaller is not None and not is_monotone(shape.template),
        cap=np.iinfo(np.int64).max if cap is None else cap,
        tries=tries,
        distinct=distinct,
    )

    def run(start: int) -> Piece:
        outcomes, anchors, relations, easy, hard = _run_attempts(
            (small, full),
            works.value,
            program.instructions,
            grounding,
            starts,
            key,
            (start, _ATTEMPTS_PER_PIECE),
            rules,
        )
        block = QueryBlock(shape, anchors, relations, Ragged(*easy), Ragged(*hard))
        return Piece(outcomes, block)

    yield from map_in_order(run, count(first, _ATTEMPTS_PER_PIECE), workers)


@njit(cache=True, nogil=True)
def _judge(
    small: GraphArrays,
    full: GraphArrays,
    small_work: Workspace,
    full_work: Workspace,
    instructions: IntArray,
    anchors: IntArray,
    relations: IntArray,
    hard: IntArray,
    rules: _Rules,
) -> tuple[int, int, IntArray]:
    """(outcome, number of hard answers, easy answers) of a query; writes the hard answers to
    `hard`."""
    answers = evaluate(full, full_work, instructions, anchors, relations)
    easy = answers[:0]
    if len(answers) == 0:
        return NO_ANSWER, 0, easy
    if rules.has_smaller:
        easy = evaluate(small, small_work, instructions, anchors, relations)
    num_hard = subtract(answers, easy, hard)
    num_retracted = len(easy) - (len(answers) - num_hard)
    outcome = ACCEPTED
    if num_hard == 0:
        outcome = NO_HARD_ANSWER
    elif rules.needs_retraction and num_retracted == 0:
        outcome = NO_RETRACTED_ANSWER
    elif max(num_hard, num_retracted) > rules.cap:
        outcome = OVER_CAP
    return outcome, num_hard, easy


@njit(cache=True, nogil=True)
def _run_attempts(
    graphs: tuple[GraphArrays, GraphArrays],
    works: tuple[Workspace, Workspace, Memo],
    instructions: IntArray,
    grounding: GroundingProgram,
    starts: IntArray,
    key: np.uint64,
    span: tuple[int, int],
    rules: _Rules,
) -> tuple[
    NDArray[np.int8], IntArray, IntArray, tuple[LongArray, IntArray], tuple[LongArray, IntArray]
]:
    """(outcomes, anchors, relations, easy, hard) of the attempts in `span` (first, how many).

    There is one outcome per attempt; the other arrays have one row per accepted query. Easy and
    hard answers are (offsets, values).
    """
    small, full = borrowed(graphs[0]), borrowed(graphs[1])
    small_work, full_work, memo = borrowed(works[0]), borrowed(works[1]), works[2]
    first, size = span
    outcomes = np.empty(size, dtype=np.int8)
    # One row more than can be accepted, for the query that is being drawn.
    anchors = np.empty((size + 1, grounding.num_anchors), dtype=np.int32)
    relations = np.empty((size + 1, grounding.num_relations), dtype=np.int32)
    easy_offsets = np.zeros(size + 1, dtype=np.int64)
    hard_offsets = np.zeros(size + 1, dtype=np.int64)
    easy = np.empty(16 * size, dtype=np.int32)
    hard = np.empty(16 * size, dtype=np.int32)
    nodes = np.empty((grounding.num_nodes, 2), dtype=np.int32)
    found = np.empty(full.num_entities, dtype=np.int32)
    state = np.empty(1, dtype=np.uint64)
    kept = 0
    for index in range(size):
        state[0] = random_state(key, first + index)
        start_entity = starts[random_below(state, len(starts))]
        outcome = draw_query(
            full,
            grounding,
            start_entity,
            state,
            rules.tries,
            nodes,
            anchors[kept],
            relations[kept],
        )
        if outcome == GROUNDED:
            slot, outcome = recall(memo, anchors[kept], relations[kept])
            if outcome != UNKNOWN:
                outcomes[index] = outcome
                continue
            outcome, num_hard, known = _judge(
                small,
                full,
                small_work,
                full_work,
                instructions,
                anchors[kept],
                relations[kept],
                found,
                rules,
            )
            if outcome != ACCEPTED:
                remember(memo, slot, anchors[kept], relations[kept], outcome)
            elif rules.distinct:
                remember(memo, slot, anchors[kept], relations[kept], DUPLICATE)
        outcomes[index] = outcome
        if outcome == ACCEPTED:
            start = hard_offsets[kept]
            hard = grown(hard, start, num_hard)
            hard_offsets[kept + 1] = append(found, 0, num_hard, hard, start)
            start = easy_offsets[kept]
            easy = grown(easy, start, len(known))
            easy_offsets[kept + 1] = append(known, 0, len(known), easy, start)
            kept += 1
    return (
        outcomes,
        anchors[:kept].copy(),
        relations[:kept].copy(),
        (easy_offsets[: kept + 1].copy(), easy[: easy_offsets[kept]].copy()),
        (hard_offsets[: kept + 1].copy(), hard[: hard_offsets[kept]].copy()),
    )
