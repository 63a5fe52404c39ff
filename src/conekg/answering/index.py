"""The best entities of a region among all, exactly; approximately beyond a million.

Several ways lead to the same list: a compiled scan on a CPU and kernels on a GPU abandon
candidates early, as do tensor operations where neither applies; a distance that is no
plain sum over dimensions takes a full scan. Equal scores rank by entity id. Very large
tables take a shortlist first, whose recall is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from conekg.answering.abandon import ScanTable
from conekg.answering.device_search import nearest_on_device
from conekg.answering.shortlist import HarmonicShortlist
from conekg.graph.adjacency import IntArray, LongArray
from conekg.model.cone import Cone
from conekg.model.geometry import Geometry
from conekg.model.interface import QueryModel, Region
from conekg.model.measure import measure_of, scale_of
from conekg.model.scoring import DeviceTable, ScoringTable, scoring_table

SHORTLIST_FROM = 1_000_000
"""Entities from which on a ConE model's table is searched by shortlist."""
SHORTLIST_SIZE = 2_000
"""Entities that are scored exactly after a shortlist, or 20 for each one asked for, and as many
more as must not come back."""

_BLOCK = 64
_BACKGROUND = 32
"""Entities that stand for all when a region's usual score is wanted."""
_ONE_BY_ONE = 4
"""Up to so many regions are searched one after the other where tensors do the work."""
_CHUNK_ROWS = 64
"""Regions handled at once, which bounds the memory of partial sums and logits."""


@dataclass(frozen=True)
class Ranking:
    """Entities of one region, best first."""

    entity_ids: LongArray
    """[k]"""
    scores: NDArray[np.float64]
    """[k] logits, falling."""


class EntityIndex:
    """The entity table of a model, ready to be searched; a snapshot of its weights.

    `shortlist` asks for the approximate search or forbids it; by default the number of
    entities decides. Safe to use from several threads at once.
    """

    def __init__(self, model: QueryModel, *, shortlist: bool | None = None) -> None:
        self._model = model
        self._table: ScoringTable | None = None
        self._table_lock = threading.Lock()
        self._scan: ScanTable | None = None
        self._points: Tensor | None = None
        self._shortlist: HarmonicShortlist | None = None
        self._device_table: DeviceTable | None = None
        self.recall = 1.0
        """The share of true top-10 entities that a search finds; below 1 only by shortlist."""
        measure = measure_of(model)
        is_cone = measure is not None and measure.geometry is Geometry.CONE
        large = model.num_entities >= SHORTLIST_FROM
        if is_cone and (large if shortlist is None else shortlist):
            assert isinstance(model, Cone)
            self._shortlist = HarmonicShortlist(model)
            self.recall = measure_recall(model, self._shortlist)
        elif measure is not None and measure.geometry.is_sum and not scale_of(model) <= 0:
            # A learnt scale below zero would make the farthest entity the best.
            points = all_points(model)
            if points.device.type == "cpu" and points.dtype == torch.float32:
                self._scan = ScanTable(points.numpy(), measure.geometry, measure.center_weight)
            elif points.is_cuda and isinstance(table := self.table, DeviceTable):
                self._device_table = table
            else:
                self._points = points

    @property
    def table(self) -> ScoringTable:
        """The scores of all entities, for who needs more than the best; made on first use."""
        with self._table_lock:
            if self._table is None:
                self._table = scoring_table(self._model)
            return self._table

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """For each row its best `counts[row]` entities that are not in `skip[row]`, sorted ids.

        Fewer come back where not so many are left.
        """
        rankings: list[Ranking] = []
        with torch.inference_mode():
            for start in range(0, len(counts), _CHUNK_ROWS):
                rows = slice(start, start + _CHUNK_ROWS)
                part = tuple(component[rows] for component in region)
                rankings.extend(self._top(part, counts[rows], skip[rows]))
        return rankings

    def background(self, region: Region) -> NDArray[np.float64]:
        """[rows] the mean score of a fixed sample of entities: what an arbitrary one scores."""
        stride = max(1, self._model.num_entities // _BACKGROUND)
        ids = torch.arange(0, self._model.num_entities, stride, device=region[0].device)
        with torch.inference_mode():
            scores = torch.cat(
                [
                    self._model.logits(tuple(part[rows] for part in region), ids[None])
                    for rows in torch.arange(len(region[0])).split(_CHUNK_ROWS)
                ]
            )
        return np.asarray(scores.double().mean(dim=1).cpu().numpy())

    def _top(
        self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]
    ) -> list[Ranking]:
        if self._shortlist is not None:
            return self._top_by_shortlist(self._shortlist, region, counts, skip)
        if self._scan is not None:
            return self._top_by_scan(self._scan, region, counts, skip)
        if self._device_table is not None:
            found = nearest_on_device(self._model, self._device_table, region, counts, skip)
            return [Ranking(ids, scores) for ids, scores in found]
        if self._points is not None and len(counts) <= _ONE_BY_ONE:
            return [
                self._top_by_abandoning(
                    self._points, tuple(part[row : row + 1] for part in region), count, ids
                )
                for row, (count, ids) in enumerate(zip(counts, skip, strict=True))
            ]
        logits = self._model.logits_of_all(region)
        return [best(row, count, ids) for row, count, ids in zip(logits, counts, skip, strict=True)]

    def _top_by_scan(
        self, scan: ScanTable, region: Region, counts: Sequence[int], skip: Sequence[IntArray]
    ) -> list[Ranking]:
        found = scan.nearest(
            region[0].numpy(),
            region[-1].numpy(),
            counts,
            skip,
            threads=torch.get_num_threads(),
        )
        gamma, scale = self._model.gamma, scale_of(self._model)
        return [
            Ranking(nearest.entity_ids, gamma - scale * nearest.distances.astype(float))
            for nearest in found
        ]

    def _top_by_abandoning(
        self, points: Tensor, region: Region, count: int, skip: IntArray
    ) -> Ranking:
        ids = nearest_by_blocks(self._model, points, region, count, skip)
        scores = self._model.logits(region, ids[None])[0]
        return _ranking(ids, scores, count)

    def _top_by_shortlist(
        self,
        shortlist: HarmonicShortlist,
        region: Region,
        counts: Sequence[int],
        skip: Sequence[IntArray],
    ) -> list[Ranking]:
        found: dict[int, Ranking] = {}
        rows_of: dict[int, list[int]] = {}
        for row, (count, skipped) in enumerate(zip(counts, skip, strict=True)):
            size = max(SHORTLIST_SIZE, 20 * count)
            if self._model.num_entities - len(skipped) <= size:
                # Those that are left are no more than a shortlist would be.
                left = np.delete(np.arange(self._model.num_entities), skipped)
                ids = torch.from_numpy(left).to(region[0].device)
                own = tuple(part[row : row + 1] for part in region)
                found[row] = _ranking(ids, self._model.logits(own, ids[None])[0], count)
            else:
                rows_of.setdefault(size + len(skipped), []).append(row)
        for size, rows in rows_of.items():
            part = tuple(component[rows] for component in region)
            candidates = shortlist.candidates(part, size)
            logits = self._model.logits(part, candidates)
            for row, ids, scores in zip(rows, candidates, logits, strict=True):
                kept = ~torch.isin(ids, torch.as_tensor(skip[row], device=ids.device))
                found[row] = _ranking(ids[kept], scores[kept], counts[row])
        return [found[row] for row in range(len(counts))]


