"""The query tree: six immutable node types, and the functions that walk a tree.

A query denotes a set of entities. Nodes hold integer ids, never names: `parse` resolves the names,
and everything that walks the tree afterwards only sees numbers. Relation ids come in pairs, 2k
forward and 2k+1 its inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, assert_never

from conekg.errors import QueryError

Result = TypeVar("Result")


class Node:
    """The base of all nodes: operators, as in `~a & b.project(r)`, equality, hash and repr.

    Trees are compared, hashed and printed without recursion, so that their depth is limited by
    memory and not by Python's stack.
    """

    __slots__ = ()

    # Types are compared with `is`, because a `match` statement takes several times as long.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        ours: list[Any] = [self]
        theirs: list[Any] = [other]
        while ours:
            mine, yours = ours.pop(), theirs.pop()
            if mine is yours:
                continue
            kind = type(mine)
            if kind is not type(yours):
                return False
            if kind is Project:
                if mine.relation_id != yours.relation_id:
                    return False
                ours.append(mine.operand)
                theirs.append(yours.operand)
            elif kind is Anchor:
                if mine.entity_id != yours.entity_id:
                    return False
            elif kind is Not:
                ours.append(mine.operand)
                theirs.append(yours.operand)
            elif kind is not Universe:
                if len(mine.operands) != len(yours.operands):
                    return False
                ours += mine.operands
                theirs += yours.operands
        return True

    def __hash__(self) -> int:
        parts: list[int] = []
        pending: list[Any] = [self]
        while pending:
            node = pending.pop()
            kind = type(node)
            if kind is Project:
                parts.append(node.relation_id)
                pending.append(node.operand)
            elif kind is Anchor:
                parts.append(node.entity_id)
                continue
            elif kind is Not:
                pending.append(node.operand)
            elif kind is not Universe:
                parts.append(len(node.operands))
                pending += node.operands
            parts.append(_HASH_CODES[kind])
        return hash(tuple(parts))

    def __repr__(self: Query) -> str:  # type: ignore[misc]
        return fold(self, _repr_of)

    def project(self: Query, relation_id: int) -> Project:  # type: ignore[misc]
        """The entities one `relation_id` edge away from this set."""
        return Project(self, relation_id)

    def __and__(self: Query, other: Query) -> And:  # type: ignore[misc]
        return And((self, other))

    def __or__(self: Query, other: Query) -> Or:  # type: ignore[misc]
        return Or((self, other))

    def __invert__(self: Query) -> Not:  # type: ignore[misc]
        return Not(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Anchor(Node):
    """The set of one entity."""

    entity_id: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Universe(Node):
    """The set of all entities."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Project(Node):
    """The tails of all `relation_id` edges whose head is in `operand`."""

    operand: Query
    relation_id: int


def _require_two(what: str, operands: tuple[Query, ...]) -> None:
    if len(operands) < 2:
        raise QueryError(
            f"{what} of {len(operands)} operands; it needs at least two",
            hint="one query alone is that query itself, without And or Or",
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(Node):
    """The entities in every operand; there are at least two operands."""

    operands: tuple[Query, ...]

    def __post_init__(self) -> None:
        _require_two("an intersection", self.operands)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(Node):
    """The entities in at least one operand; there are at least two operands."""

    operands: tuple[Query, ...]

    def __post_init__(self) -> None:
        _require_two("a union", self.operands)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Node):
    """All entities except those of `operand`."""

    operand: Query


Query: TypeAlias = Anchor | Universe | Project | And | Or | Not

_HASH_CODES: dict[type[Query], int] = {Universe: -2, Project: -3, And: -4, Or: -5, Not: -6}
"""The numbers that stand for node types in a hash. They are negative so that they are not ids. The
hash of the type itself would differ between processes."""


def all_of(operands: Sequence[Query]) -> Query:
    """The intersection of one or more queries; for one query that query itself.

    >>> all_of([Anchor(0)]), all_of([Anchor(0), Anchor(1)]) == Anchor(0) & Anchor(1)
    (Anchor(entity_id=0), True)
    """
    return And(tuple(operands)) if len(operands) > 1 else operands[0]


def any_of(operands: Sequence[Query]) -> Query:
    """The union of one or more queries; for one query that query itself.

    >>> any_of([Anchor(0)]), any_of([Anchor(0), Anchor(1)]) == Anchor(0) | Anchor(1)
    (Anchor(entity_id=0), True)
    """
    return Or(tuple(operands)) if len(operands) > 1 else operands[0]


def children(query: Query) -> tuple[Query, ...]:
    """The operands of a node, left to right.

    >>> children(Anchor(0).project(1) & Anchor(2))[1], children(Anchor(2))
    (Anchor(entity_id=2), ())
    """
    match query:  # patterns without fields: extracting fields there would double the time
        case Project() | Not():
            return (query.operand,)
        case Anchor() | Universe():
            return ()
        case And() | Or():
            return query.operands
        case _:
            raise not_a_query(query)


def not_a_query(part: object) -> QueryError:
    """The error for an operand that is not a node."""
    return QueryError(
        f"{part!r} in a query is no part of a tree",
        hint="operands are trees: Anchor(id) for an entity, or the result of parse_query",
    )


def fold(query: Query, visit: Callable[[Query, tuple[Result, ...]], Result]) -> Result:
    """The result of `visit` for the root, computed bottom-up.

    `visit` is called for each node, left to right and operands first, with the node and the results
    of its operands. There is no recursion, so the depth is limited by memory and not by Python's
    stack.

    >>> fold(Anchor(0).project(1) & ~Anchor(2), lambda node, below: 1 + sum(below))
    5
    """
    # Parents before children, right before left: the reverse of the order of visits.
    reverse_order: list[tuple[Query, int]] = []
    pending = [query]
    while pending:
        node = pending.pop()
        operands = children(node)
        reverse_order.append((node, len(operands)))
        pending.extend(operands)
    results: list[Result] = []
    for node, arity in reversed(reverse_order):
        if arity:
            arguments = tuple(results[-arity:])
            del results[-arity:]
            results.append(visit(node, arguments))
        else:
            results.append(visit(node, ()))
    (result,) = results
    return result


