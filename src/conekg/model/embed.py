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
    join_rows,
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
    pieces: dict[Rows, Region] = {}
    wholes: list[Region] = []
    embed_entities = anchor or model.anchor

    def ids(columns: Sequence[Tensor], slots: Sequence[Slot]) -> Tensor:
        return torch.cat([columns[slot.group][:, slot.column] for slot in slots])

    def take(runs: Sequence[Rows]) -> Region:
        parts = [
            pieces[piece]
            for run in runs
            for piece in plan.outputs[run.step]
            if run.start <= piece.start and piece.stop <= run.stop
        ]
        return _concatenate(parts) if parts else tuple(part[:0] for part in wholes[0])

    projections = [step for step in plan.steps if isinstance(step, ProjectStep)]
    # All at once: the gradient of a table that is read several times is several tables.
    moves = iter(_relation_weights(model, [ids(relations, s.relations) for s in projections]))
    for number, step in enumerate(plan.steps):
        match step:
            case AnchorStep(entities):
                region = embed_entities(ids(anchors, entities))
            case UniverseStep(count):
                region = model.universe(count)
            case ProjectStep(operands, _):
                region = model.project_by_weights(take(operands), next(moves))
            case IntersectStep(operand_lists):
                stacked = zip(*(take(operands) for operands in operand_lists), strict=True)
                region = model.intersect(tuple(torch.stack(part) for part in stacked))
            case NegateStep(operands):
                region = model.negate(take(operands))
            case _:
                assert_never(step)
        pieces.update(_pieces(region, plan.outputs[number]))
        wholes.append(region)
    return take(join_rows([rows for branches in plan.roots for rows in branches]))


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


def _relation_weights(
    model: QueryModel, relation_ids: Sequence[Tensor]
) -> list[tuple[Tensor, ...]]:
    """The relations' weights for each of several projections, looked up together."""
    if not relation_ids:
        return []
    weights = model.relation_weights(torch.cat(list(relation_ids)))
    sizes = [len(ids) for ids in relation_ids]
    return list(zip(*(torch.split(part, sizes) for part in weights), strict=True))


def _pieces(region: Region, outputs: Sequence[Rows]) -> dict[Rows, Region]:
    """The pieces of a step's output that later steps take, by one split.

    Slices would do the same, but the gradient of a slice is a zero-filled copy of the whole.
    """
    sizes = [rows.stop - rows.start for rows in outputs]
    columns = [torch.split(part, sizes) for part in region]
    return dict(zip(outputs, zip(*columns, strict=True), strict=True))


def _concatenate(parts: Sequence[Region]) -> Region:
    if len(parts) == 1:
        return parts[0]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
