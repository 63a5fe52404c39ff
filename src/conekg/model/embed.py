"""Runs a plan through a model: the only place where operator steps become tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

import numpy as np
import torch
from torch import Tensor

from conekg.graph.adjacency import IntArray
from conekg.model.interface import QueryModel, Region
from conekg.query.plan import (
    AnchorStep,
    IntersectStep,
    NegateStep,
    Plan,
    ProjectStep,
    Rows,
    Slot,
    Step,
    UniverseStep,
    join_rows,
    plan_shapes,
)
from conekg.query.rewrite import UnionForm
from conekg.query.shape import Shape


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
    a group of n queries with k branches takes k·n consecutive rows. `anchor`, if given, is called
    once a batch in place of `model.anchor`, so that a caller can have the anchors' gradients apart.
    """
    pieces: dict[Rows, Region] = {}
    wholes: list[Region] = []
    embed_entities = model.anchor if anchor is None else anchor

    def ids(columns: Sequence[Tensor], slots: Sequence[Slot]) -> Tensor:
        return torch.cat([columns[slot.group][:, slot.column] for slot in slots])

    def take(runs: Sequence[Rows]) -> Region:
        parts = [
            pieces[piece]
            for run in runs
            for piece in plan.outputs[run.step]
            if run.start <= piece.start and piece.stop <= run.stop
        ]
        # No rows at all: of a batch of queries none, of a batch without groups not even a shape.
        return _concatenate(parts) if parts else tuple(p[:0] for p in (wholes or [()])[0])

    def stack(step: Step) -> Region:
        assert isinstance(step, IntersectStep)
        parts = zip(*(take(operands) for operands in step.operands), strict=True)
        return tuple(torch.stack(part) for part in parts)

    projections = [step for step in plan.steps if isinstance(step, ProjectStep)]
    # All at once: the gradient of a table that is read several times is several tables.
    moves = iter(_relation_weights(model, [ids(relations, s.relations) for s in projections]))
    for numbers in _side_by_side(plan):
        match plan.steps[numbers[0]]:
            case AnchorStep(entities):
                regions = [embed_entities(ids(anchors, entities))]
            case UniverseStep(count):
                regions = [model.universe(count)]
            case ProjectStep(operands, _):
                regions = [model.project_by_weights(take(operands), next(moves))]
            case IntersectStep():
                regions = model.intersect_each([stack(plan.steps[number]) for number in numbers])
            case NegateStep(operands):
                regions = [model.negate(take(operands))]
            case _:
                assert_never(plan.steps[numbers[0]])
        for number, region in zip(numbers, regions, strict=True):
            pieces.update(_pieces(region, plan.outputs[number]))
        wholes += regions
    return take(join_rows([rows for branches in plan.roots for rows in branches]))


def embed_shape(
    model: QueryModel,
    shape: Shape,
    anchors: IntArray,
    relations: IntArray,
    union: UnionForm = "dnf",
) -> tuple[Plan, Region]:
    """The plan and the regions of queries of one shape, from their ids, on the model's device."""
    plan = plan_shapes([(shape, len(anchors))], union)
    entity_ids, relation_ids = (
        torch.from_numpy(ids.astype(np.int64)).to(model.device) for ids in (anchors, relations)
    )
    return plan, embed(model, plan, [entity_ids], [relation_ids])


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


def _side_by_side(plan: Plan) -> Iterator[list[int]]:
    """The numbers of the steps in order; intersections that do not need each other are together."""
    together: list[int] = []
    for number, step in enumerate(plan.steps):
        taken = step.operands if isinstance(step, IntersectStep) else None
        is_next = taken is not None and not any(
            run.step in together for operands in taken for run in operands
        )
        if together and not is_next:
            yield together
            together = []
        together.append(number)
        if taken is None:
            yield together
            together = []
    if together:
        yield together


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
