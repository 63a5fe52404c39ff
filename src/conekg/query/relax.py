"""Relaxing: a query without its negations, and the query for the answers that this adds.

Unlike the rules of `rewrite`, these functions change the answers. Training uses them to find near
misses: entities that only a query's negations rule out.
"""

from __future__ import annotations

from conekg.query.tree import And, Not, Query, all_of, fold, rebuild


def without_negations(query: Query) -> Query:
    """The query without the negated operands of its intersections.

    It has every answer of `query`, and maybe more. Nothing under a negation is changed, nor is an
    intersection whose operands are all negated.

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
    """The query for the near misses of `query`; None if it has no negation to leave out.

    >>> from conekg.query.tree import Anchor
    >>> a, b = Anchor(0).project(0), Anchor(1).project(1)
    >>> near_miss_query(a & ~b) == a & ~(a & ~b), near_miss_query(a & b)
    (True, None)
    """
    relaxed = without_negations(query)
    return None if relaxed == query else And((relaxed, Not(query)))
