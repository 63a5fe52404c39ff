"""The k nearest entities of a region by a scan that abandons candidates early, on a CPU.

Every dimension adds a non-negative term to a distance, so a candidate whose partial
sum exceeds a distance that k entities are known to keep can be dropped: the answers are
those of the full scan, ties included. Dimensions are taken in segments, those in which
entities differ most first. In high dimension nearly all candidates fall together, so
each segment is measured densely by the compiled kernels until few are left of a query;
the few are then finished one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray, LongArray
from conekg.model.kernels.scoring import cone_table, score_boxes, score_cones, score_points

FloatArray: TypeAlias = NDArray[np.float32]
Geometry: TypeAlias = Literal["cone", "box", "point"]

_SEGMENT = 128
"""Dimensions of a segment, at least: shorter ones waste the kernels' speed."""
_VECTOR = 32
"""Segments are multiples of this, so that no loop has a remainder but the last."""
_FEW = 0.1
"""The share of candidates below which a query's rest is measured one by one."""
_SEEDINGS = 2
"""After so many segments the bound is looked for again; later it hardly falls."""
_STRIDE = 16
"""Every sixteenth entity tells how far entities are on average."""
_SLACK = np.float32(1 + 1e-5)
"""Sums in another order differ in the last bits; what is that close is kept to the end."""

_NOBODY: LongArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Nearest:
    """Entities by rising distance from one region, equal distances by id."""

    entity_ids: LongArray
    distances: FloatArray


class ScanTable:
    """The entity table cut into segments, and the scan itself.

    `points` [num_entities, dim] are the model's points: angles in radians for cones,
    coordinates otherwise. A snapshot: later changes of the model do not reach it.
    """

    def __init__(self, points: FloatArray, geometry: Geometry, center_weight: float) -> None:
        self.num_entities, dim = points.shape
        self.geometry = geometry
        self.center_weight = center_weight
        order = np.argsort(-spread(points, geometry), kind="stable")
        self.segments = tuple(
            np.sort(order[start : start + size]) for start, size in _cut(dim, _SEGMENT)
        )
        parts = [np.ascontiguousarray(points[:, dims]) for dims in self.segments]
        self.tables = tuple(cone_table(part) if geometry == "cone" else part for part in parts)

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
        """For each row its `counts[row]` nearest entities that are not in `skip[row]`.

        `first` and `second` [rows, dim] are the regions: axis and half aperture, or centre
        and offset (a point ignores its second part). Fewer come back where not so many are
        left. `abandon=False` is the full scan.
        """
        regions = [(first[:, dims], second[:, dims]) for dims in self.segments]
        search = _Search(self, regions, counts, skip, threads)
        return search.run() if abandon else search.run_in_full()

    def measure(
        self,
        segment: int,
        region: tuple[FloatArray, FloatArray],
        ids: LongArray | None,
        threads: int,
    ) -> FloatArray:
        """[rows, candidates] what one segment adds to the distances; of all entities for None."""
        table = self.tables[segment] if ids is None else self.tables[segment][ids]
        first, second = region
        match self.geometry:
            case "cone":
                return score_cones(table, first, second, self.center_weight, threads)
            case "box":
                return score_boxes(table, first, second, self.center_weight, threads)
            case "point":
                return score_points(table, first, threads)