def fold_each(query: Query, visit: Callable[[Query, tuple[Result, ...]], Result]) -> list[Result]:
    """The results of `visit` for every node in a `fold`, in the order of `subtrees`.

    >>> fold_each(Anchor(0).project(1) & ~Anchor(2), lambda node, below: 1 + sum(below))
    [1, 2, 1, 2, 5]
    """
    results: list[Result] = []

    def keep(node: Query, below: tuple[Result, ...]) -> Result:
        result = visit(node, below)
        results.append(result)
        return result

    fold(query, keep)
    return results


Descent: TypeAlias = Generator["Descent[Any]", Any, Result]
"""A recursive function as a generator: it yields each recursive call and is sent its result."""


def descend(walk: Descent[Result]) -> Result:
    """The return value of a top-down walk, which `fold` cannot express, run without recursion.

    >>> def path_length(query: Query) -> Descent[int]:
    ...     return 1 + (yield path_length(query.operand)) if isinstance(query, Project) else 0
    >>> descend(path_length(Anchor(0).project(1).project(2)))
    2
    """
    pending: list[Descent[Any]] = [walk]
    returned: Any = None
    while pending:
        try:
            called = pending[-1].send(returned)
        except StopIteration as stop:
            pending.pop()
            returned = stop.value
        else:
            pending.append(called)
            returned = None
    result: Result = returned
    return result


def _repr_of(node: Query, parts: tuple[str, ...]) -> str:
    """The repr of a node, given the reprs of its operands."""
    name = type(node).__name__
    match node:
        case Anchor():
            return f"{name}(entity_id={node.entity_id!r})"
        case Universe():
            return f"{name}()"
        case Project():
            return f"{name}(operand={parts[0]}, relation_id={node.relation_id!r})"
        case Not():
            return f"{name}(operand={parts[0]})"
        case And() | Or():
            return f"{name}(operands=({', '.join(parts)}))"
    assert_never(node)


def rebuild(query: Query, operands: tuple[Query, ...]) -> Query:
    """The same node with other operands.

    >>> rebuild(Anchor(0).project(1), (Anchor(2),)) == Anchor(2).project(1)
    True
    """
    match query:
        case Anchor() | Universe():
            return query
        case Project(_, relation_id):
            return Project(operands[0], relation_id)
        case Not():
            return Not(operands[0])
        case And():
            return And(operands)
        case Or():
            return Or(operands)
    assert_never(query)


def relabel(query: Query, entity: Callable[[int], int], relation: Callable[[int], int]) -> Query:
    """The same tree with every id replaced; ids are visited in post-order, left to right.

    >>> relabel(Anchor(0).project(1), {0: 7}.get, {1: 8}.get) == Anchor(7).project(8)
    True
    """

    def replace(node: Query, operands: tuple[Query, ...]) -> Query:
        match node:
            case Anchor(entity_id):
                return Anchor(entity(entity_id))
            case Project(_, relation_id):
                return Project(operands[0], relation(relation_id))
            case _:
                return rebuild(node, operands)

    return fold(query, replace)


def subtrees(query: Query) -> list[Query]:
    """Every node of the tree in post-order; the query itself is last.

    >>> query = Anchor(0).project(1) & Anchor(2)
    >>> subtrees(query) == [Anchor(0), Anchor(0).project(1), Anchor(2), query]
    True
    """
    nodes: list[Query] = []
    fold(query, lambda node, _: nodes.append(node))
    return nodes


def depth(query: Query) -> int:
    """The number of nodes on the longest path from the root to a leaf.

    >>> depth(Anchor(0).project(1) & Anchor(2))
    3
    """
    return fold(query, lambda _, below: 1 + max(below, default=0))


def has_negation(query: Query) -> bool:
    """Whether any part of the query is negated.

    >>> has_negation((~Anchor(0)).project(1)), has_negation(Anchor(0).project(1))
    (True, False)
    """
    return fold(query, lambda node, below: isinstance(node, Not) or any(below))


def has_union(query: Query) -> bool:
    """Whether any part of the query is a union.

    >>> has_union((Anchor(0) | Anchor(1)).project(2)), has_union(Anchor(0).project(2))
    (True, False)
    """
    return fold(query, lambda node, below: isinstance(node, Or) or any(below))


def is_monotone(query: Query) -> bool:
    """Whether adding facts to the graph can never remove an answer.

    This is so if no projection is under an odd number of negations.

    >>> borders, speaks = Anchor(0).project(1), Anchor(2).project(3)
    >>> is_monotone(borders & ~Anchor(5)), is_monotone(~(~borders & ~speaks))
    (True, True)
    >>> is_monotone(borders & ~speaks)
    False
    """

    def follow(node: Query, below: tuple[tuple[bool, bool], ...]) -> tuple[bool, bool]:
        """Whether more facts can add answers to a part, and whether they can remove answers."""
        gains, loses = any(gain for gain, _ in below), any(loss for _, loss in below)
        if isinstance(node, Not):
            return loses, gains
        return gains or isinstance(node, Project), loses

    return not fold(query, follow)[1]


def inverse_of(relation_id: int) -> int:
    """The id of the inverse relation, which has the same edges in the other direction.

    >>> inverse_of(4), inverse_of(5)
    (5, 4)
    """
    return relation_id ^ 1
