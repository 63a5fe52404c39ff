"""Checks of a question's size: its text, its names, its nodes and its branches.

Each is compared with the server's limits before anything is computed for the question.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from conekg.answering.understand import settled
from conekg.errors import QueryTooLargeError
from conekg.query.branches import UnionForm, count_branches
from conekg.query.shape import Shape, grounded, shape_of
from conekg.query.tree import Query, depth, subtrees
from conekg.serving.limits import Limits
from conekg.serving.schemas import Tree


def check_text(text: str, limits: Limits, place: str) -> str:
    """The text itself; QueryTooLargeError if it is longer than the limit."""
    if len(text) > limits.query_chars:
        raise QueryTooLargeError(
            f"{place} has {len(text)} characters; this server allows {limits.query_chars}",
            hint="ask for its parts one at a time" if place == "query" else None,
        )
    return text


def check_names(tree: Tree, limits: Limits) -> None:
    """Raise QueryTooLargeError if the names of a tree are longer, together, than a text may be.

    The message says at which name the limit is passed. Labels do not count, as they are ignored.
    """
    size = 0
    for place, name in _names_of(tree, "tree"):
        size += len(name)
        if size > limits.query_chars:
            raise QueryTooLargeError(
                f"{place}.name: the names of the tree up to this one have {size} characters; "
                f"this server allows {limits.query_chars}",
                hint="ask for its parts one at a time",
            )


def _names_of(tree: Tree, place: str) -> Iterator[tuple[str, str]]:
    """The names of a tree, each after its place, from the root down."""
    if tree.name is not None:
        yield place, tree.name
    for index, operand in enumerate(tree.operands):
        yield from _names_of(operand, f"{place}.operands.{index}")


def check_size(query: Query, limits: Limits) -> int:
    """The depth of a query; QueryTooLargeError if it is deeper or has more nodes than allowed."""
    nodes, levels = _size_of(shape_of(query))
    if nodes > limits.query_nodes:
        raise QueryTooLargeError(
            f"the query has {nodes} nodes; this server allows {limits.query_nodes}",
            hint="ask for its parts one at a time",
        )
    if levels > limits.query_depth:
        raise QueryTooLargeError(
            f"the query is {levels} levels deep; this server allows {limits.query_depth}",
            hint="ask for its parts one at a time",
        )
    return levels


@lru_cache(maxsize=1024)
def _size_of(shape: Shape) -> tuple[int, int]:
    """The number of nodes and the depth of queries of a shape."""
    return len(subtrees(shape.template)), depth(shape.template)


def check_branches(query: Query, union: UnionForm, limits: Limits) -> None:
    """Raise QueryTooLargeError if a query has more branches than allowed."""
    branches = 1 if union == "demorgan" else num_branches(query)
    if branches > limits.query_branches:
        raise QueryTooLargeError(
            f"the query has {branches:,} union-free branches; "
            f"this server allows {limits.query_branches:,}",
            hint='ask for its parts one at a time, or send "union": "demorgan", which needs only '
            "one branch",
        )


def num_branches(query: Query) -> int:
    """The number of union-free branches of a query after it was settled; it may be huge."""
    return _branches_of_shape(settled(query, grounded(query)).shape)


@lru_cache(maxsize=1024)
def _branches_of_shape(shape: Shape) -> int:
    return count_branches(shape.template)
