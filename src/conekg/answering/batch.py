"""Embeds queries of any shapes as one batch.

Queries of the same shape form one group of a plan. The result says which rows of the region
belong to which query, so that callers keep their own order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch

from conekg.model.embed import embed
from conekg.model.interface import QueryModel, Region
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.plan import plan_shapes
from conekg.query.shape import Grounded, Shape, grounded
from conekg.query.tree import Query


@dataclass(frozen=True)
class EmbeddedQueries:
    """The regions of all union-free branches of some queries."""

    region: Region
    """Components [rows, dim]."""
    rows: tuple[tuple[int, ...], ...]
    """For each query, in the order given, the rows of its branches."""

    def some(self, start: int, stop: int) -> EmbeddedQueries:
        """The queries from place `start` up to `stop`, their rows in the order of the queries."""
        chosen = [row for rows in self.rows[start:stop] for row in rows]
        ends = list(accumulate((len(rows) for rows in self.rows[start:stop]), initial=0))
        return EmbeddedQueries(
            tuple(component[chosen] for component in self.region),
            tuple(tuple(range(first, last)) for first, last in pairwise(ends)),
        )


def embed_queries(
    model: QueryModel,
    queries: Sequence[Query],
    union: UnionForm = "dnf",
    cap: int = DEFAULT_BRANCH_CAP,
) -> EmbeddedQueries:
    """The regions of one query or more, on the model's device and without gradients."""
    return embed_grounded(model, [grounded(query) for query in queries], union, cap)


def embed_grounded(
    model: QueryModel,
    queries: Sequence[Grounded],
    union: UnionForm = "dnf",
    cap: int = DEFAULT_BRANCH_CAP,
) -> EmbeddedQueries:
    """The same as `embed_queries`, for queries given as shapes and ids."""
    places_of = group_by_shape(queries)
    plan = plan_shapes([(shape, len(places)) for shape, places in places_of.items()], union, cap)
    anchors, relations = [], []
    for places in places_of.values():
        members = [queries[place] for place in places]
        entity_ids = [member.entity_ids for member in members]
        relation_ids = [member.relation_ids for member in members]
        anchors.append(torch.tensor(entity_ids, dtype=torch.long, device=model.device))
        relations.append(torch.tensor(relation_ids, dtype=torch.long, device=model.device))
    with torch.inference_mode():
        region = embed(model, plan, anchors, relations)
    rows: list[tuple[int, ...]] = [()] * len(queries)
    start = 0
    for group, places in zip(plan.groups, places_of.values(), strict=True):
        for index, place in enumerate(places):
            rows[place] = tuple(
                start + branch * group.count + index for branch in range(len(group.branches))
            )
        start += group.count * len(group.branches)
    return EmbeddedQueries(region, tuple(rows))


def group_by_shape(queries: Sequence[Grounded]) -> dict[Shape, list[int]]:
    """The places of the queries of each shape, shapes in order of first appearance."""
    places_of: dict[Shape, list[int]] = {}
    for place, query in enumerate(queries):
        places_of.setdefault(query.shape, []).append(place)
    return places_of
