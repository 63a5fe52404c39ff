"""Whether a model has all operators that a query needs, decided before any work is done.

The operators are those of the query's union-free branches, which are what a model embeds.
De Morgan's law turns a union into negations, so the form of unions matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from conekg.errors import UnsupportedOperatorError
from conekg.model.interface import QueryModel
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.plan import branches_of
from conekg.query.shape import Shape, shape_of
from conekg.query.tree import Not, Query, Universe, has_negation, subtrees


def is_supported(
    model: QueryModel | type[QueryModel], query: Query | Shape, union: UnionForm = "dnf"
) -> bool:
    """Whether the model has every operator the query needs."""
    return not missing_operators(model, query, union)


def missing_operators(
    model: QueryModel | type[QueryModel],
    query: Query | Shape,
    union: UnionForm = "dnf",
    cap: int = DEFAULT_BRANCH_CAP,
) -> tuple[str, ...]:
    """The operators that the query needs and the model lacks, in words.

    Raises QueryTooLargeError for a query of more than `cap` branches.
    """
    kinds = _node_types(query if isinstance(query, Shape) else shape_of(query), union, cap)
    missing = []
    if not model.can_negate and Not in kinds:
        missing.append("negation")
    if not model.can_embed_universe and Universe in kinds:
        missing.append("the set of all entities")
    return tuple(missing)


@lru_cache(maxsize=1024)
def _node_types(shape: Shape, union: UnionForm, cap: int) -> frozenset[type[Query]]:
    """The types of the nodes in the branches of a shape."""
    branches = branches_of(shape, union, cap)
    return frozenset(type(node) for branch in branches for node in subtrees(branch))


def check_supported(
    model: QueryModel | type[QueryModel],
    queries: Iterable[Query | Shape],
    union: UnionForm = "dnf",
    cap: int = DEFAULT_BRANCH_CAP,
) -> None:
    """Raise UnsupportedOperatorError, naming the first query the model cannot embed."""
    for query in queries:
        missing = missing_operators(model, query, union, cap)
        if missing:
            shape = query if isinstance(query, Shape) else shape_of(query)
            by_law = missing == ("negation",) and not has_negation(shape.template)
            raise UnsupportedOperatorError(
                f"model {model.name!r} lacks {' and '.join(missing)}, which queries of shape "
                f"{shape.name} need" + (" by De Morgan's law" if by_law else ""),
                hint="embed unions as dnf, which needs none"
                if by_law
                else "choose a model that has it, such as 'cone', or leave such queries out",
            )
