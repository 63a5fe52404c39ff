"""The interface of a search for the best entities, and the choice of one for a model.

On a CPU a compiled scan abandons far entities early, and on a GPU a kernel scores all of them;
models that these do not support are searched by their own arithmetic. These three are exact. Very
large ConE tables are searched approximately, by a shortlist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from conekg.answering.abandon import ScanSearch
from conekg.answering.device_search import DeviceSearch
from conekg.answering.ranking import Ranking, best
from conekg.answering.shortlist import ShortlistSearch
from conekg.graph.adjacency import IntArray
from conekg.model.cone import Cone
from conekg.model.geometry import Geometry
from conekg.model.interface import QueryModel, Region
from conekg.model.measure import measure_of, scale_of
from conekg.model.scoring import DeviceTable, ScoringTable

SHORTLIST_FROM = 1_000_000
"""The number of entities from which ConE models are searched by shortlist."""


class Search(Protocol):
    """One way to find the best entities of regions; called within inference mode."""

    @property
    def recall(self) -> float:
        """The share of true top-10 entities that are found."""

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """For each row its best `counts[row]` entities that are not in `skip[row]`, sorted ids."""


def choose_search(
    model: QueryModel, table: Callable[[], ScoringTable], *, shortlist: bool | None = None
) -> Search:
    """The fastest search that supports a model on its device, at its precision.

    `table` returns the model's scoring table; it is called only if the search needs it.
    `shortlist` turns the approximate search on or off; by default the number of entities decides.
    """
    measure = measure_of(model)
    # Abandoning needs larger distances to mean lower scores: a learnt scale may be negative.
    if measure is None or not measure.geometry.is_sum or scale_of(model) <= 0:
        return FullSearch(model)
    is_large = model.num_entities >= SHORTLIST_FROM
    if measure.geometry is Geometry.CONE and (is_large if shortlist is None else shortlist):
        assert isinstance(model, Cone)
        return ShortlistSearch(model)
    weights = model.entity
    if weights.device.type == "cpu" and weights.dtype == torch.float32:
        return ScanSearch(model, measure, all_points(model))
    if weights.is_cuda and isinstance(scores := table(), DeviceTable):
        return DeviceSearch(scores)
    return FullSearch(model)


class FullSearch:
    """A search that scores all entities; for any model, device and precision."""

    recall = 1.0

    def __init__(self, model: QueryModel) -> None:
        self._model = model

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `Search`."""
        logits = self._model.logits_of_all(region)
        return [best(row, count, ids) for row, count, ids in zip(logits, counts, skip, strict=True)]


def all_points(model: QueryModel) -> Tensor:
    """[num_entities, width] every entity as a point, without gradients."""
    ids = torch.arange(model.num_entities, device=model.device)
    with torch.inference_mode():
        return torch.cat([model.points(part) for part in ids.split(1 << 16)])
