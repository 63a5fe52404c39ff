"""Simplification: brings a query into a simpler form and keeps its answers on every graph.

Each rule is one function from tree to tree; `RULES` lists them. `simplify` and `settle` apply them
until nothing changes. Removing unions, which can make a query larger, is left to `branches`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar, assert_never

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
    rebuild,
)

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
    return fold(query, signed)[0]


Signed: TypeAlias = tuple[Query, Query]
"""A tree and its complement. They share their subtrees, so building both is cheap."""


def signed(node: Query, operands: Sequence[Signed]) -> Signed:
    """The node with the given operands, and its complement with the negation pushed inward.

    >>> a, b = Anchor(0), Anchor(1)
    >>> signed(a & b, [(a, ~a), (b, ~b)]) == (a & b, ~a | ~b)
    True
    """
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
            return And(_plain(operands)), Or(_complements(operands))
        case Or():
            return Or(_plain(operands)), And(_complements(operands))
    assert_never(node)


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


RULES: tuple[tuple[str, Callable[[Query], Query]], ...] = (
    ("double negation", remove_double_negation),
    ("push negation", push_negation),
    ("flatten", flatten),
    ("deduplicate", deduplicate),
    ("intersect names", intersect_names),
    ("absorb", absorb),
)
"""Every rule with its name."""


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


def _plain(pairs: Sequence[Signed]) -> tuple[Query, ...]:
    return tuple(plain for plain, _ in pairs)


def _complements(pairs: Sequence[Signed]) -> tuple[Query, ...]:
    return tuple(complement for _, complement in pairs)


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