class _Search:
    """One batch of regions on its way through the segments."""

    def __init__(
        self,
        table: ScanTable,
        regions: list[tuple[FloatArray, FloatArray]],
        counts: Sequence[int],
        skip: Sequence[IntArray],
        threads: int,
    ) -> None:
        self._table = table
        self._regions = regions
        self._counts = [
            min(count, table.num_entities - len(ids))
            for count, ids in zip(counts, skip, strict=True)
        ]
        self._skip = skip
        self._threads = threads

    def run(self) -> list[Nearest]:
        """The nearest entities of all rows."""
        found: dict[int, Nearest] = {}
        rows = np.arange(len(self._counts))
        totals = self._start(rows)
        bounds = np.full(len(rows), np.inf, dtype=np.float32)
        for segment in range(1, len(self._regions)):
            if segment <= _SEEDINGS:
                bounds = self._tightened(bounds, segment, rows, totals)
            close = totals <= bounds[:, None]
            few = close.sum(axis=1) <= _FEW * self._table.num_entities
            for place in np.flatnonzero(few).tolist():
                ids = np.flatnonzero(close[place])
                row = int(rows[place])
                found[row] = self._finish(row, segment, ids, totals[place, ids], bounds[place])
            if few.all():
                return [found[row] for row in range(len(self._counts))]
            if few.any():
                rows, totals, bounds = rows[~few], totals[~few], bounds[~few]
            totals += self._measure(segment, rows)
        for row, total, bound in zip(rows.tolist(), totals, bounds, strict=True):
            found[row] = self._rank_all(row, total, bound)
        return [found[row] for row in range(len(self._counts))]

    def run_in_full(self) -> list[Nearest]:
        """The same from the sums of all segments of all entities."""
        rows = np.arange(len(self._counts))
        totals = self._start(rows)
        for segment in range(1, len(self._regions)):
            totals += self._measure(segment, rows)
        return [self._rank_all(row, total, np.float32(np.inf)) for row, total in enumerate(totals)]

    def _start(self, rows: LongArray) -> FloatArray:
        """[rows, num_entities] the first segment; what must not come back is infinitely far."""
        totals = self._measure(0, rows)
        for row in rows:
            totals[row, self._skip[row]] = np.inf
        return totals

    def _tightened(
        self, bounds: FloatArray, segment: int, rows: LongArray, totals: FloatArray
    ) -> FloatArray:
        """The bounds, looked for anew where candidates may yet fall before the end."""
        sampled = np.median(totals[:, ::_STRIDE], axis=1)
        expected = sampled * (len(self._regions) / segment)
        tightened = bounds.copy()
        for place in np.flatnonzero((expected > bounds) | np.isinf(bounds)):
            seeded = self._seed_bound(int(rows[place]), totals[place])
            tightened[place] = min(bounds[place], seeded)
        return tightened

    def _seed_bound(self, row: int, total: FloatArray) -> np.float32:
        """A distance that the row's k nearest entities keep.

        The k entities that look best after one segment are measured in full: the k-th
        smallest distance is at most the largest of any k.
        """
        count = self._counts[row]
        if count <= 0:
            return np.float32(-1)
        seeds = np.argpartition(total, count - 1)[:count]
        return np.float32(self._distances(row, seeds).max() * _SLACK)

    def _finish(
        self, row: int, segment: int, ids: LongArray, total: FloatArray, bound: np.float32
    ) -> Nearest:
        """The row's ranking from its last candidates, each dropped when its sum exceeds."""
        for later in range(segment, len(self._regions)):
            total = total + self._measure(later, np.array([row]), ids)[0]
            close = total <= bound
            ids, total = ids[close], total[close]
        return self._rank(row, ids)

    def _rank_all(self, row: int, total: FloatArray, bound: np.float32) -> Nearest:
        """The row's ranking from its finished sums over all entities."""
        count = self._counts[row]
        if count > 0:
            bound = min(bound, np.partition(total, count - 1)[count - 1] * _SLACK)
        return self._rank(row, np.flatnonzero(total <= bound) if count > 0 else _NOBODY)

    def _rank(self, row: int, ids: LongArray) -> Nearest:
        # Measured anew, entity by entity in one order: equal entities get equal distances.
        distances = self._distances(row, ids)
        order = np.lexsort((ids, distances))[: max(0, self._counts[row])]
        return Nearest(ids[order], distances[order])

    def _distances(self, row: int, ids: LongArray) -> FloatArray:
        total = np.zeros(len(ids), dtype=np.float32)
        for segment in range(len(self._regions)):
            total += self._measure(segment, np.array([row]), ids)[0]
        return total

    def _measure(self, segment: int, rows: LongArray, ids: LongArray | None = None) -> FloatArray:
        first, second = self._regions[segment]
        threads = self._threads if ids is None else 1
        return self._table.measure(segment, (first[rows], second[rows]), ids, threads)


def spread(points: FloatArray, geometry: Geometry) -> FloatArray:
    """[dim] how much entities differ in each dimension, and so how much it can tell apart."""
    if geometry == "cone":
        # One minus the squared length of the mean direction: the mean of 1 − cos(v − v').
        differing = 1 - np.cos(points).mean(axis=0) ** 2 - np.sin(points).mean(axis=0) ** 2
    else:
        differing = np.abs(points - np.median(points, axis=0)).mean(axis=0)
    return np.asarray(differing, dtype=np.float32)


def _cut(dim: int, least: int) -> list[tuple[int, int]]:
    """(start, size) of segments of about equal size."""
    size = -(-dim // max(1, dim // least))
    size += -size % _VECTOR
    return [(start, min(size, dim - start)) for start in range(0, dim, size)]
