"""The best entities of a region by tensor operations, on any device, at any precision.

The model's own scores of all entities serve any model. Where its distance is a sum over
dimensions, and few regions are asked for, candidates are abandoned early: dimensions are
added block by block.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from conekg.answering.ranking import Ranking, best, rank
from conekg.graph.adjacency import IntArray
from conekg.model.interface import QueryModel, Region

_BLOCK = 64
_ONE_BY_ONE = 4
"""Up to so many regions are searched one after the other."""


class FullSearch:
    """A search that scores everybody, whatever the model; see `search.Search`."""

    recall = 1.0

    def __init__(self, model: QueryModel) -> None:
        self._model = model

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `search.Search`."""
        logits = self._model.logits_of_all(region)
        return [best(row, count, ids) for row, count, ids in zip(logits, counts, skip, strict=True)]


class BlockSearch:
    """A search by `nearest_by_blocks`, or in full where that is faster; see `search.Search`.

    `points` [num_entities, dim] are the model's.
    """

    recall = 1.0

    def __init__(self, model: QueryModel, points: Tensor) -> None:
        self._model = model
        self._points = points
        self._full = FullSearch(model)

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `search.Search`."""
        if len(counts) > _ONE_BY_ONE:
            return self._full.top(region, counts, skip)
        return [
            self._top_of_one(tuple(part[row : row + 1] for part in region), count, ids)
            for row, (count, ids) in enumerate(zip(counts, skip, strict=True))
        ]

    def _top_of_one(self, region: Region, count: int, skip: IntArray) -> Ranking:
        ids = nearest_by_blocks(self._model, self._points, region, count, skip)
        return rank(ids, self._model.logits(region, ids[None])[0], count)


def nearest_by_blocks(
    model: QueryModel, points: Tensor, region: Region, count: int, skip: IntArray
) -> Tensor:
    """Entity ids that hold the `count` nearest of one region [1, dim], in rising order.

    Dimensions are added block by block, largest contribution first; what exceeds the
    largest true distance among `count` good candidates is dropped after every block.
    """
    alive = torch.ones(len(points), dtype=torch.bool, device=points.device)
    alive[torch.as_tensor(skip, dtype=torch.long, device=points.device)] = False
    ids = alive.nonzero()[:, 0]
    if not 0 < count < len(ids):
        return ids[:count]
    blocks = torch.arange(model.dim, device=points.device).split(_BLOCK)

    def partial(block: Tensor, of: Tensor) -> Tensor:
        part = tuple(component[:, block] for component in region)
        return model.distance_to_points(part, points[of][:, block][None])[0]

    sample = ids[:: max(1, len(ids) // _BLOCK)]
    weight = torch.stack([partial(block, sample).mean() for block in blocks])
    order = weight.argsort(descending=True).tolist()
    total = partial(blocks[order[0]], ids)
    seeds = ids[total.topk(count, largest=False).indices]
    # Sums in another order differ in the last bits; the margin keeps what is that close.
    bound = model.distance_to_points(region, points[seeds][None]).max() * (1 + 1e-5)
    for index in order[1:]:
        close = total <= bound
        ids, total = ids[close], total[close]
        total = total + partial(blocks[index], ids)
    return ids[total <= bound]
