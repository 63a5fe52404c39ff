"""Query trees as JSON with names: to the tree of ids that the package uses, and back.

The page lets users build questions by clicking. It sends trees and gets the canonical text back,
so that the rules for quoting names stay in `conekg.query`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

from conekg.errors import QueryError, UnknownNameError
from conekg.graph.vocabulary import Vocabulary
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold
from conekg.serving.schemas import Tree


def query_from_tree(tree: Tree, vocabulary: Vocabulary, place: str = "tree") -> Query:
    """The query of a JSON tree; `place` is the tree's path in the request, for error messages."""
    operands = tuple(
        query_from_tree(operand, vocabulary, f"{place}.operands.{index}")
        for index, operand in enumerate(tree.operands)
    )
    _check_arity(tree, place)
    if tree.kind not in ("entity", "hop"):
        _check_nameless(tree, place)
    match tree.kind:
        case "entity":
            return Anchor(_id_in(tree, vocabulary.entities.id_of, place))
        case "all":
            return Universe()
        case "hop":
            return Project(operands[0], _id_in(tree, vocabulary.relation_id, place))
        case "not":
            return Not(operands[0])
        case "and":
            return And(operands)
        case "or":
            return Or(operands)
    assert_never(tree.kind)


def look_up(name: str, id_of: Callable[[str], int], place: str) -> int:
    """The id of a name; the error for an unknown name says where in the request it stands."""
    try:
        return id_of(name)
    except UnknownNameError as error:
        message = error.bare_message or f"unknown {error.kind} {error.name!r}"
        raise UnknownNameError(
            error.kind,
            error.name,
            suggestions=error.suggestions,
            hint=error.extra_hint,
            where_to_look=error.where_to_look,
            message=f"{place}: {message}",
        ) from None


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


def _id_in(tree: Tree, id_of: Callable[[str], int], place: str) -> int:
    """The id of a tree node's name."""
    if tree.name is None:
        raise QueryError(f"{place}: a tree node of kind {tree.kind!r} needs a name")
    return look_up(tree.name, id_of, f"{place}.name")


def _check_nameless(tree: Tree, place: str) -> None:
    for field in ("name", "label"):
        if getattr(tree, field) is not None:
            raise QueryError(
                f"{place}.{field}: a tree node of kind {tree.kind!r} takes no {field}",
                hint="leave it out, or make it an 'entity' or a 'hop'",
            )


def _check_arity(tree: Tree, place: str) -> None:
    count, (least, most, wanted) = len(tree.operands), _OPERANDS[tree.kind]
    if not least <= count <= most:
        raise QueryError(f"{place}: a tree node of kind {tree.kind!r} takes {wanted}, not {count}")


_NONE, _ONE = (0, 0, "no operand"), (1, 1, "one operand")
_SEVERAL = (2, math.inf, "two or more operands")
_OPERANDS: dict[str, tuple[int, float, str]] = {
    "entity": _NONE,
    "all": _NONE,
    "hop": _ONE,
    "not": _ONE,
    "and": _SEVERAL,
    "or": _SEVERAL,
}
"""How many operands each kind of node takes: least, most, and both in words."""
