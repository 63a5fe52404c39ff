"""The k nearest entities of each region on a CPU, by a scan that abandons candidates early.

Every dimension adds a non-negative term to a distance, so an entity whose partial sum
exceeds the k-th smallest distance found so far cannot be among the k nearest. The result
equals that of the full scan bit by bit, ties included. The loops, in `abandon_loops`, compare a
tile of eight entities with all regions of a batch, starting with the dimensions in which
entities differ most, and drop a region from the tile once none of the eight can be among its
nearest. If no entity can be dropped, the checks cost about one comparison per two thousand
operations. For cones, on processors with wide table lookups, `bound` first rules out most
entities by lower bounds of their distances; only the others are scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conekg.answering.abandon_loops import Heaps, scan, scan_by_bound
from conekg.answering.bound import CellTable, LowerBounds
from conekg.answering.ranking import Ranking
from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.ragged import offsets_of
from conekg.model.geometry import Geometry
from conekg.model.interface import QueryModel, Region
from conekg.model.kernels.lookup import has_wide_lookup
from conekg.model.kernels.processor import LINE, FloatArray, on_cache_lines
from conekg.model.kernels.scoring import cone_table, in_ranges, pack_one_cone, pack_regions
from conekg.model.kernels.tile import CONE
from conekg.model.measure import Measure, scale_of

LOOKS = 4
"""About how often a tile's partial sums are checked on the way through all dimensions."""
_LEAST_BLOCK, _MOST_BLOCK = 64, 208
"""The fewest and the most dimensions between two checks; more frequent ones cost more than they
save."""
_ROWS = 40
"""Regions scanned in one pass: few enough for their coordinates to stay in the second-level
cache."""
_FEW = 0.25
"""If at most this share of the entities is not skipped, only those are scanned."""
_BOUNDED_FROM = 1_024
"""Entities from which lower bounds pay off; for fewer, building the lookup tables costs more than
is saved."""
_WANTED_FEW = 32
"""Lower bounds are used if at most one entity in this many is wanted; for larger results they
rule out too few."""


class ScanSearch:
    """A search by `ScanTable`, for models in float32 on a CPU; see `search.Search`.

    `points` [num_entities, dim] are the model's entities; `measure` defines their distance from
    a region.
    """

    recall = 1.0

    def __init__(self, model: QueryModel, measure: Measure, points: Tensor) -> None:
        self._model = model
        self._table = ScanTable(points.numpy(), measure.geometry, measure.center_weight)

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `search.Search`."""
        found = self._table.nearest(
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


@dataclass(frozen=True)
class Nearest:
    """Entities by rising distance from one region, equal distances by id."""

    entity_ids: LongArray
    distances: FloatArray
    looked_at: float
    """The share of the distance terms (num_entities × dim) that had to be computed."""


class ScanTable:
    """A copy of the entity table, its dimensions in scanning order, and the search over it.

    `points` [num_entities, dim] are the model's points: angles in radians for cones,
    coordinates otherwise. Later changes of the model have no effect. `bounded` turns lower
    bounds on or off, for cones only; by default they are used if the processor has wide table
    lookups and there are enough entities.
    """

    def __init__(
        self,
        points: FloatArray,
        geometry: Geometry,
        center_weight: float,
        *,
        bounded: bool | None = None,
    ) -> None:
        assert geometry.is_sum, "candidates are abandoned by sums that never fall"
        self.num_entities, self.dim = points.shape
        self.geometry = geometry
        self.center_weight = center_weight
        is_cone = geometry is Geometry.CONE
        self._order = np.argsort(-spread(points, geometry), kind="stable")
        ordered = np.ascontiguousarray(points[:, self._order])
        self._table = on_cache_lines(cone_table(ordered) if is_cone else ordered)
        self._all_ids = np.arange(self.num_entities)
        if bounded is None:
            bounded = self.num_entities >= _BOUNDED_FROM and has_wide_lookup()
        self._cells = CellTable(ordered) if bounded and is_cone else None
        self._most_bounded = 0 if self._cells is None else self.num_entities // _WANTED_FEW

    def nearest(
        self,
        first: FloatArray,
        second: FloatArray,
        counts: Sequence[int],
        skip: Sequence[IntArray],
        *,
        abandon: bool = True,
        threads: int = 1,
    ) -> list[Nearest]:
        """For each row its `counts[row]` nearest entities that are not in `skip[row]`, sorted ids.

        `first` and `second` [rows, dim] are the regions: axis and half aperture, or centre
        and offset (for points `second` is ignored). Fewer entities are returned if fewer are
        left. `abandon=False` computes every distance in full.
        """
        code, order = int(self.geometry), self._order
        region, weight = pack_regions(code, first[:, order], second[:, order], self.center_weight)
        requests = _Requests(region, counts, skip)
        scanner = _Scanner(code, self._table, weight, abandon, threads)
        found: dict[int, Nearest] = {}
        scanned: list[int] = []
        bounded: list[int] = []
        for row, ids in enumerate(skip):
            left = self.num_entities - len(ids)
            if min(left, counts[row]) <= 0:
                nothing = np.empty(0, dtype=np.float32)
                found[row] = Nearest(np.empty(0, dtype=np.int64), nothing, 0.0)
            elif left <= _FEW * self.num_entities:
                allowed = np.delete(self._all_ids, ids)
                (found[row],) = scanner.run(allowed, requests.of([row]))
            elif abandon and counts[row] <= self._most_bounded:
                bounded.append(row)
            else:
                scanned.append(row)
        for part in _even_parts(scanned):
            nearest = scanner.run(self._all_ids, requests.of(part))
            found.update(zip(part, nearest, strict=True))
        if self._cells is not None and bounded:
            # Contiguous however many rows there are: numba compiles a loop again for each layout.
            rows = np.ascontiguousarray(region[bounded])
            bounds = self._cells.lower_bounds(rows, weight, threads)
            nearest = scanner.run_bounded(bounds, requests.of(bounded))
            found.update(zip(bounded, nearest, strict=True))
        return [found[row] for row in range(len(counts))]


@dataclass(frozen=True)
class _Requests:
    """Packed regions, with how many entities are wanted of each and which are skipped."""

    region: FloatArray
    counts: Sequence[int]
    skip: Sequence[IntArray]

    def of(self, rows: Sequence[int]) -> _Requests:
        """The requests of the given rows alone."""
        return _Requests(
            self.region[rows],
            [self.counts[row] for row in rows],
            [self.skip[row] for row in rows],
        )

    def arrays(self, most: int) -> tuple[FloatArray, LongArray, LongArray, LongArray]:
        """Regions, counts capped at `most`, offsets of each row's skipped ids, and those ids."""
        counts = np.minimum(np.array(self.counts, dtype=np.int64), most)
        starts = offsets_of([len(ids) for ids in self.skip])
        return self.region, counts, starts, np.concatenate(self.skip).astype(np.int64)


