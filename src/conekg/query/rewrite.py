"""Rewriting: changes the form of a query and keeps its answers on every graph.

Each rule is one function from tree to tree; `RULES` lists them, from simplifications to normal
forms. Only distribution can make a query much larger, so the size of its result is computed and
checked beforehand. `union_free_branches` gives what models need: trees without `Or`.
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
"""How unions are removed for a model: as several branches, or as negated intersections."""

DEFAULT_BRANCH_CAP = 64
"""The default for the most union-free branches of a query."""

EVERYTHING = Universe()
NOTHING = Not(EVERYTHING)

_Item = TypeVar("_Item")


def remove_double_negation(query: Query) -> Query:
    """`!!a` as `a`, everywhere.

    >>> a, b = Anchor(0), Anchor(1)
    >>> remove_double_negation(~~(a & ~~b)) == a & b
    True
    """

    def remove(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case Not() if isinstance(operands[0], Not):
                return operands[0].operand
            case _:
                return rebuild(node, operands)

    return fold(query, remove)


def push_negation(query: Query) -> Query:
    """Negations moved inward until their operand is an entity, `*` or a projection.

    A negation cannot be moved past a projection: the entities that are not reached from a set
    differ from those that are reached from the set's complement.

    >>> a, b = Anchor(0), Anchor(1)
    >>> push_negation(~(a | ~b.project(2))) == ~a & b.project(2)
    True
    """
    return fold(query, _signed)[0]


def flatten(query: Query) -> Query:
    """Intersections directly under intersections, and unions under unions, merged.

    >>> a, b, c = Anchor(0), Anchor(1), Anchor(2)
    >>> flatten(And((a, And((b, c))))) == And((a, b, c))
    True
    """

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
    """Operands that occur twice in an intersection or union removed except for the first.

    `b & a` counts as a repetition of `a & b`. The remaining operands keep their order.

    >>> a, b = Anchor(0), Anchor(1)
    >>> deduplicate((a & b) | (b & a)) == a & b
    True
    """
    # Subtrees that differ only in the order of operands get the same number.
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


def intersect_names(query: Query) -> Query:
    """Entities that an intersection names replaced by those that all its parts allow.

    `(a | b) & a` is `a`, and so are `(a | b) & !b` and `a & !b`; `a & b` is `!*`, since an entity
    is no other entity. Ids are compared, so this is no rule for the template of a shape, in which
    an entity may have several slots.
    """

    def intersect(node: Query, operands: tuple[Query, ...]) -> Query:
        named = {operand: names for operand in operands if (names := _names_of(operand))}
        barred = {
            operand: names
            for operand in operands
            if isinstance(operand, Not) and (names := _names_of(operand.operand))
        }
        if not isinstance(node, And) or not named or len(named) + len(barred) < 2:
            return rebuild(node, operands)
        first, *others = named.values()
        allowed = [name for name in first if all(name in other for other in others)]
        left = [name for name in allowed if not any(name in names for names in barred.values())]
        rest = [operand for operand in operands if operand not in named and operand not in barred]
        return all_of([any_of(left) if left else NOTHING, *rest])

    return fold(query, intersect)


def absorb(query: Query) -> Query:
    """Operands `*` and `!*` removed or made the result, and `a & !a` and `a | !a` replaced.

    `*` is the set of all entities, `!*` the empty set: `a & *` is `a`, `a | *` is `*`, `a & !a` is
    `!*`. Afterwards `!*` can only be the whole query.

    >>> a, b = Anchor(0), Anchor(1)
    >>> absorb((a & ~a) | (b & Universe())) == b
    True
    """

    def simplify_node(node: Query, operands: tuple[Query, ...]) -> Query:
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

    return fold(query, simplify_node)


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


RULES: tuple[tuple[str, Callable[[Query], Query]], ...] = (
    ("double negation", remove_double_negation),
    ("push negation", push_negation),
    ("flatten", flatten),
    ("deduplicate", deduplicate),
    ("intersect names", intersect_names),
    ("absorb", absorb),
    ("distribute", distribute),
    ("De Morgan", replace_unions),
)
"""Every rule with its name, in order from simplifications to normal forms."""


def simplify(query: Query) -> Query:
    """The query without double negations, nested equal operators and repeated operands.

    The result is never larger than the query, and simplifying it again does not change it.

    >>> a, b = Anchor(0), Anchor(1)
    >>> simplify(And((~~a, And((b, a))))) == a & b
    True
    """
    while True:
        simpler = deduplicate(flatten(remove_double_negation(query)))
        if simpler == query:
            return query
        query = simpler


def settle(query: Query) -> Query:
    """The query simplified by `simplify`, `intersect_names` and `absorb` until nothing changes.

    >>> a, b = Anchor(0), Anchor(1)
    >>> settle(And((~~a, b | ~b))) == a
    True
    """
    while True:
        simpler = absorb(intersect_names(simplify(query)))
        if simpler == query:
            return query
        query = simpler


def complement_of(query: Query) -> Query:
    """`!a` for a query `a`, and `a` for `!a`.

    >>> complement_of(complement_of(Anchor(0)))
    Anchor(entity_id=0)
    """
    return query.operand if isinstance(query, Not) else Not(query)


def intersection_of(operands: Sequence[Query]) -> Query:
    """The intersection of any number of queries, without `*` and repeated operands.

    The result is `!*` if an operand is `!*` or the complement of another, and `*` for no operands.
    """
    kept = _distinct([operand for operand in operands if operand != EVERYTHING])
    if NOTHING in kept or _has_complements(kept):
        return NOTHING
    return all_of(kept) if kept else EVERYTHING


def union_of(operands: Sequence[Query]) -> Query:
    """The union of any number of queries, without `!*` and repeated operands.

    The result is `*` if an operand is `*` or the complement of another, and `!*` for no operands.
    """
    kept = _distinct([operand for operand in operands if operand != NOTHING])
    if EVERYTHING in kept or _has_complements(kept):
        return EVERYTHING
    return any_of(kept) if kept else NOTHING


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


_Signed: TypeAlias = tuple[Query, Query]
"""A tree and its complement. They share their subtrees, so building both is cheap."""


def _signed(node: Query, operands: Sequence[_Signed]) -> _Signed:
    """The node with the given operands, and its complement with the negation pushed inward."""
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
    """Negations moved inward past nodes that contain a union; other negations stay."""

    def push(node: Query, operands: tuple[tuple[_Signed, bool], ...]) -> tuple[_Signed, bool]:
        pairs = [pair for pair, _ in operands]
        if not isinstance(node, Or) and not any(contains for _, contains in operands):
            return (node, complement_of(node)), False
        match node:
            # Merge intersections that became nested only because negations were moved.
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
    return _distinct(branches)


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


def _spliced(operands: Sequence[Query], kind: type[And] | type[Or]) -> tuple[Query, ...]:
    """The operands, with each one of type `kind` replaced by its own operands."""
    parts: list[Query] = []
    for operand in operands:
        if isinstance(operand, kind):
            parts.extend(operand.operands)
        else:
            parts.append(operand)
    return tuple(parts)


def _names_of(query: Query) -> tuple[Query, ...]:
    """The entities of a query that is an entity or a union of entities; empty for others."""
    names = query.operands if isinstance(query, Or) else (query,)
    return names if all(isinstance(name, Anchor) for name in names) else ()


def _distinct(items: Sequence[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(items))


def _has_complements(operands: Sequence[Query]) -> bool:
    """Whether one operand is the complement of another."""
    negated = {operand.operand for operand in operands if isinstance(operand, Not)}
    return bool(negated) and not negated.isdisjoint(operands)
