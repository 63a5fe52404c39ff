"""The query tree: six frozen nodes, and the two walks everything else is built on.

A query denotes a set of entities. Nodes hold integer ids, never names: text is
understood once, in `parse`, and what walks the tree afterwards sees numbers.
Relation ids come in pairs, 2k forward and 2k+1 its inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, assert_never

Result = TypeVar("Result")


class Node:
    """Operators shared by all nodes, so that trees can be written as `~a & b.project(r)`."""

    __slots__ = ()

    def project(self: Query, relation_id: int) -> Project:  # type: ignore[misc]
        """The entities one `relation_id` edge away from this set."""
        return Project(self, relation_id)

    def __and__(self: Query, other: Query) -> And:  # type: ignore[misc]
        return And((self, other))

    def __or__(self: Query, other: Query) -> Or:  # type: ignore[misc]
        return Or((self, other))

    def __invert__(self: Query) -> Not:  # type: ignore[misc]
        return Not(self)


@dataclass(frozen=True, slots=True)
class Anchor(Node):
    """The set that holds one entity."""

    entity_id: int


@dataclass(frozen=True, slots=True)
class Universe(Node):
    """The set of all entities."""


@dataclass(frozen=True, slots=True)
class Project(Node):
    """The tails of all `relation_id` edges whose head is in `operand`."""

    operand: Query
    relation_id: int


@dataclass(frozen=True, slots=True)
class And(Node):
    """The entities in every operand; two operands at least."""

    operands: tuple[Query, ...]

    def __post_init__(self) -> None:
        assert len(self.operands) >= 2, "an intersection has two operands at least"


@dataclass(frozen=True, slots=True)
class Or(Node):
    """The entities in any operand; two operands at least."""

    operands: tuple[Query, ...]

    def __post_init__(self) -> None:
        assert len(self.operands) >= 2, "a union has two operands at least"


@dataclass(frozen=True, slots=True)
class Not(Node):
    """All entities but those of `operand`."""

    operand: Query


Query: TypeAlias = Anchor | Universe | Project | And | Or | Not


def children(query: Query) -> tuple[Query, ...]:
    """The operands of a node, left to right."""
    match query:  # no fields in the patterns: taking them out there costs as much again
        case Project() | Not():
            return (query.operand,)
        case Anchor() | Universe():
            return ()
        case And() | Or():
            return query.operands
    assert_never(query)


def fold(query: Query, visit: Callable[[Query, tuple[Result, ...]], Result]) -> Result:
    """Walk bottom-up, left to right, handing `visit` each node and its children's results.

    Iterative, so that depth is bounded by memory and not by Python's stack.
    """
    # Parents before children, right before left: backwards it is the order of the visits.
    backwards: list[tuple[Query, int]] = []
    pending = [query]
    while pending:
        node = pending.pop()
        operands = children(node)
        backwards.append((node, len(operands)))
        pending.extend(operands)
    results: list[Result] = []
    for node, arity in reversed(backwards):
        if arity:
            arguments = tuple(results[-arity:])
            del results[-arity:]
            results.append(visit(node, arguments))
        else:
            results.append(visit(node, ()))
    (result,) = results
    return result


def rebuild(query: Query, operands: tuple[Query, ...]) -> Query:
    """The same node over other operands."""
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
    """The same tree with every id replaced, visited in post-order, left to right."""

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
    """Every node of the tree in post-order, the query itself last."""
    found: list[Query] = []
    fold(query, lambda node, _: found.append(node))
    return found


def depth(query: Query) -> int:
    """The number of nodes on the longest path from the root to a leaf."""
    return fold(query, lambda _, below: 1 + max(below, default=0))


def has_negation(query: Query) -> bool:
    """Whether any part of the query is negated."""
    return fold(query, lambda node, below: isinstance(node, Not) or any(below))


def has_union(query: Query) -> bool:
    """Whether any part of the query is a union."""
    return fold(query, lambda node, below: isinstance(node, Or) or any(below))


def inverse_of(relation_id: int) -> int:
    """The id of the relation that walks the same edges backwards."""
    return relation_id ^ 1