def merge_rankings(rankings: Sequence[Ranking], count: int) -> tuple[Ranking, LongArray]:
    """The ranking of a union of regions, and from which of them each entity has its score.

    An entity scores as in its best region. Whatever is among the best `count` of the union
    is among the best `count` of the region it has its score from.
    """
    if len(rankings) == 1:  # as most queries have it: nothing to put in order
        (only,) = rankings
        best_ids, best_scores = only.entity_ids[:count], only.scores[:count]
        return Ranking(best_ids, best_scores), np.zeros(len(best_ids), dtype=np.int64)
    ids = np.concatenate([ranking.entity_ids for ranking in rankings])
    scores = np.concatenate([ranking.scores for ranking in rankings])
    origin = np.repeat(np.arange(len(rankings)), [len(ranking.scores) for ranking in rankings])
    order = np.lexsort((ids, -scores))
    _, first = np.unique(ids[order], return_index=True)
    order = order[np.sort(first)][:count]
    return Ranking(ids[order], scores[order]), origin[order]


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
    if count >= len(ids):
        return ids
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


def best(scores: Tensor, count: int, skip: IntArray) -> Ranking:
    """The `count` best of all entities from their scores [num_entities], ties by id."""
    scores = scores.clone()
    scores[torch.as_tensor(skip, dtype=torch.long, device=scores.device)] = -torch.inf
    count = min(count, len(scores) - len(skip))
    if count <= 0:
        return Ranking(np.empty(0, dtype=np.int64), np.empty(0))
    worst = scores.topk(count).values[-1]
    ids = (scores >= worst).nonzero()[:, 0]  # may be more than `count` when there are ties
    return _ranking(ids, scores[ids], count)


def all_points(model: QueryModel) -> Tensor:
    """[num_entities, width] every entity as a point, without gradients."""
    ids = torch.arange(model.num_entities, device=next(model.parameters()).device)
    with torch.inference_mode():
        return torch.cat([model.points(part) for part in ids.split(1 << 16)])


def measure_recall(
    model: Cone, shortlist: HarmonicShortlist, *, count: int = 10, queries: int = 16
) -> float:
    """The share of the true `count` best entities that the shortlist holds.

    Measured on one-hop queries spread over the entities and relations of the model.
    """
    device = model.entity.device
    heads = torch.linspace(0, model.num_entities - 1, queries, device=device).long()
    relations = torch.linspace(0, model.num_relations - 1, queries, device=device).long()
    with torch.inference_mode():
        region = model.project(model.anchor(heads), relations)
        candidates = shortlist.candidates(region, SHORTLIST_SIZE)
        found = 0
        for row in range(queries):
            logits = model.logits_of_all(tuple(part[row : row + 1] for part in region))
            true = logits[0].topk(min(count, model.num_entities)).indices
            found += int(torch.isin(true, candidates[row]).sum())
    return found / (queries * min(count, model.num_entities))


def _ranking(ids: Tensor, scores: Tensor, count: int) -> Ranking:
    all_ids, all_scores = ids.cpu().numpy(), scores.double().cpu().numpy()
    order = np.lexsort((all_ids, -all_scores))[:count]
    return Ranking(all_ids[order], all_scores[order])
