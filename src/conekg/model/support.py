"""Whether a model can answer a query at all, decided before any work is done.

The operators a query needs are read off its union-free branches, since that is what a
model is asked to embed: De Morgan's law brings negations into a union.
"""

from __future__ import annotations

from collections.abc import Iterable

from conekg.errors import UnsupportedOperatorError
from conekg.model.interface import QueryModel
from conekg.query.rewrite import UnionForm, union_free_branches
from conekg.query.shape import Shape, shape_of
from conekg.query.tree import Not, Query, Universe, subtrees


def is_supported(
    model: QueryModel | type[QueryModel], query: Query | Shape, union: UnionForm = "dnf"
) -> bool:
    """Whether the model has every operator the query needs."""
    return not missing_operators(model, query, union)


def missing_operators(
    model: QueryModel | type[QueryModel], query: Query | Shape, union: UnionForm = "dnf"
) -> tuple[str, ...]:
    """What the query needs and the model lacks, in words."""
    tree = query.template if isinstance(query, Shape) else query
    nodes = [node for branch in union_free_branches(tree, union) for node in subtrees(branch)]
    missing = []
    if not model.can_negate and any(isinstance(node, Not) for node in nodes):
        missing.append("negation")
    if not model.can_embed_universe and any(isinstance(node, Universe) for node in nodes):
        missing.append("the set of all entities")
    return tuple(missing)


def check_supported(
    model: QueryModel | type[QueryModel],
    queries: Iterable[Query | Shape],
    union: UnionForm = "dnf",
) -> None:
    """Raise UnsupportedOperatorError, naming the first query the model cannot embed."""
    for query in queries:
        missing = missing_operators(model, query, union)
        if missing:
            shape = query if isinstance(query, Shape) else shape_of(query)
            raise UnsupportedOperatorError(
                f"model {model.name!r} lacks {' and '.join(missing)}, "
                f"which queries of shape {shape.name} need",
                hint="choose a model that has it, such as 'cone', or leave such queries out",
            )
