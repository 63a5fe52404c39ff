"""Grounding: draw a query of any shape backwards from one of its answers, or a path forwards.

A target entity is drawn first and every branch is walked backwards from it, so that a query
without negation has an answer by construction (BetaE, Appendix on query generation). A path
can also be walked forwards from its anchor, which does not favour queries with many answers.
Draw number n depends only on the seed, the shape, the graph and n, so any worker can make it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, assert_never

import numpy as np
from numba import njit
from numpy.typing import NDArray

from conekg.graph.adjacency import Adjacency, IntArray
from conekg.query.shape import Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold
from conekg.symbolic.memory import GraphArrays

GROUNDED: Final = 0
DEAD_END: Final = 1
TWIN_BRANCHES: Final = 2

_FIX_ANCHOR: Final = 0
_WALK_BACK: Final = 1
_WALK_ON: Final = 2
_PASS_ON: Final = 3
_BRANCH: Final = 4

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_NONE: Final = -1


class GroundingProgram(NamedTuple):
    """How to fill the slots of one shape; each node comes after the node it is reached from."""

    steps: IntArray
    """[n, 4] opcode, slot, the node whose entity is read, the node whose entity is written."""
    twins: IntArray
    """[m, 6] pairs of siblings of equal shape: first anchor slot of each, first relation slot of
    each, number of anchor slots, number of relation slots."""
    first_node: int
    """The node of the entity that is drawn first: the answer, or the anchor of a path."""
    num_nodes: int
    num_anchors: int
    num_relations: int


@dataclass(frozen=True)
class _Part:
    """A subtree while a program is assembled: its node number and its slot ranges."""

    template: Query
    node: int
    first_anchor: int
    first_relation: int
    num_anchors: int
    num_relations: int


@lru_cache(maxsize=1024)
def compile_grounding(shape: Shape) -> GroundingProgram:
    """The program that draws queries of a shape."""
    steps: list[tuple[int, int, int, int]] = []
    twins: list[tuple[int, ...]] = []
    counts = {"node": 0, "anchor": 0, "relation": 0}

    def visit(node: Query, parts: tuple[_Part, ...]) -> _Part:
        own = counts["node"]
        counts["node"] += 1
        match node:
            case Anchor(slot):
                steps.append((_FIX_ANCHOR, slot, own, own))
            case Universe():
                pass
            case Project(_, slot):
                steps.append((_WALK_BACK, slot, own, parts[0].node))
            case Not():
                steps.append((_PASS_ON, 0, own, parts[0].node))
            case And() | Or():
                steps.extend((_BRANCH, 0, own, part.node) for part in parts)
                twins.extend(_twins(parts))
            case _:
                assert_never(node)
        is_anchor, is_project = isinstance(node, Anchor), isinstance(node, Project)
        first_anchor = parts[0].first_anchor if parts else counts["anchor"]
        first_relation = parts[0].first_relation if parts else counts["relation"]
        counts["anchor"] += is_anchor
        counts["relation"] += is_project
        return _Part(
            node,
            own,
            first_anchor,
            first_relation,
            counts["anchor"] - first_anchor,
            counts["relation"] - first_relation,
        )

    fold(shape.template, visit)
    return GroundingProgram(
        _frozen(steps[::-1], 4),
        _frozen(twins, 6),
        counts["node"] - 1,
        counts["node"],
        counts["anchor"],
        counts["relation"],
    )


@lru_cache(maxsize=1024)
def compile_path_grounding(shape: Shape) -> GroundingProgram:
    """The program that draws a path forwards, from its anchor."""
    hops = shape.num_relations
    assert shape.is_path, "a query that branches is drawn from its answer"
    walk = [(_WALK_ON, hop, hop, hop + 1) for hop in range(hops)]
    steps = [(_FIX_ANCHOR, 0, 0, 0), *walk]
    return GroundingProgram(_frozen(steps, 4), _frozen([], 6), 0, hops + 1, 1, hops)


def _twins(parts: tuple[_Part, ...]) -> list[tuple[int, ...]]:
    """Every pair of siblings that would be the same query if their ids were equal."""
    shapes = [shape_of(part.template) for part in parts]
    return [
        (
            left.first_anchor,
            right.first_anchor,
            left.first_relation,
            right.first_relation,
            left.num_anchors,
            left.num_relations,
        )
        for i, left in enumerate(parts)
        for j, right in enumerate(parts)
        if i < j and shapes[i] == shapes[j]
    ]


def _frozen(rows: Sequence[tuple[int, ...]], width: int) -> IntArray:
    array = np.array(rows, dtype=np.int32).reshape(-1, width)
    array.flags.writeable = False
    return array


def stream_key(seed: int, *names: str) -> np.uint64:
    """A key for `random_state`: each seed and sequence of names has its own stream of draws."""
    text = "\0".join((str(seed), *names))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def possible_starts(adjacency: Adjacency) -> IntArray:
    """The entities that have an edge, inverse edges included: where a walk can start."""
    return np.flatnonzero(np.diff(adjacency.entity_offsets)).astype(np.int32)


# --- random numbers --------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _mix(value: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value


@njit(cache=True, nogil=True)
def random_state(key: np.uint64, draw: int) -> np.uint64:
    """The initial state of the random numbers of draw number `draw`."""
    return np.uint64(_mix(key ^ _mix(np.uint64(draw) + _GOLDEN)))


@njit(cache=True, nogil=True)
def random_below(state: NDArray[np.uint64], size: int) -> np.int64:
    """A number from 0 to `size - 1`; advances `state[0]`. The bias is below size / 2^32."""
    state[0] += _GOLDEN
    return np.int64(((_mix(state[0]) >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


# --- drawing ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _walk(
    graph: GraphArrays,
    state: NDArray[np.uint64],
    entity: int,
    last: int,
    tries: int,
    is_back: bool,
) -> tuple[int, int]:
    """Draw a relation that leaves `entity` or, with `is_back`, enters it, and its other end.

    (-1, -1) if there is none within `tries` draws. The inverse of `last` is never drawn. The
    relations that enter an entity are the inverses of those that leave it, so both directions
    draw from the list of those that leave.
    """
    first = graph.entity_offsets[entity]
    count = graph.entity_offsets[entity + 1] - first
    if count == 0:
        return _NONE, _NONE
    if count == 1 and last != _NONE and graph.entity_relations[first] ^ is_back == last ^ 1:
        return _NONE, _NONE  # every draw would be the inverse
    for _ in range(tries):
        place = first + random_below(state, count)
        relation = graph.entity_relations[place] ^ is_back
        if last == _NONE or relation != last ^ 1:
            pair = graph.entity_pairs[place]
            start = graph.pair_offsets[pair]
            choice = random_below(state, graph.pair_offsets[pair + 1] - start)
            return relation, graph.tails[start + choice]
    return _NONE, _NONE


@njit(cache=True, nogil=True)
def _has_twins(twins: IntArray, anchors: IntArray, relations: IntArray) -> bool:
    """Whether two siblings of equal shape were filled with the same ids."""
    for pair in range(twins.shape[0]):
        same = True
        for i in range(twins[pair, 4]):
            same &= anchors[twins[pair, 0] + i] == anchors[twins[pair, 1] + i]
        for i in range(twins[pair, 5]):
            same &= relations[twins[pair, 2] + i] == relations[twins[pair, 3] + i]
        if same:
            return True
    return False


@njit(cache=True, nogil=True)
def draw_query(
    graph: GraphArrays,
    program: GroundingProgram,
    start: int,
    state: NDArray[np.uint64],
    tries: int,
    nodes: IntArray,
    anchors: IntArray,
    relations: IntArray,
) -> int:
    """Fill `anchors` and `relations` so that every branch of the query leads to `start`.

    A path program starts at `start` instead. Returns GROUNDED, DEAD_END if no relation is found
    in `tries` draws, or TWIN_BRANCHES. `nodes` [num_nodes, 2] is temporary memory: each node's
    entity, and the relation by which it was reached.
    """
    nodes[program.first_node, 0] = start
    nodes[program.first_node, 1] = _NONE
    for step in range(program.steps.shape[0]):
        opcode, slot = program.steps[step, 0], program.steps[step, 1]
        source, sink = program.steps[step, 2], program.steps[step, 3]
        entity, last = nodes[source, 0], nodes[source, 1]
        if opcode == _FIX_ANCHOR:
            anchors[slot] = entity
        elif opcode in (_WALK_BACK, _WALK_ON):
            relation, end = _walk(graph, state, entity, last, tries, opcode == _WALK_BACK)
            if relation == _NONE:
                return DEAD_END
            relations[slot] = relation
            nodes[sink, 0] = end
            nodes[sink, 1] = relation
        else:
            # After a branching, the relation that was drawn before it is forgotten.
            nodes[sink, 0] = entity
            nodes[sink, 1] = last if opcode == _PASS_ON else _NONE
    return TWIN_BRANCHES if _has_twins(program.twins, anchors, relations) else GROUNDED
