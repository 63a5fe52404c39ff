"""The k nearest entities of a region by a scan that abandons candidates early, on a CPU.

Every dimension adds a non-negative term to a distance, so a candidate whose partial
sum exceeds the k-th smallest distance seen so far is out: the answers are those of the
full scan, bit by bit, ties included. Eight entities at a time pass by all regions of a
batch, dimensions in which entities differ most first; a region leaves a tile as soon as
none of the eight can be among its nearest. Where nobody can be abandoned this is the full
scan, and what remains of the looking is one comparison in some two thousand operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray, LongArray
from conekg.model.kernels.scoring import cone_table, in_ranges, pack_cones, pack_one_cone
from conekg.model.kernels.tile import (
    BOX,
    CONE,
    LINE,
    POINT,
    TILE,
    add_one_cone,
    add_tile,
    compiled,
    inlined,
    load_tile,
    make_buffer,
    on_cache_lines,
    prefer_wide_vectors,
)

FloatArray: TypeAlias = NDArray[np.float32]
Geometry: TypeAlias = Literal["cone", "box", "point"]

LOOKS = 4
"""How often a tile is looked at on its way through the dimensions, about."""
_LEAST_BLOCK, _MOST_BLOCK = 64, 208
"""Dimensions between two looks: fewer would cost more than they save."""
_ROWS = 40
"""Regions whose coordinates stay in the second-level cache while entities pass by."""
_FEW = 0.25
"""The share of entities that may come back below which those alone are scanned."""
_CODES = {"cone": CONE, "box": BOX, "point": POINT}
_FAR = np.float32(3e38)
"""Farther than anything; infinity is not for code compiled with fast arithmetic."""


@dataclass(frozen=True)
class Nearest:
    """Entities by rising distance from one region, equal distances by id."""

    entity_ids: LongArray
    distances: FloatArray
    looked_at: float
    """The share of all terms of all entities' distances that had to be computed."""


class ScanTable:
    """The entity table, its dimensions in the order of the scan, and the scan itself.

    `points` [num_entities, dim] are the model's points: angles in radians for cones,
    coordinates otherwise. A snapshot: later changes of the model do not reach it.
    """

    def __init__(self, points: FloatArray, geometry: Geometry, center_weight: float) -> None:
        self.num_entities, self.dim = points.shape
        self.geometry: Geometry = geometry
        self.center_weight = center_weight
        self._order = np.argsort(-spread(points, geometry), kind="stable")
        ordered = np.ascontiguousarray(points[:, self._order])
        self._table = on_cache_lines(cone_table(ordered) if geometry == "cone" else ordered)

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
        and offset (a point ignores its second part). Fewer come back where not so many are
        left. `abandon=False` is the full scan.
        """
        region, weight = self._pack(first[:, self._order], second[:, self._order])
        found: dict[int, Nearest] = {}
        together: list[int] = []
        for row, ids in enumerate(skip):
            left = self.num_entities - len(ids)
            if min(left, counts[row]) <= 0:
                nothing = np.empty(0, dtype=np.float32)
                found[row] = Nearest(np.empty(0, dtype=np.int64), nothing, 0.0)
            elif left <= _FEW * self.num_entities:
                scan = _Scan(_CODES[self.geometry], weight, abandon, threads)
                found[row] = self._among_few(scan, region[row : row + 1], counts[row], ids)
            else:
                together.append(row)
        scan = _Scan(_CODES[self.geometry], weight, abandon, threads)
        for part in _even_parts(together, _ROWS):
            nearest = scan.run(
                self._table, region[part], [counts[r] for r in part], [skip[r] for r in part]
            )
            found.update(zip(part, nearest, strict=True))
        return [found[row] for row in range(len(counts))]

    def _pack(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, float]:
        match self.geometry:
            case "cone":
                return pack_cones(first, second, self.center_weight)
            case "box":
                return np.stack([first, second], axis=1), self.center_weight
            case "point":
                return first[:, None], 0.0

    def _among_few(self, scan: _Scan, region: FloatArray, count: int, skip: IntArray) -> Nearest:
        """One row's nearest where nearly all entities are skipped."""
        allowed = np.ones(self.num_entities, dtype=bool)
        allowed[skip] = False
        ids = np.flatnonzero(allowed)
        nobody = np.empty(0, dtype=np.int32)
        (nearest,) = scan.run(self._table[ids], region, [count], [nobody])
        share = nearest.looked_at * len(ids) / self.num_entities
        return Nearest(ids[nearest.entity_ids], nearest.distances, share)


@dataclass(frozen=True)
class _Scan:
    """How a table is scanned."""

    code: int
    weight: float
    abandon: bool
    threads: int

    def run(
        self,
        table: FloatArray,
        region: FloatArray,
        counts: Sequence[int],
        skip: Sequence[IntArray],
    ) -> list[Nearest]:
        """The nearest of each packed region in one pass over the table."""
        sizes = [len(ids) for ids in skip]
        if self.code == CONE and len(region) == 1:
            region = pack_one_cone(region)
        parts = in_ranges(
            _nearest,
            len(table),
            self.threads,
            self.code,
            table,
            on_cache_lines(region),
            np.float32(self.weight),
            np.minimum(np.array(counts, dtype=np.int64), len(table)),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate(skip).astype(np.int64),
            self.abandon,
            block_of(table.shape[1]),
        )
        whole = len(table) * table.shape[1]
        rankings = []
        for row, count in enumerate(counts):
            distances = np.concatenate([part[0][row, : part[2][row]] for part in parts])
            ids = np.concatenate([part[1][row, : part[2][row]] for part in parts])
            order = np.lexsort((ids, distances))[:count]
            share = sum(int(part[3][row]) for part in parts) / whole
            rankings.append(Nearest(ids[order], distances[order], share))
        return rankings


