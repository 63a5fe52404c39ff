"""The nearest entities of many regions on a GPU, abandoning far ones early.

The first dimensions alone select as many seeds as answers are wanted; no answer is farther
than the farthest seed. A kernel then adds up the dimensions and abandons a tile of entities
once all of them are beyond that distance. Small tables are scored in full, which takes a GPU
less time than finding the seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from conekg.answering.ranking import Ranking, rank_arrays
from conekg.graph.adjacency import IntArray
from conekg.model.interface import QueryModel, Region
from conekg.model.scoring import DeviceTable

_SEED_DIMS = 64
"""Dimensions that select the seeds: enough to tell near from far, a twelfth of 800."""
ABANDON_FROM = 100_000
"""The number of entities from which candidates are abandoned. At 14,505 the full scan is 1.1 to 3
times as fast, for 1 and for 32 regions at once (`benchmarks/bench_topk.py --device cuda`)."""
_NUMBERS_AT_ONCE = 1 << 26
"""How many (row, seed, dimension) triples are in memory at a time when the seeds are scored."""
_SLACK = 1e-5
"""Relative tolerance of the bound: sums in another order differ in the last bits."""
_SLACK_PER_DIM = 1e-6
"""Absolute tolerance of the bound, for each dimension: the kernel rounds the angles of cones in
another way than the model, which matters for distances near zero."""


class DeviceSearch:
    """A search by `nearest_on_device`; see `search.Search`."""

    recall = 1.0

    def __init__(self, model: QueryModel, table: DeviceTable) -> None:
        self._model = model
        self._table = table

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `search.Search`."""
        return nearest_on_device(self._model, self._table, region, counts, skip)


def nearest_on_device(
    model: QueryModel,
    table: DeviceTable,
    region: Region,
    counts: Sequence[int],
    skip: Sequence[IntArray],
    *,
    abandon: bool | None = None,
) -> list[Ranking]:
    """For each row its best `counts[row]` entities not in `skip[row]`, by their logits.

    Best first, equal logits by id; the same as a full scan by `table` gives. `abandon` turns
    early abandoning on or off; by default the number of entities decides.
    """
    rows = torch.as_tensor(
        np.repeat(np.arange(len(skip)), [len(ids) for ids in skip]), device=region[0].device
    )
    skipped = (rows, torch.as_tensor(np.concatenate(skip), device=rows.device).long())
    wanted = [
        max(0, min(count, table.num_entities - len(ids)))
        for count, ids in zip(counts, skip, strict=True)
    ]
    most = max(wanted, default=0)
    if most == 0:
        return [Ranking(np.empty(0, dtype=np.int64), np.empty(0)) for _ in wanted]
    if table.num_entities >= ABANDON_FROM if abandon is None else abandon:
        bounds = _bounds(model, table, region, most, skipped)
        logits = table.logits_within(region, bounds)
    else:
        logits = table.logits(region)
    logits[skipped] = -torch.inf
    # One more than wanted shows whether the last one is tied with an entity that is left out.
    scores, ids = logits.topk(min(most + 1, table.num_entities), dim=1)
    on_host = zip(wanted, ids.cpu().numpy(), scores.double().cpu().numpy(), strict=True)
    found = []
    for row, (count, row_ids, row_scores) in enumerate(on_host):
        if 0 < count < len(row_scores) and row_scores[count] == row_scores[count - 1]:
            tied = (logits[row] >= row_scores[count - 1]).nonzero()[:, 0]
            row_ids = tied.cpu().numpy()
            row_scores = logits[row, tied].double().cpu().numpy()
        else:
            row_ids, row_scores = row_ids[:count], row_scores[:count]
        found.append(rank_arrays(row_ids, row_scores, count))
    return found


def _bounds(
    model: QueryModel,
    table: DeviceTable,
    region: Region,
    count: int,
    skipped: tuple[Tensor, Tensor],
) -> Tensor:
    """[rows] a distance that at least `count` entities are within; infinite if there are fewer."""
    lower = table.distances(region, dims=_SEED_DIMS)
    lower[skipped] = torch.inf
    near, seeds = lower.topk(count, dim=1, largest=False)
    at_once = max(1, _NUMBERS_AT_ONCE // (len(seeds) * model.dim))
    parts = [model.distance(region, ids).amax(dim=1) for ids in seeds.split(at_once, dim=1)]
    farthest = torch.stack(parts).amax(dim=0) * (1.0 + _SLACK) + _SLACK_PER_DIM * model.dim
    return torch.where(near[:, -1].isfinite(), farthest, torch.inf)
