"""Converts between trees and BetaE's nested tuples, the notation of the public query files.

A branch is `(start, operations)`: an entity id and the relation ids to follow, where -2 means a
complement. Several branches in one tuple are intersected, or united if the tuple ends in `(-1,)`;
such a tuple may be the start of another branch. A *structure* is such a tuple with `'e'`, `'r'`,
`'n'`, `'u'` in place of the numbers.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, TypeAlias, assert_never

from conekg.errors import QueryError, QueryTooLargeError
from conekg.query.shape import Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold

Nested: TypeAlias = tuple[Any, ...]
"""A query or structure tuple; its items are such tuples, numbers or letters."""

NEGATION, UNION = -2, -1
"""The numbers that mark a complement and a union in query tuples."""

MAX_NESTING = 64
"""The most levels of nested tuples; the reader is recursive, and files may be hostile."""


def query_from_tuple(nested: Nested) -> Query:
    """The tree of a query tuple; `QueryError` if `nested` is not a query tuple.

    >>> query_from_tuple(((5, (0,)), (6, (1, -2))))  # 5.r0 & !6.r1
    And(operands=(Project(operand=Anchor(entity_id=5), relation_id=0), \
Not(operand=Project(operand=Anchor(entity_id=6), relation_id=1))))
    """
    return _Reader(NEGATION, UNION, _as_id).read(nested)


def query_to_tuple(query: Query) -> Nested:
    """The query tuple of a tree; the inverse of `query_from_tuple`.

    Raises `QueryError` for a tree with `*`, or with an entity that no projection or complement is
    applied to: there is no notation for them.

    >>> query_to_tuple(query_from_tuple(((3, (7,)), (5, (9, -2)))))
    ((3, (7,)), (5, (9, -2)))
    """
    return _Writer(NEGATION, UNION, lambda entity_id: entity_id, lambda r: r).write(query)


def shape_from_structure(structure: Nested) -> Shape:
    """The shape of a structure tuple.

    >>> shape_from_structure((("e", ("r",)), ("e", ("r", "n")))).name
    '2in'
    """
    return shape_of(_Reader("n", "u", _as_slot).read(structure))


def structure_of(shape: Shape) -> Nested:
    """The structure tuple of a shape; the inverse of `shape_from_structure`.

    >>> structure_of(shape_from_structure((("e", ("r",)), ("e", ("r", "n")))))
    (('e', ('r',)), ('e', ('r', 'n')))
    """
    return _Writer("n", "u", lambda _: "e", lambda _: "r").write(shape.template)


def _as_id(item: object, kind: str) -> int:
    if not isinstance(item, int) or isinstance(item, bool) or item < 0:
        raise QueryError(f"{reprlib.repr(item)} in a query tuple is not the id of {kind}")
    return item


def _as_slot(item: object, kind: str) -> int:
    letter = "e" if kind == "an entity" else "r"
    if item != letter:
        raise QueryError(f"{reprlib.repr(item)} in a structure tuple is not {letter!r}, {kind}")
    return 0


class _Reader:
    """Reads query tuples and structures; `identify` turns an item into an id or raises an error."""

    def __init__(
        self, negation: object, union: object, identify: Callable[[object, str], int]
    ) -> None:
        self._negation = negation
        self._union = union
        self._identify = identify

    def read(self, nested: object, nesting: int = 0) -> Query:
        if nesting > MAX_NESTING:
            raise QueryTooLargeError(f"a query tuple nests more than {MAX_NESTING} levels deep")
        if not isinstance(nested, tuple) or len(nested) < 2:
            raise QueryError(f"not a query tuple: {reprlib.repr(nested)}")
        *branches, last = nested
        if last == (self._union,) and len(branches) > 1:
            return Or(tuple(self.read(branch, nesting + 1) for branch in branches))
        if len(branches) == 1 and _is_flat(last):
            return self._follow(branches[0], last, nesting)
        return And(tuple(self.read(branch, nesting + 1) for branch in nested))

    def _follow(self, start: object, operations: Nested, nesting: int) -> Query:
        query: Query
        if isinstance(start, tuple):
            query = self.read(start, nesting + 1)
        else:
            query = Anchor(self._identify(start, "an entity"))
        for operation in operations:
            if operation == self._negation:
                query = Not(query)
            else:
                query = Project(query, self._identify(operation, "a relation"))
        return query


def _is_flat(item: object) -> bool:
    """Whether an item is a tuple of operations; a branch would contain another tuple."""
    return isinstance(item, tuple) and not any(isinstance(part, tuple) for part in item)


class _Writer:
    """Writes query tuples and structures."""

    def __init__(
        self,
        negation: object,
        union: object,
        entity: Callable[[int], object],
        relation: Callable[[int], object],
    ) -> None:
        self._negation = negation
        self._union = union
        self._entity = entity
        self._relation = relation

    def write(self, query: Query) -> Nested:
        return _closed(*fold(query, self._visit))

    def _visit(
        self, node: Query, parts: tuple[tuple[object, Nested], ...]
    ) -> tuple[object, Nested]:
        """The start of a node's branch, and the operations that are applied to it."""
        match node:
            case Anchor(entity_id):
                return self._entity(entity_id), ()
            case Project(_, relation_id):
                start, operations = parts[0]
                return start, (*operations, self._relation(relation_id))
            case Not():
                start, operations = parts[0]
                return start, (*operations, self._negation)
            case And():
                return tuple(_closed(*part) for part in parts), ()
            case Or():
                return (*(_closed(*part) for part in parts), (self._union,)), ()
            case Universe():
                raise QueryError("nested tuples have no notation for '*', the set of all entities")
        assert_never(node)


def _closed(start: object, operations: Nested) -> Nested:
    """The branch of a start and its operations; just the start if there are no operations."""
    if operations:
        return start, operations
    if not isinstance(start, tuple):
        raise QueryError(
            f"nested tuples have no notation for entity {start!r} on its own, "
            "without a relation to follow"
        )
    return start
