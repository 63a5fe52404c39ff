"""Which entities known facts rule out as answers, and which they make certain answers.

Facts may be missing, so a projection may reach any entity, and an absent fact rules out nothing.
A known fact rules out an answer under a negation: an entity that is known to speak German is not
an answer to "does not speak German". Each part of a query gets two bounds: its answers in every
completion of the graph, and its possible answers in some completion. Both bounds are queries
themselves, to be answered exactly on the known facts. A part without possible answers is empty
however the graph is completed: `Poland & !Germany.borders`, if Poland is known to border Germany.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from conekg.query.rewrite import EVERYTHING, NOTHING, complement_of, intersection_of, union_of
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Query,
    Universe,
    fold,
)


class _Bounds(NamedTuple):
    """A lower and an upper bound of a query's answers over all completions of the graph."""

    certain: Query
    """The exact answers of this query are answers in every completion of the graph."""
    possible: Query
    """Entities that are not exact answers of this query are answers in no completion."""


def contradiction_of(query: Query) -> Query | None:
    """A query for the entities that known facts rule out as answers; None if no facts could.

    >>> germans, neighbours = Project(Anchor(0), 1), Project(Anchor(2), 4)
    >>> contradiction_of(neighbours & ~germans) == germans
    True
    >>> contradiction_of(neighbours & germans) is None
    True
    """
    contradiction = complement_of(fold(query, _bounds).possible)
    return None if contradiction == NOTHING else contradiction


def certainty_of(query: Query) -> Query | None:
    """A query for the entities that are answers in every completion; None if no facts suffice.

    >>> germans, neighbours = Project(Anchor(0), 1), Project(Anchor(2), 4)
    >>> certainty_of(neighbours & ~Anchor(5)) == neighbours & ~Anchor(5)
    True
    >>> certainty_of(neighbours & ~germans) is None
    True
    """
    certain = fold(query, _bounds).certain
    return None if certain == NOTHING else certain


class Doubt(NamedTuple):
    """A part of a query that matters in no completion of the graph if its bound is empty."""

    part: Query
    possible: Query
    """The bound: if known facts give it no exact answer, the part can be taken for `!*`."""


class _Walked(NamedTuple):
    """A node with its bounds and its operands."""

    node: Query
    bounds: _Bounds
    below: tuple[_Walked, ...]


def doubts_of(query: Query) -> tuple[Doubt, ...]:
    """The parts of a query that known facts may show to be empty in every completion.

    They are operands of projections, unions and negations, which are empty on their own, and
    operands of unions that have nothing in common with what the unions around them are intersected
    with. The whole query and the operands of its intersections are not among them:
    `contradiction_of` says what is ruled out there. No part may occur twice in the query, so it is
    best the template of a shape. The parts can then be dropped together: what is left of a union
    or an intersection never has more answers than before, so it does not undo the reason for which
    a part beside it was dropped.

    >>> germans, a, b = Project(Anchor(0), 1), Anchor(2), Anchor(3)
    >>> doubts_of(Project(a & ~germans, 3)) == (Doubt(a & ~germans, a & ~germans),)
    True
    >>> doubts_of((a | b) & ~germans) == (Doubt(a, a & ~germans), Doubt(b, b & ~germans))
    True
    >>> doubts_of(Project(a, 3) | Project(germans, 4))
    ()
    """
    found: dict[Query, Query] = {}
    pending: list[tuple[_Walked, tuple[Query, ...]]] = [(fold(query, _walked), ())]
    for walked, beside in pending:  # `beside` bounds what the node is intersected with
        possible = [operand.bounds.possible for operand in walked.below]
        for place, operand in enumerate(walked.below):
            if isinstance(walked.node, And):
                others = possible[:place] + possible[place + 1 :]
                bounding = (bound for bound in others if bound != EVERYTHING)
                pending.append((operand, (*beside, *bounding)))
                continue
            # Not past a negation: the less is left under it, the more is left of what it stands in.
            around = beside if isinstance(walked.node, Or) else ()
            pending.append((operand, around))
            if (around or isinstance(operand.node, And | Not)) and possible[place] != EVERYTHING:
                bound = intersection_of((possible[place], *around))
                if _may_be_empty(bound):
                    found[operand.node] = bound
    return tuple(Doubt(part, possible) for part, possible in found.items())


def _walked(node: Query, below: tuple[_Walked, ...]) -> _Walked:
    return _Walked(node, _bounds(node, tuple(operand.bounds for operand in below)), below)


def _may_be_empty(possible: Query) -> bool:
    """Whether a bound is none of the forms that never are: it may still have answers always."""
    parts = possible.operands if isinstance(possible, Or) else (possible,)
    return not any(isinstance(part, Anchor | Universe) for part in parts)


def _bounds(query: Query, operands: tuple[_Bounds, ...]) -> _Bounds:
    match query:
        case Anchor() | Universe():
            return _Bounds(query, query)
        case Project():
            certain, possible = operands[0]
            return _Bounds(
                NOTHING if certain == NOTHING else Project(certain, query.relation_id),
                NOTHING if possible == NOTHING else EVERYTHING,
            )
        case And():
            return _Bounds(
                intersection_of(tuple(bounds.certain for bounds in operands)),
                intersection_of(tuple(bounds.possible for bounds in operands)),
            )
        case Or():
            return _Bounds(
                union_of(tuple(bounds.certain for bounds in operands)),
                union_of(tuple(bounds.possible for bounds in operands)),
            )
        case Not():
            certain, possible = operands[0]
            return _Bounds(complement_of(possible), complement_of(certain))
    assert_never(query)
