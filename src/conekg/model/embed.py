"""Runs a plan through a model: the only place where operator steps become tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import torch
from torch import Tensor

from conekg.model.interface import QueryModel, Region
from conekg.query.plan import (
    AnchorStep,
    IntersectStep,
    NegateStep,
    Plan,
    ProjectStep,
    Rows,
    Slot,
    UniverseStep,
)


def embed(
    model: QueryModel,
    plan: Plan,
    anchors: Sequence[Tensor],
    relations: Sequence[Tensor],
    *,
    anchor: Callable[[Tensor], Region] | None = None,
) -> Region:
    """The regions of all branches of all queries of a batch.

    `anchors[g]` [count, anchor slots] and `relations[g]` [count, relation slots] hold the
    ids of group g. Rows come group by group and, within a group, branch by branch:
    a group of n queries with k branches takes k·n consecutive rows. `anchor` takes the
    place of `model.anchor`, once a batch, for who wants the anchors' gradients apart.
    """
    values: list[Region] = []
    embed_entities = anchor or model.anchor

    def ids(columns: Sequence[Tensor], slots: Sequence[Slot]) -> Tensor:
        return torch.cat([columns[slot.group][:, slot.column] for slot in slots])

    def take(rows: Sequence[Rows]) -> Region:
        parts = [tuple(part[r.start : r.stop] for part in values[r.step]) for r in rows]
        return _concatenate(parts)

    for step in plan.steps:
        match step:
            case AnchorStep(entities):
                values.append(embed_entities(ids(anchors, entities)))
            case UniverseStep(count):
                values.append(model.universe(count))
            case ProjectStep(operands, slots):
                values.append(model.project(take(operands), ids(relations, slots)))
            case IntersectStep(operand_lists):
                stacked = zip(*(take(operands) for operands in operand_lists), strict=True)
                values.append(model.intersect(tuple(torch.stack(part) for part in stacked)))
            case NegateStep(operands):
                values.append(model.negate(take(operands)))
            case _:
                assert_never(step)
    return take([rows for branches in plan.roots for rows in branches])


def best_over_branches(plan: Plan, logits: Tensor) -> Tensor:
    """[queries, ...] from the logits of all branches: a union is as good as its best branch.

    ConE's distance to a disjunction is the minimum over the disjuncts; the largest logit
    is the smallest distance.
    """
    if all(len(group.branches) == 1 for group in plan.groups):
        return logits
    sizes = [len(group.branches) * group.count for group in plan.groups]
    parts = [
        part.reshape(len(group.branches), group.count, *part.shape[1:]).amax(dim=0)
        for part, group in zip(torch.split(logits, sizes), plan.groups, strict=True)
    ]
    return torch.cat(parts)


def _concatenate(parts: Sequence[Region]) -> Region:
    if len(parts) == 1:
        return parts[0]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
