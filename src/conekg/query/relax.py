"""Relaxing: a query with more answers than another, and the query for those additional ones.

Unlike the rules of `rewrite`, these change what is asked for. Training uses them to find
entities that a query's negations alone rule out.
"""

from __future__ import annotations

from conekg.query.tree import And, Not, Query, all_of, fold, rebuild


def without_negations(query: Query) -> Query:
    """The query without the negated parts of its intersections; it has all the answers and more.

    What is under a negation stays as it is, as does an intersection of negations alone.

    >>> from conekg.query.tree import Anchor
    >>> a, b = Anchor(0).project(0), Anchor(1).project(1)
    >>> without_negations((a & ~b).project(2)) == a.project(2)
    True
    """

    def relax(node: Query, operands: tuple[Query, ...]) -> Query:
        if isinstance(node, Not):
            return node
        if isinstance(node, And):
            pairs = zip(node.operands, operands, strict=True)
            kept = tuple(now for before, now in pairs if not isinstance(before, Not))
            if len(kept) < len(operands):
                return all_of(kept) if kept else node
        return rebuild(node, operands)

    return fold(query, relax)


def near_miss_query(query: Query) -> Query | None:
    """The query for the near misses of another; None where there is no negation to leave out."""
    relaxed = without_negations(query)
    return None if relaxed == query else And((relaxed, Not(query)))
