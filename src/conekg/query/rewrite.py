"""Rewriting: the same set of entities, asked for in another form.

Each rule is one function from tree to tree that keeps the answers on every graph;
`RULES` lists them, from cleaning up to normal forms. Only distribution can make a
query much larger, so its size is computed before it is done and capped.
`union_free_branches` is what models need: the trees without `Or`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Literal, TypeAlias, TypeVar, assert_never

from conekg.errors import QueryTooLargeError
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
"""How a union reaches a model: as several branches, or as a negated intersection."""

DEFAULT_BRANCH_CAP = 64
"""Union-free branches a query may have unless its caller allows more."""

EVERYTHING = Universe()
NOTHING = Not(EVERYTHING)

_Item = TypeVar("_Item")


def remove_double_negation(query: Query) -> Query:
    """`!!a` as `a`, everywhere."""

    def remove(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case Not() if isinstance(operands[0], Not):
                return operands[0].operand
            case _:
                return rebuild(node, operands)

    return fold(query, remove)


def push_negation(query: Query) -> Query:
    """Negations moved inward until they stand before an entity, `*` or a projection.

    They cannot pass a projection: what is not reached from a set is not the same as
    what is reached from outside it.
    """
    return fold(query, _signed)[0]


def flatten(query: Query) -> Query:
    """Intersections directly under intersections, and unions under unions, merged."""

    def merge(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case And():
                return And(_spliced(operands, And))
            case Or():
                return Or(_spliced(operands, Or))
            case _:
                return rebuild(node, operands)

    return fold(query, merge)


def deduplicate(query: Query) -> Query:
    """Operands that occur twice in one intersection or union kept once, the first time.

    `b & a` repeats `a & b`. The operands that are kept stay in their order.
    """
    # Parts that are the same but for the order of operands share a number.
    numbers: dict[tuple[object, ...], int] = {}

    def keep_distinct(node: Query, operands: tuple[tuple[Query, int], ...]) -> tuple[Query, int]:
        kept: dict[int, Query] = {}
        for operand, number in operands:
            kept.setdefault(number, operand)
        key: tuple[object, ...] = (type(node), *sorted(kept))
        match node:
            case And() | Or() if len(kept) == 1:
                return operands[0]
            case Anchor(own_id) | Project(_, own_id):
                key += (own_id,)
        return rebuild(node, tuple(kept.values())), numbers.setdefault(key, len(numbers))

    return fold(query, keep_distinct)[0]


def absorb(query: Query) -> Query:
    """`*` and `!*` taken in by what they stand beside, and what is in both `a` and `!a` is nothing.

    Afterwards `!*` stands at the root or nowhere.
    """

    def take_in(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case And():
                return intersection_of(operands)
            case Or():
                return union_of(operands)
            case Not():
                return complement_of(operands[0])
            case Project() if operands[0] == NOTHING:
                return NOTHING
            case _:
                return rebuild(node, operands)

    return fold(query, take_in)


def distribute(query: Query, cap: int = DEFAULT_BRANCH_CAP) -> Query:
    """Unions lifted to the root, over intersections and projections.

    A negation moves inward only where a union below it asks for that. The result is a
    union of union-free trees, or one such tree; `QueryTooLargeError` where it would be of more
    than `cap`.
    """
    return any_of(_lift_unions(query, cap))


def replace_unions(query: Query) -> Query:
    """Each `a | b` as `!(!a & !b)`: De Morgan's law. The result has no union."""

    def replace(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case Or():
                return Not(And(tuple(Not(operand) for operand in operands)))
            case _:
                return rebuild(node, operands)

    return fold(query, replace)


RULES: tuple[tuple[str, Callable[[Query], Query]], ...] = (
    ("double negation", remove_double_negation),
    ("push negation", push_negation),
    ("flatten", flatten),
    ("deduplicate", deduplicate),
    ("absorb", absorb),
    ("distribute", distribute),
    ("De Morgan", replace_unions),
)
"""Every rule by name, in order from cleaning up to normal forms."""


def simplify(query: Query) -> Query:
    """The query without double negations, nested equal operators and repeated operands.

    Never larger than the query itself, and the same when applied again.
    """
    while True:
        simpler = deduplicate(flatten(remove_double_negation(query)))
        if simpler == query:
            return query
        query = simpler


def settle(query: Query) -> Query:
    """The query without parts that say nothing, or say that nothing answers it.

    Simplified, and `*`, `!*` and operands beside their complements taken in.
    """
    while True:
        simpler = absorb(simplify(query))
        if simpler == query:
            return query
        query = simpler


def complement_of(query: Query) -> Query:
    """`!a` of `a`, and `a` of `!a`."""
    return query.operand if isinstance(query, Not) else Not(query)


def intersection_of(operands: Sequence[Query]) -> Query:
    """The intersection of any number of sets, without those that do not matter."""
    kept = _distinct([operand for operand in operands if operand != EVERYTHING])
    if NOTHING in kept or _has_complements(kept):
        return NOTHING
    return all_of(kept) if kept else EVERYTHING


def union_of(operands: Sequence[Query]) -> Query:
    """The union of any number of sets, without those that do not matter."""
    kept = _distinct([operand for operand in operands if operand != NOTHING])
    if EVERYTHING in kept or _has_complements(kept):
        return EVERYTHING
    return any_of(kept) if kept else NOTHING


def to_dnf(query: Query, cap: int = DEFAULT_BRANCH_CAP) -> Query:
    """The disjunctive normal form: a union of trees without unions, negations pushed inward."""
    return simplify(distribute(simplify(push_negation(query)), cap))


def to_de_morgan(query: Query) -> Query:
    """The De Morgan form: no union at all, as many entities and relations as before."""
    return remove_double_negation(replace_unions(simplify(query)))


def union_free_branches(
    query: Query, union: UnionForm = "dnf", cap: int = DEFAULT_BRANCH_CAP
) -> tuple[Query, ...]:
    """The union-free trees a model embeds, whose union is the query.

    A query without `Or` is its own single branch, negations untouched. With
    `union="demorgan"` there is always one branch; more than `cap` are a `QueryTooLargeError`.
    Ids are never compared with anything but ids, so templates of shapes are rewritten just as
    grounded queries are.

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
    """The query, by De Morgan's law where its form of unions would take more than `cap` branches.

    For parts of a question, which nobody asked as they are and which must not be refused for it.

    >>> a, b, c, d = map(Anchor, range(4))
    >>> capped((~a | ~b) & (~c | ~d), "dnf", 3) == ~(a & b) & ~(c & d)
    True
    """
    fits = union == "demorgan" or not has_union(query) or count_branches(query) <= cap
    return query if fits else to_de_morgan(query)


def count_branches(query: Query) -> int:
    """How many trees lifting the unions of a query takes, computed without doing it.

    k two-way unions under one intersection give 2^k.
    """
    return _count(_push_through_unions(query))


_Signed: TypeAlias = tuple[Query, Query]
"""A tree and its complement. Both share their parts, so building both costs nothing."""


def _signed(node: Query, operands: Sequence[_Signed]) -> _Signed:
    """The node over pushed operands, and its complement with the negation pushed inward."""
    match node:
        case Anchor() | Universe():
            return node, Not(node)
        case Project(_, relation_id):
            projected = Project(operands[0][0], relation_id)
            return projected, Not(projected)
        case Not():
            plain, complement = operands[0]
            return complement, plain
        case And():
            return And(_firsts(operands)), Or(_seconds(operands))
        case Or():
            return Or(_firsts(operands)), And(_seconds(operands))
    assert_never(node)


def _firsts(operands: Sequence[_Signed]) -> tuple[Query, ...]:
    return tuple(plain for plain, _ in operands)


def _seconds(operands: Sequence[_Signed]) -> tuple[Query, ...]:
    return tuple(complement for _, complement in operands)


def _push_through_unions(query: Query) -> Query:
    """Negations moved inward through nodes that contain a union; the others stay."""

    def push(node: Query, operands: tuple[tuple[_Signed, bool], ...]) -> tuple[_Signed, bool]:
        pairs = [pair for pair, _ in operands]
        if not isinstance(node, Or) and not any(contains for _, contains in operands):
            return (node, complement_of(node)), False
        match node:
            # Intersections that only the push has nested are merged.
            case And():
                plain = And(_joined(node.operands, _firsts(pairs)))
                return (plain, Or(_seconds(pairs))), True
            case Or():
                complement = And(_joined(node.operands, _seconds(pairs)))
                return (Or(_firsts(pairs)), complement), True
            case _:
                return _signed(node, pairs), True

    return fold(query, push)[0][0]


def _count(pushed: Query) -> int:
    largest = 1

    def multiply(node: Query, below: tuple[int, ...]) -> int:
        nonlocal largest
        match node:
            case Anchor() | Universe():
                size = 1
            case Project():
                size = below[0]
            case Not():
                # The branches of a negated projection become one intersection: a single
                # branch, yet as many operands, which the cap must see as well.
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
    pushed = _push_through_unions(query)
    size = _count(pushed)
    if size > cap:
        # The number may have more digits than Python writes out.
        told = f"{size:,}" if size <= 10**9 else "more than a billion"
        raise QueryTooLargeError(
            f"this query has {told} union-free branches; at most {cap:,} are allowed",
            hint="raise the cap, use fewer unions (or negated intersections, which become unions) "
            "under one intersection, or use the De Morgan form, which is always one branch",
        )

    def lift(node: Query, below: tuple[tuple[Query, ...], ...]) -> tuple[Query, ...]:
        match node:
            case Anchor() | Universe():
                return (node,)
            case Project(_, relation_id):
                return tuple(Project(branch, relation_id) for branch in below[0])
            case Not():
                # Nothing reached from a | b: not reached from a and not reached from b.
                return (all_of([Not(branch) for branch in below[0]]),)
            case And(operands):
                return tuple(And(_joined(operands, choice)) for choice in product(*below))
            case Or():
                return tuple(branch for branches in below for branch in branches)
        assert_never(node)

    branches: tuple[Query, ...] = fold(pushed, lift)
    return _distinct(branches)


def _joined(operands: Sequence[Query], choice: Sequence[Query]) -> tuple[Query, ...]:
    """One branch of each operand; intersections that only distribution nested are merged."""
    parts: list[Query] = []
    for operand, branch in zip(operands, choice, strict=True):
        if branch != operand and isinstance(branch, And):
            parts.extend(branch.operands)
        else:
            parts.append(branch)
    return tuple(parts)


def _spliced(operands: Sequence[Query], kind: type[And] | type[Or]) -> tuple[Query, ...]:
    parts: list[Query] = []
    for operand in operands:
        if isinstance(operand, kind):
            parts.extend(operand.operands)
        else:
            parts.append(operand)
    return tuple(parts)


def _distinct(items: Sequence[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(items))


def _has_complements(operands: Sequence[Query]) -> bool:
    negated = {operand.operand for operand in operands if isinstance(operand, Not)}
    return bool(negated) and not negated.isdisjoint(operands)
