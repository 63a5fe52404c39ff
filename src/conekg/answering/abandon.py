"""The k nearest entities of a region by an early-abandoning scan, compiled for the CPU.

Every dimension adds a non-negative term to a distance, so a candidate whose partial
sum exceeds the current k-th best distance can be dropped: the answers are those of
the full scan, ties included. Dimensions are taken in blocks, the blocks that are
expected to contribute most first, and entities in tiles that stay in the cache while
all queries of a batch pass over them.
"""

from __future__ import annotations

from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray, LongArray

FloatArray = NDArray[np.float32]
Geometry = Literal["cone", "box", "point"]

BLOCK = 64
"""Dimensions between two looks at the bound: 13 looks at d = 800."""
TILE = 64
"""Entities that all queries visit before the next tile: 400 KB at d = 800, in the L2 cache."""
SAMPLE = 32
"""Entities from which the contribution of each block is estimated."""

_CONE, _BOX, _POINT = 0, 1, 2
_CODES: dict[Geometry, int] = {"cone": _CONE, "box": _BOX, "point": _POINT}
_COMPONENTS: dict[Geometry, int] = {"cone": 2, "box": 1, "point": 1}


class ScanTable:
    """The entity table laid out for scanning, and the scan itself.

    `points` [num_entities, dim] are the model's points: angles in radians for cones,
    coordinates otherwise. A snapshot: later changes of the model do not reach it.
    """

    def __init__(self, points: FloatArray, geometry: Geometry, center_weight: float) -> None:
        self.geometry = geometry
        self.num_entities, self.dim = points.shape
        self.center_weight = np.float32(center_weight)
        self.num_blocks = -(-self.dim // BLOCK)
        components = [np.sin(points / 2), np.cos(points / 2)] if geometry == "cone" else [points]
        self.table = np.zeros(
            (self.num_entities, self.num_blocks, _COMPONENTS[geometry], BLOCK), dtype=np.float32
        )
        for index, component in enumerate(components):
            self.table[:, :, index] = self._blocked(component.astype(np.float32, copy=False))

    def nearest(
        self,
        first: FloatArray,
        second: FloatArray,
        counts: LongArray,
        skip_offsets: LongArray,
        skip_ids: IntArray,
        *,
        abandon: bool = True,
    ) -> tuple[LongArray, FloatArray, LongArray]:
        """(ids [rows, k], distances [rows, k], found [rows]), nearest first, ties by id.

        `first` and `second` [rows, dim] are the regions: axis and half aperture in [0, π],
        or centre and offset (a point ignores its second part). Row i gets its `counts[i]`
        nearest of the entities that are not among its own `skip_ids`, which are sorted;
        places beyond `found[i]` hold nothing. `abandon=False` is the full scan.
        """
        rows = len(first)
        largest = int(counts.max(initial=1))
        region = self._region(first, second)
        # Enough chunks to feed the threads, no chunk smaller than a few tiles.
        chunks = max(1, min(numba.get_num_threads(), self.num_entities // (4 * TILE)))
        heap_distances = np.full((chunks, rows, largest), np.inf, dtype=np.float32)
        heap_ids = np.full((chunks, rows, largest), -1, dtype=np.int64)
        heap_sizes = np.zeros((chunks, rows), dtype=np.int64)
        bounds = np.full(rows, np.inf, dtype=np.float32)
        code = _CODES[self.geometry]
        # One order for all chunks: sums of equal rows are then equal to the last bit.
        orders = _block_orders(code, self.table, region, self.center_weight)
        starts = np.empty((rows, self.num_entities), dtype=np.float32)
        _scan_chunks(
            code, self.table, region, self.center_weight, orders, starts,
            counts, skip_offsets, skip_ids, bounds, abandon,
            heap_distances, heap_ids, heap_sizes,
        )  # fmt: skip
        return _merge(heap_distances, heap_ids, heap_sizes, counts)

    def _region(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """[rows, blocks, 4, BLOCK] what the distance terms need of each region."""
        if self.geometry == "cone":
            parts = [np.sin(first / 2), np.cos(first / 2), np.sin(second / 2), np.cos(second / 2)]
        else:
            parts = [first, first, second, second]
        region = np.zeros((len(first), self.num_blocks, 4, BLOCK), dtype=np.float32)
        for index, part in enumerate(parts):
            region[:, :, index] = self._blocked(part.astype(np.float32, copy=False))
        return region

    def _blocked(self, matrix: FloatArray) -> FloatArray:
        """[rows, blocks, BLOCK], filled up with zeros, whose distance terms are zero."""
        padded = np.zeros((len(matrix), self.num_blocks * BLOCK), dtype=np.float32)
        padded[:, : self.dim] = matrix
        return padded.reshape(len(matrix), self.num_blocks, BLOCK)


@numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"}, error_model="numpy")
def _block_distance(code, entity, region, center_weight):  # type: ignore[no-untyped-def]
    """The distance terms of one block: `entity` [components, BLOCK], `region` [4, BLOCK]."""
    total = np.float32(0.0)
    zero = np.float32(0.0)
    if code == _CONE:
        for j in range(BLOCK):
            # ConE, Section 4.3, in half angles: x = |sin δ/2|, y = |cos δ/2|.
            x = abs(entity[0, j] * region[1, j] - entity[1, j] * region[0, j])
            y = abs(entity[1, j] * region[1, j] + entity[0, j] * region[0, j])
            outside = x * region[3, j] - y * region[2, j]
            total += max(zero, outside) + center_weight * min(x, region[2, j])
    elif code == _BOX:
        for j in range(BLOCK):
            delta = abs(entity[0, j] - region[0, j])
            outside = delta - region[2, j]
            total += max(zero, outside) + center_weight * abs(min(delta, region[2, j]))
    else:
        for j in range(BLOCK):
            total += abs(entity[0, j] - region[0, j])
    return total


@numba.njit(cache=True)
def _block_orders(code, table, region, center_weight):  # type: ignore[no-untyped-def]
    """[rows, blocks] the blocks of each row by falling contribution over sampled entities."""
    rows, blocks = region.shape[0], region.shape[1]
    orders = np.empty((rows, blocks), dtype=np.int64)
    stride = max(1, table.shape[0] // SAMPLE)
    for row in range(rows):
        contribution = np.zeros(blocks, dtype=np.float32)
        for entity in range(0, table.shape[0], stride):
            for block in range(blocks):
                contribution[block] -= _block_distance(
                    code, table[entity, block], region[row, block], center_weight
                )
        orders[row] = np.argsort(contribution, kind="mergesort")
    return orders


@numba.njit(cache=True, parallel=True)
def _scan_chunks(  # type: ignore[no-untyped-def]
    code, table, region, center_weight, orders, starts, counts, skip_offsets, skip_ids,
    bounds, abandon, heap_distances, heap_ids, heap_sizes,
):  # fmt: skip
    """Fill each chunk's heaps with its nearest entities of every row.

    Chunks share `bounds` without a lock: it only falls, and a stale value only means
    that a candidate is looked at for longer than necessary.
    """
    num_entities, rows = table.shape[0], region.shape[0]
    chunks = heap_sizes.shape[0]
    tiles = (num_entities + TILE - 1) // TILE
    for chunk in numba.prange(chunks):
        first_tile = chunk * tiles // chunks
        last_tile = (chunk + 1) * tiles // chunks
        for tile in range(first_tile, last_tile):
            low, high = tile * TILE, min(num_entities, (tile + 1) * TILE)
            for row in range(rows):
                _start(code, table, region[row], center_weight, orders[row], starts[row], low, high)
        if abandon:
            low, high = first_tile * TILE, min(num_entities, last_tile * TILE)
            for row in range(rows):
                skipped = skip_ids[skip_offsets[row] : skip_offsets[row + 1]]
                bound = _seed_bound(
                    code, table, region[row], center_weight, orders[row], starts[row],
                    counts[row], skipped, low, high,
                )  # fmt: skip
                bounds[row] = min(bounds[row], bound)
        for tile in range(first_tile, last_tile):
            low, high = tile * TILE, min(num_entities, (tile + 1) * TILE)
            for row in range(rows):
                skipped = skip_ids[skip_offsets[row] : skip_offsets[row + 1]]
                size, bound = _finish(
                    code, table, region[row], center_weight, orders[row], starts[row],
                    counts[row], skipped, low, high, bounds[row], abandon,
                    heap_distances[chunk, row], heap_ids[chunk, row], heap_sizes[chunk, row],
                )  # fmt: skip
                heap_sizes[chunk, row] = size
                bounds[row] = min(bounds[row], bound)


@numba.njit(cache=True)
def _start(code, table, region, center_weight, order, starts, low, high):  # type: ignore[no-untyped-def]
    """Fill `starts[low:high]` with the partial sums after the row's first block."""
    block = order[0]
    for entity in range(low, high):
        starts[entity] = _block_distance(code, table[entity, block], region[block], center_weight)


@numba.njit(cache=True)
def _seed_bound(  # type: ignore[no-untyped-def]
    code, table, region, center_weight, order, starts, count, skipped, low, high
):
    """A distance that the k-th nearest entity does not exceed.

    The k entities of `low` to `high` that look best after one block are scored in full:
    the k-th smallest distance is at most the largest of any k.
    """
    distances = np.empty(count, dtype=np.float32)
    ids = np.empty(count, dtype=np.int64)
    size = 0
    for entity in range(low, high):
        start = starts[entity]
        if (size < count or start < distances[0]) and not _contains(skipped, entity):
            size = _push(distances, ids, size, count, start, entity)
    if size < count:
        return np.float32(np.inf)
    bound = np.float32(0.0)
    for place in range(size):
        total = starts[ids[place]]
        for index in range(1, len(order)):
            block = order[index]
            total += _block_distance(code, table[ids[place], block], region[block], center_weight)
        bound = max(bound, total)
    return bound


@numba.njit(cache=True)
def _finish(  # type: ignore[no-untyped-def]
    code, table, region, center_weight, order, starts, count, skipped, low, high, bound, abandon,
    distances, ids, size,
):  # fmt: skip
    """(size of the heap, bound) after the entities from `low` to `high`."""
    blocks = len(order)
    for entity in range(low, high):
        total = starts[entity]
        index = 1
        while index < blocks and total <= bound:
            block = order[index]
            total += _block_distance(code, table[entity, block], region[block], center_weight)
            index += 1
        if index < blocks or total > bound or _contains(skipped, entity):
            continue
        size = _push(distances, ids, size, count, total, entity)
        if abandon and size == count:
            bound = min(bound, distances[0])
    return size, bound


@numba.njit(cache=True)
def _contains(sorted_ids, entity):  # type: ignore[no-untyped-def]
    place = np.searchsorted(sorted_ids, entity)
    return place < len(sorted_ids) and sorted_ids[place] == entity


@numba.njit(cache=True)
def _is_farther(distance, entity, other_distance, other_entity):  # type: ignore[no-untyped-def]
    """The one order of candidates: by distance, then by id."""
    return distance > other_distance or (distance == other_distance and entity > other_entity)


@numba.njit(cache=True)
def _push(distances, ids, size, capacity, distance, entity):  # type: ignore[no-untyped-def]
    """The new size of a heap, farthest on top, that keeps the `capacity` nearest."""
    if size < capacity:
        place = size
        while place > 0:
            parent = (place - 1) // 2
            if not _is_farther(distance, entity, distances[parent], ids[parent]):
                break
            distances[place], ids[place] = distances[parent], ids[parent]
            place = parent
        distances[place], ids[place] = distance, entity
        return size + 1
    if _is_farther(distance, entity, distances[0], ids[0]):
        return size
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _is_farther(
            distances[child + 1], ids[child + 1], distances[child], ids[child]
        ):
            child += 1
        if not _is_farther(distances[child], ids[child], distance, entity):
            break
        distances[place], ids[place] = distances[child], ids[child]
        place = child
    distances[place], ids[place] = distance, entity
    return size


def _merge(
    heap_distances: FloatArray, heap_ids: LongArray, heap_sizes: LongArray, counts: LongArray
) -> tuple[LongArray, FloatArray, LongArray]:
    chunks, rows, largest = heap_distances.shape
    distances = np.moveaxis(heap_distances, 1, 0).reshape(rows, chunks * largest)
    ids = np.moveaxis(heap_ids, 1, 0).reshape(rows, chunks * largest)
    order = np.lexsort((ids, distances))[:, :largest]  # empty places are infinitely far
    found = np.minimum(heap_sizes.sum(axis=0), counts)
    return np.take_along_axis(ids, order, 1), np.take_along_axis(distances, order, 1), found
