"""MRR by its definition: each query is embedded alone by the model's operators, each rank counted.

Nothing of planning, batching, rewriting and evaluation is used, so that tables of MRR can be
checked against it. Scores that differ by no more than rounding may be ranked in either order: a
reported MRR is right if some order of them gives it.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping

import torch

from conekg.model.interface import QueryModel, Region
from conekg.query.tree import Anchor, And, Not, Or, Project, Query
from conekg.sampling.query_set import QueryBlock, QuerySet

ROUNDING = 1e-5
"""The largest difference of two logits that is taken for a rounding error."""


def branches(model: QueryModel, query: Query, *, de_morgan: bool = False) -> list[Region]:
    """The regions of a query: one per union-free branch, or a single one by De Morgan's law."""

    def walk(node: Query) -> list[Region]:
        match node:
            case Anchor(entity_id):
                return [model.anchor(torch.tensor([entity_id]))]
            case Project(operand, relation_id):
                return [model.project(one, torch.tensor([relation_id])) for one in walk(operand)]
            case And(operands):
                return [meet(choice) for choice in itertools.product(*map(walk, operands))]
            case Not(operand):
                (one,) = walk(operand)
                return [model.negate(one)]
            case Or(operands):
                found = [one for operand in operands for one in walk(operand)]
                return [model.negate(meet(map(model.negate, found)))] if de_morgan else found
        raise AssertionError(node)

    def meet(regions: Iterable[Region]) -> Region:
        return model.intersect(tuple(torch.stack(parts) for parts in zip(*regions, strict=True)))

    return walk(query)


@torch.no_grad()
def mrr(model: QueryModel, block: QueryBlock, reported: float, *, de_morgan: bool = False) -> float:
    """The MRR of a block, in percent; if rounding allows several, the nearest to `reported`.

    Queries without hard answers are left out.
    """
    entity_ids = torch.arange(model.num_entities)[None]
    least, most = [], []
    for row in range(len(block)):
        easy, hard = (set(map(int, side[row])) for side in (block.easy, block.hard))
        if not hard:
            continue
        regions = branches(model, block.query(row), de_morgan=de_morgan)
        logits = torch.stack([model.logits(region, entity_ids)[0] for region in regions])
        scores = logits.amax(dim=0).tolist()
        others = [score for entity, score in enumerate(scores) if entity not in easy | hard]
        for bound, slack in ((least, ROUNDING), (most, -ROUNDING)):
            ranks = [1 + sum(other + slack > scores[answer] for other in others) for answer in hard]
            bound.append(sum(1 / rank for rank in ranks) / len(ranks))
    lowest, highest = 100 * statistics.mean(least), 100 * statistics.mean(most)
    assert highest - lowest < 0.5, "rounding allows too wide a range for this to be a check"
    return min(max(reported, lowest), highest)


def mrr_row(
    model: QueryModel,
    queries: QuerySet,
    structures: Iterable[str],
    reported: Mapping[str, float],
) -> dict[str, float]:
    """`mrr` of each given structure for which the set has queries with hard answers."""
    wanted = set(structures)
    return {
        block.shape.name: mrr(model, block, reported[block.shape.name])
        for block in queries
        if block.shape.name in wanted and any(map(len, block.hard))
    }