@compiled
def _nearest(
    geometry: int,
    table: FloatArray,
    region: FloatArray,
    weight: np.float32,
    counts: LongArray,
    skip_starts: LongArray,
    skip: LongArray,
    abandon: bool,
    block: int,
    start: int,
    stop: int,
) -> tuple[FloatArray, LongArray, LongArray, LongArray]:
    """The nearest entities of a range: distances and ids [rows, most] as heaps, and their sizes.

    The last of the four counts the terms that were computed for each row. A single cone is
    packed by `pack_one_cone`.
    """
    prefer_wide_vectors()
    rows, dim = region.shape[0], table.shape[1]
    distances = np.empty((rows, counts.max()), dtype=np.float32)
    ids = np.empty((rows, counts.max()), dtype=np.int64)
    sizes, looked_at = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    limits = np.full(rows, _FAR, dtype=np.float32)
    first, second = make_buffer(block), make_buffer(block)
    alone = rows == 1 and geometry == CONE
    sums = np.empty((rows, TILE), dtype=np.float32)
    alive = np.empty(rows, dtype=np.int64)
    for entity in range(start, stop, TILE):
        width = min(TILE, stop - entity)
        sums[:] = np.float32(0)
        left = rows
        for row in range(rows):
            alive[row] = row
        for low in range(0, dim, block):
            high = min(low + block, dim)
            if alone:
                add_one_cone(table, entity, stop - 1, region[0], low, high, weight, sums[0])
            else:
                load_tile(geometry, table, entity, stop - 1, low, high, first, second)
                add_tile(geometry, first, second, region, low, high, weight, alive[:left], sums)
            kept = 0
            for place in range(left):
                row = alive[place]
                looked_at[row] += width * (high - low)
                # Above the limit is out for good: what is yet to come only adds.
                if not abandon or _smallest(sums[row]) <= limits[row]:
                    alive[kept] = row
                    kept += 1
            left = kept
            if left == 0:
                break
        for place in range(left):
            row = alive[place]
            for i in range(width):
                distance = sums[row, i]
                # Ids rise, so of two at the limit the one that is there already stays.
                if distance > limits[row] or (
                    sizes[row] == counts[row] and distance == limits[row]
                ):
                    continue
                if _is_among(skip[skip_starts[row] : skip_starts[row + 1]], entity + i):
                    continue
                if sizes[row] < counts[row]:
                    sizes[row] += 1
                    _push(distances[row], ids[row], sizes[row], distance, entity + i)
                else:
                    _replace_top(distances[row], ids[row], sizes[row], distance, entity + i)
                if sizes[row] == counts[row]:
                    limits[row] = distances[row, 0]
    return distances, ids, sizes, looked_at


@inlined
def _smallest(sums: FloatArray) -> np.float32:
    """The smallest of eight."""
    low = min(min(sums[0], sums[1]), min(sums[2], sums[3]))
    high = min(min(sums[4], sums[5]), min(sums[6], sums[7]))
    return min(low, high)


@compiled
def _push(distances: FloatArray, ids: LongArray, size: int, distance: float, entity: int) -> None:
    """Put an entity of a higher id than all in a heap into its last, `size`-th place, and up.

    The top is the farthest, among equals the one of the highest id.
    """
    place = size - 1
    while place > 0:
        parent = (place - 1) // 2
        if distances[parent] > distance:
            break
        distances[place], ids[place] = distances[parent], ids[parent]
        place = parent
    distances[place], ids[place] = distance, entity


@compiled
def _replace_top(
    distances: FloatArray, ids: LongArray, size: int, distance: float, entity: int
) -> None:
    """Put an entity of a higher id than all in a heap in the place of its top, and down."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            distances[other] > distances[child]
            or (distances[other] == distances[child] and ids[other] > ids[child])
        ):
            child = other
        if distances[child] <= distance:
            break
        distances[place], ids[place] = distances[child], ids[child]
        place = child
    distances[place], ids[place] = distance, entity


@compiled
def _is_among(sorted_ids: LongArray, entity: int) -> bool:
    if len(sorted_ids) == 0:
        return False
    place = np.searchsorted(sorted_ids, entity)
    return bool(place < len(sorted_ids) and sorted_ids[place] == entity)


def spread(points: FloatArray, geometry: Geometry) -> FloatArray:
    """[dim] how much entities differ in each dimension, and so how much it can tell apart."""
    if geometry == "cone":
        # One minus the squared length of the mean direction: the mean of 1 − cos(v − v').
        differing = 1 - np.cos(points).mean(axis=0) ** 2 - np.sin(points).mean(axis=0) ** 2
    else:
        differing = np.abs(points - np.median(points, axis=0)).mean(axis=0)
    return np.asarray(differing, dtype=np.float32)


def block_of(dim: int) -> int:
    """How many dimensions lie between two looks: a multiple of the vectors' width.

    >>> block_of(800), block_of(400), block_of(128)
    (208, 112, 64)
    """
    even = -(-dim // LOOKS)
    return min(max(even + -even % LINE, _LEAST_BLOCK), _MOST_BLOCK)


def _even_parts(items: list[int], most: int) -> list[list[int]]:
    """The items in as few parts of at most `most` as will do, of about equal size."""
    number = -(-len(items) // most)
    return [items[i * len(items) // number : (i + 1) * len(items) // number] for i in range(number)]
