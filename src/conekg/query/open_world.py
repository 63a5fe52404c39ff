"""What known facts rule out, and what they settle for good, when facts may be missing.

With missing facts a projection may reach anything, so nothing is ruled out by what is
absent. What is present rules things out under a negation: whoever is known to speak
German is no answer to "does not speak German". Each part of a query gets two bounds,
what holds in every completion of the graph and what may hold in some; both are queries
themselves, to be answered exactly.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from conekg.query.rewrite import (
    EVERYTHING,
    NOTHING,
    complement_of,
    intersection_of,
    union_of,
)
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
    certain: Query
    """Its exact answers on the known facts are answers however the graph is completed."""
    possible: Query
    """Entities outside its exact answers are no answers however the graph is completed."""


def contradiction_of(query: Query) -> Query | None:
    """The query whose exact answers known facts rule out as answers; None if there can be none.

    >>> germans, neighbours = Project(Anchor(0), 1), Project(Anchor(2), 4)
    >>> contradiction_of(neighbours & ~germans) == germans
    True
    >>> contradiction_of(neighbours & germans) is None
    True
    """
    contradiction = complement_of(fold(query, _bounds).possible)
    return None if contradiction == NOTHING else contradiction


def certainty_of(query: Query) -> Query | None:
    """The query whose exact answers are answers whatever facts come; None if there can be none.

    >>> germans, neighbours = Project(Anchor(0), 1), Project(Anchor(2), 4)
    >>> certainty_of(neighbours & ~Anchor(5)) == neighbours & ~Anchor(5)
    True
    >>> certainty_of(neighbours & ~germans) is None
    True
    """
    certain = fold(query, _bounds).certain
    return None if certain == NOTHING else certain


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
