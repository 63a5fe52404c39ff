"""Query trees by name: from JSON to the tree of ids, and back with labels.

The page builds questions by clicking; it sends trees, and gets the canonical
text, so that the rules of quoting live in `query` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import assert_never

from conekg.answering.understand import settled
from conekg.errors import QueryError, QueryTooLargeError, UnknownNameError
from conekg.graph.vocabulary import Vocabulary
from conekg.query.rewrite import UnionForm, count_branches
from conekg.query.shape import Shape, grounded, shape_of
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Query,
    Universe,
    depth,
    fold,
    subtrees,
)
from conekg.serving.limits import Limits
from conekg.serving.schemas import Tree


def query_from_tree(tree: Tree, vocabulary: Vocabulary, place: str = "tree") -> Query:
    """The query a JSON tree describes; `place` is where messages say that the tree stands."""
    operands = tuple(
        query_from_tree(operand, vocabulary, f"{place}.operands.{index}")
        for index, operand in enumerate(tree.operands)
    )
    match tree.kind:
        case "entity":
            _check_arity(tree, place, 0, 0)
            return Anchor(_look_up(vocabulary.entities.id_of, tree, place))
        case "all":
            _check_arity(tree, place, 0, 0)
            _check_nameless(tree, place)
            return Universe()
        case "hop":
            _check_arity(tree, place, 1, 1)
            return Project(operands[0], _look_up(vocabulary.relation_id, tree, place))
        case "not":
            _check_arity(tree, place, 1, 1)
            _check_nameless(tree, place)
            return Not(operands[0])
        case "and":
            _check_arity(tree, place, 2, None)
            _check_nameless(tree, place)
            return And(operands)
        case "or":
            _check_arity(tree, place, 2, None)
            _check_nameless(tree, place)
            return Or(operands)
    assert_never(tree.kind)


def _look_up(id_of: Callable[[str], int], tree: Tree, place: str) -> int:
    """The id of a tree's name; an error says where in the tree the name stands."""
    try:
        return id_of(_name_of(tree, place))
    except UnknownNameError as error:
        what = error.bare_message or f"unknown {error.kind} {error.name!r}"
        raise UnknownNameError(
            error.kind,
            error.name,
            suggestions=error.suggestions,
            hint=error.extra_hint,
            message=f"{place}.name: {what}",
        ) from None


def check_names(tree: Tree, limits: Limits) -> None:
    """Raise `QueryTooLargeError`, with its place, at the name that is beyond what a text may have.

    Labels are not read, however long.
    """
    size = 0
    for place, name in _names_of(tree, "tree"):
        size += len(name)
        if size > limits.query_chars:
            raise QueryTooLargeError(
                f"{place}.name: the names of the tree up to this one have {size} characters; "
                f"this server takes {limits.query_chars}",
                hint="ask for its parts one at a time",
            )


def _names_of(tree: Tree, place: str) -> Iterator[tuple[str, str]]:
    """The names of a tree and where each stands, in reading order."""
    if tree.name is not None:
        yield place, tree.name
    for index, operand in enumerate(tree.operands):
        yield from _names_of(operand, f"{place}.operands.{index}")


def tree_of_query(query: Query, vocabulary: Vocabulary) -> Tree:
    """The JSON tree of a query, with readable labels."""

    def view(node: Query, operands: tuple[Tree, ...]) -> Tree:
        below = list(operands)
        match node:
            case Anchor(entity_id):
                entities = vocabulary.entities
                name, label = entities.name(entity_id), entities.label(entity_id)
                return Tree(kind="entity", name=name, label=label)
            case Universe():
                return Tree(kind="all")
            case Project(_, relation_id):
                name = vocabulary.relation_name(relation_id)
                label = vocabulary.relation_label(relation_id)
                return Tree(kind="hop", name=name, label=label, operands=below)
            case And():
                return Tree(kind="and", operands=below)
            case Or():
                return Tree(kind="or", operands=below)
            case Not():
                return Tree(kind="not", operands=below)
        assert_never(node)

    return fold(query, view)


def check_size(query: Query, limits: Limits) -> int:
    """The depth of a query; `QueryTooLargeError` where it is deeper or larger than allowed."""
    nodes, levels = _size_of(shape_of(query))
    if nodes > limits.query_nodes:
        raise QueryTooLargeError(
            f"the query has {nodes} nodes; this server takes {limits.query_nodes}",
            hint="ask for its parts one at a time",
        )
    if levels > limits.query_depth:
        raise QueryTooLargeError(
            f"the query is {levels} levels deep; this server takes {limits.query_depth}",
            hint="ask for its parts one at a time",
        )
    return levels


@lru_cache(maxsize=1024)
def _size_of(shape: Shape) -> tuple[int, int]:
    """How many nodes queries of a shape have, and how deep they are."""
    return len(subtrees(shape.template)), depth(shape.template)


def check_branches(query: Query, union: UnionForm, limits: Limits) -> None:
    """Raise `QueryTooLargeError` where a query has more branches than allowed."""
    branches = 1 if union == "demorgan" else num_branches(query)
    if branches > limits.query_branches:
        raise QueryTooLargeError(
            f"the query has {branches:,} union-free branches; "
            f"this server takes {limits.query_branches:,}",
            hint='ask for its parts one at a time, or send "union": "demorgan": one branch always',
        )


def num_branches(query: Query) -> int:
    """How many union-free branches a query has once it is settled, however many that is."""
    return _branches_of_shape(settled(query, grounded(query)).shape)


@lru_cache(maxsize=1024)
def _branches_of_shape(shape: Shape) -> int:
    return count_branches(shape.template)


def check_text(text: str, limits: Limits, place: str) -> str:
    """The text itself, or `QueryTooLargeError` where it is longer than the server takes."""
    if len(text) > limits.query_chars:
        raise QueryTooLargeError(
            f"{place} has {len(text)} characters; this server takes {limits.query_chars}",
            hint="ask for its parts one at a time" if place == "query" else None,
        )
    return text


def _name_of(tree: Tree, place: str) -> str:
    if tree.name is None:
        raise QueryError(f"{place}: a tree node of kind {tree.kind!r} needs a name")
    return tree.name


def _check_nameless(tree: Tree, place: str) -> None:
    for field in ("name", "label"):
        if getattr(tree, field) is not None:
            raise QueryError(
                f"{place}.{field}: a tree node of kind {tree.kind!r} takes no {field}",
                hint="leave it out, or make it an 'entity' or a 'hop'",
            )


def _check_arity(tree: Tree, place: str, least: int, most: int | None) -> None:
    count = len(tree.operands)
    if count < least or (most is not None and count > most):
        wanted = (
            "no operand" if most == 0 else "one operand" if most == 1 else "two or more operands"
        )
        raise QueryError(f"{place}: a tree node of kind {tree.kind!r} takes {wanted}, not {count}")
