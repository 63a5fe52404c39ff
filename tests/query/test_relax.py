"""Relaxed queries; that they keep all answers is tested in the tests of near misses."""

from __future__ import annotations

import pytest

from conekg.query.relax import near_miss_query, without_negations
from conekg.query.tree import Anchor, And, Not, Or, Query, Universe

A, B, C = (Anchor(entity).project(entity) for entity in range(3))


@pytest.mark.parametrize(
    ("query", "relaxed"),
    [
        (A & ~B, A),
        (~B & A, A),
        (And((A, B, ~C)), A & B),
        (And((A, ~B, ~C)), A),
        ((A & ~B).project(4), A.project(4)),
        ((A & ~B).project(4) & ~C, A.project(4)),
        (Or((A & ~B, C)), Or((A, C))),
        (A & ~(B & ~C), A),
    ],
)
def test_negated_parts_of_intersections_are_left_out(query: Query, relaxed: Query) -> None:
    assert without_negations(query) == relaxed
    assert near_miss_query(query) == And((relaxed, Not(query)))


@pytest.mark.parametrize("query", [A, A & B, Or((A, B)), ~A, ~A & ~B, ~(A & ~B), Universe() & A])
def test_a_query_without_negated_operands_has_no_near_miss_query(query: Query) -> None:
    assert without_negations(query) == query
    assert near_miss_query(query) is None