@dataclass(frozen=True)
class _Scanner:
    """An entity table with the settings of a scan over it."""

    code: int
    table: FloatArray
    weight: float
    abandon: bool
    threads: int

    def run(self, ids: LongArray, requests: _Requests) -> list[Nearest]:
        """The nearest of each region among the entities `ids`, in one pass over them."""
        region, *wanted = requests.arrays(len(ids))
        if self.code == CONE and len(region) == 1:
            region = pack_one_cone(region)
        settings = (
            self.table,
            np.float32(self.weight),
            self.abandon,
            block_of(self.table.shape[1]),
        )
        arguments = (self.code, *settings, ids, on_cache_lines(region), *wanted)
        parts = in_ranges(scan, len(ids), self.threads, *arguments)
        return self._rankings(parts, requests.counts)

    def run_bounded(self, bounds: LowerBounds, requests: _Requests) -> list[Nearest]:
        """The nearest entities of each cone; those that bounds rule out are not scanned."""
        rows, most = len(requests.counts), max(requests.counts)
        distances = np.empty((rows, most), dtype=np.float32)
        ids = np.empty((rows, most), dtype=np.int64)
        sizes, looked_at = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        out = (distances, ids, sizes, looked_at)
        region, *wanted = requests.arrays(len(self.table))
        settings = (self.table, np.float32(self.weight), block_of(self.table.shape[1]))
        arguments = (*settings, bounds.sums, bounds.steps, pack_one_cone(region), *wanted, *out)
        in_ranges(scan_by_bound, rows, self.threads, *arguments, step=1)
        return self._rankings([out], requests.counts)

    def _rankings(self, parts: Sequence[Heaps], counts: Sequence[int]) -> list[Nearest]:
        """The nearest of each row, in order, merged from the heaps of several entity ranges."""
        rankings = []
        for row, count in enumerate(counts):
            distances = np.concatenate([part[0][row, : part[2][row]] for part in parts])
            ids = np.concatenate([part[1][row, : part[2][row]] for part in parts])
            order = np.lexsort((ids, distances))[:count]
            share = sum(int(part[3][row]) for part in parts) / self.table.size
            rankings.append(Nearest(ids[order], distances[order], share))
        return rankings


def spread(points: FloatArray, geometry: Geometry) -> FloatArray:
    """[dim] how much entities differ in each dimension: how well it separates them."""
    if geometry is Geometry.CONE:
        # One minus the squared length of the mean direction: the mean of 1 − cos(v − v').
        differing = 1 - np.cos(points).mean(axis=0) ** 2 - np.sin(points).mean(axis=0) ** 2
    else:
        differing = np.abs(points - np.median(points, axis=0)).mean(axis=0)
    return np.asarray(differing, dtype=np.float32)


def block_of(dim: int) -> int:
    """How many dimensions are added between two checks: a multiple of a cache line's floats.

    >>> block_of(800), block_of(400), block_of(128)
    (208, 112, 64)
    """
    even = -(-dim // LOOKS)
    return min(max(even + -even % LINE, _LEAST_BLOCK), _MOST_BLOCK)


def _even_parts(rows: list[int]) -> list[list[int]]:
    """The rows split into the fewest parts of at most `_ROWS` rows, of about equal size."""
    number = -(-len(rows) // _ROWS)
    return [rows[i * len(rows) // number : (i + 1) * len(rows) // number] for i in range(number)]
