"""Runs a plan through a model: the only place where operator steps become tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

import numpy as np
import torch
from torch import Tensor

from conekg.graph.adjacency import IntArray
from conekg.model.interface import QueryModel, Region
from conekg.query.branches import UnionForm
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
    once per batch instead of `model.anchor`, so that a caller can separate the anchors' gradients.
    """
    pieces: dict[Rows, Region] = {}
    outputs: list[Region] = []
    # `anchor or ...` would break the graph of torch.compile with PyTorch 2.11.
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
        # A batch without queries has regions of 0 rows; a plan without groups, which has no steps
        # either, has the region ().
        return _concatenate(parts) if parts else tuple(p[:0] for p in (outputs or [()])[0])

    def stack(step: Step) -> Region:
        assert isinstance(step, IntersectStep)
        parts = zip(*(take(operands) for operands in step.operands), strict=True)
        return tuple(torch.stack(part) for part in parts)

    projections = [step for step in plan.steps if isinstance(step, ProjectStep)]
    # One look-up for all projections: each look-up adds a gradient of the whole table's size.
    weights = iter(_relation_weights(model, [ids(relations, s.relations) for s in projections]))
    for numbers in _step_groups(plan):
        match plan.steps[numbers[0]]:
            case AnchorStep(entities):
                regions = [embed_entities(ids(anchors, entities))]
            case UniverseStep(count):
                regions = [model.universe(count)]
            case ProjectStep(operands, _):
                regions = [model.project_by_weights(take(operands), next(weights))]
            case IntersectStep():
                regions = model.intersect_each([stack(plan.steps[number]) for number in numbers])
            case NegateStep(operands):
                regions = [model.negate(take(operands))]
            case _:
                assert_never(plan.steps[numbers[0]])
        for number, region in zip(numbers, regions, strict=True):
            pieces.update(_pieces(region, plan.outputs[number]))
        outputs += regions
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
    """[queries, ...] from the logits of all branches: the largest logit over each query's branches.

    The distance to a disjunction is the smallest one to a disjunct (ConE, Section 4.3, d_dis), and
    the smallest distance has the largest logit.
    """
    if all(len(group.branches) == 1 for group in plan.groups):
        return logits
    sizes = [len(group.branches) * group.count for group in plan.groups]
    parts = [
        part.reshape(len(group.branches), group.count, *part.shape[1:]).amax(dim=0)
        for part, group in zip(torch.split(logits, sizes), plan.groups, strict=True)
    ]
    return torch.cat(parts)


def _step_groups(plan: Plan) -> Iterator[list[int]]:
    """The numbers of the steps, in order and in groups that run together.

    Consecutive intersections that do not depend on each other form one group; any other step is a
    group of its own.
    """
    group: list[int] = []
    for number, step in enumerate(plan.steps):
        if not isinstance(step, IntersectStep):
            if group:
                yield group
                group = []
            yield [number]
            continue
        if any(run.step in group for operands in step.operands for run in operands):
            yield group
            group = []
        group.append(number)
    if group:
        yield group


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
    """The pieces of a step's output that later steps take, from one split.

    Slices would give the same values, but the gradient of each is a zero-filled tensor of the
    whole output's size.
    """
    sizes = [rows.stop - rows.start for rows in outputs]
    columns = [torch.split(part, sizes) for part in region]
    return dict(zip(outputs, zip(*columns, strict=True), strict=True))


def _concatenate(parts: Sequence[Region]) -> Region:
    if len(parts) == 1:
        return parts[0]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
