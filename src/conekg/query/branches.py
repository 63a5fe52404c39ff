"""Removes unions from queries, for models that embed none; the answers stay the same.

Either unions are lifted to the root, past everything above them, which gives union-free branches
whose union is the query (the disjunctive normal form); or De Morgan's law replaces them. Only
lifting can make a query much larger, so the size of its result is computed and checked beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Literal, TypeAlias, assert_never

from conekg.errors import QueryTooLargeError
from conekg.query.rewrite import (
    Signed,
    complement_of,
    push_negation,
    remove_double_negation,
    signed,
    simplify,
)
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Query,
    Universe,
    all_of,
    any_of,
    fold,
    has_union,
    rebuild,
)

UnionForm: TypeAlias = Literal["dnf", "demorgan"]
"""How unions are removed for a model: as several branches, or as negated intersections."""

DEFAULT_BRANCH_CAP = 64
"""The default for the most union-free branches of a query."""


def distribute(query: Query, cap: int = DEFAULT_BRANCH_CAP) -> Query:
    """Unions moved to the root, past intersections and projections.

    A negation is moved inward only if there is a union below it. The result is a union of
    union-free trees, or one such tree; `QueryTooLargeError` if it would have more than `cap`.

    >>> a, b, c = Anchor(0), Anchor(1), Anchor(2)
    >>> distribute(((a | b) & c).project(3)) == (a & c).project(3) | (b & c).project(3)
    True
    """
    return any_of(_lift_unions(query, cap))


def replace_unions(query: Query) -> Query:
    """Each `a | b` as `!(!a & !b)`: De Morgan's law. The result has no union.

    >>> a, b = Anchor(0), Anchor(1)
    >>> replace_unions(a | b) == ~(~a & ~b)
    True
    """

    def replace(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case Or():
                return Not(And(tuple(Not(operand) for operand in operands)))
            case _:
                return rebuild(node, operands)

    return fold(query, replace)


def to_dnf(query: Query, cap: int = DEFAULT_BRANCH_CAP) -> Query:
    """The disjunctive normal form: a union of trees without unions, negations pushed inward.

    >>> a, b, c = Anchor(0), Anchor(1), Anchor(2)
    >>> to_dnf(~(a & ~b) & c) == (~a & c) | (b & c)
    True
    """
    return simplify(distribute(simplify(push_negation(query)), cap))


def to_de_morgan(query: Query) -> Query:
    """The De Morgan form: no unions, and no more entities and relations than before.

    >>> a, b = Anchor(0), Anchor(1)
    >>> to_de_morgan(~a | b) == ~(a & ~b)
    True
    """
    return remove_double_negation(replace_unions(simplify(query)))


def union_free_branches(
    query: Query, union: UnionForm = "dnf", cap: int = DEFAULT_BRANCH_CAP
) -> tuple[Query, ...]:
    """The union-free trees that a model embeds; the query is the union of these branches.

    A query without `Or` is its own single branch, with its negations unchanged. With
    `union="demorgan"` there is always one branch. Raises `QueryTooLargeError` for more than `cap`
    branches. Ids are only compared with each other, so the template of a shape, whose ids are
    slots, is rewritten like a grounded query.

    >>> a, b, c = Anchor(0), Anchor(1), Anchor(2)
    >>> union_free_branches(a & (b | c)) == (a & b, a & c)
    True
    """
    if not has_union(query):
        return (query,)
    match union:
        case "dnf":
            return _lift_unions(query, cap)
        case "demorgan":
            return (replace_unions(query),)
    assert_never(union)


def capped(query: Query, union: UnionForm, cap: int) -> Query:
    """The query, or its De Morgan form if `union` would give it more than `cap` branches.

    For parts of a query: a part can have more branches than the whole, and a user whose query is
    within the cap must not get an error about a part.

    >>> a, b, c, d = map(Anchor, range(4))
    >>> capped((~a | ~b) & (~c | ~d), "dnf", 3) == ~(a & b) & ~(c & d)
    True
    """
    fits = union == "demorgan" or not has_union(query) or count_branches(query) <= cap
    return query if fits else to_de_morgan(query)


def count_branches(query: Query) -> int:
    """An upper bound on the number of union-free branches, computed without making them.

    k two-way unions under one intersection give 2^k. Equal branches are counted separately.

    >>> a, b, c, d = map(Anchor, range(4))
    >>> count_branches((a | b) & (c | d))
    4
    """
    return _count(_push_through_unions(query))


def _push_through_unions(query: Query) -> Query:
    """Negations moved inward past nodes that contain a union; other negations stay."""

    def push(node: Query, operands: tuple[tuple[Signed, bool], ...]) -> tuple[Signed, bool]:
        if not isinstance(node, Or) and not any(contains for _, contains in operands):
            return (node, complement_of(node)), False
        plain = tuple(plain for (plain, _), _ in operands)
        complements = tuple(complement for (_, complement), _ in operands)
        match node:
            # Merge intersections that became nested only because negations were moved.
            case And():
                return (And(_joined(node.operands, plain)), Or(complements)), True
            case Or():
                return (Or(plain), And(_joined(node.operands, complements))), True
            case _:
                return signed(node, [pair for pair, _ in operands]), True

    return fold(query, push)[0][0]


def _count(pushed: Query) -> int:
    """The largest number of branches that `_lift_unions` has at any node of `pushed`."""
    largest = 1

    def multiply(node: Query, below: tuple[int, ...]) -> int:
        nonlocal largest
        match node:
            case Anchor() | Universe():
                size = 1
            case Project():
                size = below[0]
            case Not():
                # The branches of a negated projection become the operands of one intersection.
                # That is a single branch; the operands are capped because `largest` saw them.
                size = 1
            case And():
                size = prod(below)
            case Or():
                size = sum(below)
            case _:
                assert_never(node)
        largest = max(largest, size)
        return size

    fold(pushed, multiply)
    return largest


def _lift_unions(query: Query, cap: int) -> tuple[Query, ...]:
    """The distinct union-free branches of a query; `QueryTooLargeError` for more than `cap`."""
    pushed = _push_through_unions(query)
    size = _count(pushed)
    if size > cap:
        # The number may have more digits than Python converts to text.
        shown = f"{size:,}" if size <= 10**9 else "more than a billion"
        raise QueryTooLargeError(
            f"this query has {shown} union-free branches; at most {cap:,} are allowed",
            hint="use fewer unions (or negated intersections, which become unions) under one "
            "intersection, or the De Morgan form, which is always one branch; or raise the cap, if "
            "it can be chosen",
        )

    def lift(node: Query, below: tuple[tuple[Query, ...], ...]) -> tuple[Query, ...]:
        match node:
            case Anchor() | Universe():
                return (node,)
            case Project(_, relation_id):
                return tuple(Project(branch, relation_id) for branch in below[0])
            case Not():
                # Not reached from a | b: neither reached from a nor reached from b.
                return (all_of([Not(branch) for branch in below[0]]),)
            case And(operands):
                return tuple(And(_joined(operands, choice)) for choice in product(*below))
            case Or():
                return tuple(branch for branches in below for branch in branches)
        assert_never(node)

    branches: tuple[Query, ...] = fold(pushed, lift)
    return tuple(dict.fromkeys(branches))


def _joined(operands: Sequence[Query], choice: Sequence[Query]) -> tuple[Query, ...]:
    """The operands of an intersection with one branch chosen for each operand.

    A branch that is itself an intersection is merged, unless it is the operand unchanged.
    """
    parts: list[Query] = []
    for operand, branch in zip(operands, choice, strict=True):
        if branch != operand and isinstance(branch, And):
            parts.extend(branch.operands)
        else:
            parts.append(branch)
    return tuple(parts)
