"""The compiled loops of the abandoning scan, and the heaps that hold the nearest entities.

`abandon` calls them with packed tables and regions, and explains the scan and why its result
equals that of a full scan.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from conekg.answering.bound import largest_sum
from conekg.graph.adjacency import LongArray
from conekg.model.kernels.lookup import SumArray
from conekg.model.kernels.one_region import add_one_region
from conekg.model.kernels.processor import FloatArray, compiled, inlined, prefer_wide_vectors
from conekg.model.kernels.tile import CONE, TILE, add_tile, load_tile, make_buffer

Heaps: TypeAlias = tuple[FloatArray, LongArray, LongArray, LongArray]
"""Max-heaps of distances and of ids, each [rows, most], the heaps' sizes [rows], and how many
distance terms were computed [rows]."""

_FAR = np.float32(3e38)
"""Larger than any distance. Not infinity, which fast-math compilation does not allow."""


@compiled
def scan(
    geometry: int,
    table: FloatArray,
    weight: np.float32,
    abandon: bool,
    block: int,
    candidates: LongArray,
    region: FloatArray,
    counts: LongArray,
    skip_starts: LongArray,
    skip: LongArray,
    start: int,
    stop: int,
) -> Heaps:
    """The nearest of each region among `candidates[start:stop]`, ids in rising order.

    A single cone must be packed by `pack_one_cone`.
    """
    prefer_wide_vectors()
    rows, dim = region.shape[0], table.shape[1]
    distances = np.empty((rows, counts.max()), dtype=np.float32)
    ids = np.empty((rows, counts.max()), dtype=np.int64)
    sizes, looked_at = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    limits = np.full(rows, _FAR, dtype=np.float32)
    first, second = make_buffer(block), make_buffer(block)
    sums = np.empty((rows, TILE), dtype=np.float32)
    alive = np.empty(rows, dtype=np.int64)
    tile, ahead = np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64)
    for place in range(start, stop, TILE):
        width = min(TILE, stop - place)
        for i in range(TILE):
            tile[i] = candidates[min(place + i, stop - 1)]
            ahead[i] = candidates[min(place + TILE + i, stop - 1)]
        sums[:] = np.float32(0)
        left = rows
        for row in range(rows):
            alive[row] = row
        for low in range(0, dim, block):
            high = min(low + block, dim)
            if rows == 1:
                add_one_region(geometry, table, tile, ahead, region[0], low, high, weight, sums[0])
            else:
                load_tile(geometry, table, tile, low, high, first, second)
                add_tile(geometry, first, second, region, low, high, weight, alive[:left], sums)
            kept = 0
            for index in range(left):
                row = alive[index]
                looked_at[row] += width * (high - low)
                # Sums only grow, so a sum above the limit stays above it.
                if not abandon or _smallest(sums[row]) <= limits[row]:
                    alive[kept] = row
                    kept += 1
            left = kept
            if left == 0:
                break
        for index in range(left):
            row = alive[index]
            for i in range(width):
                distance = sums[row, i]
                # Ids rise and ties go to the smaller id, so at equal distance the earlier stays.
                if distance > limits[row] or (
                    sizes[row] == counts[row] and distance == limits[row]
                ):
                    continue
                if _is_among(skip[skip_starts[row] : skip_starts[row + 1]], tile[i]):
                    continue
                if sizes[row] < counts[row]:
                    sizes[row] += 1
                    _push(distances[row], ids[row], sizes[row], distance, tile[i])
                else:
                    _replace_top(distances[row], ids[row], sizes[row], distance, tile[i])
                if sizes[row] == counts[row]:
                    limits[row] = distances[row, 0]
    return distances, ids, sizes, looked_at


@compiled
def scan_by_bound(
    table: FloatArray,
    weight: np.float32,
    block: int,
    bound_sums: SumArray,
    bound_steps: FloatArray,
    region: FloatArray,
    counts: LongArray,
    skip_starts: LongArray,
    skip: LongArray,
    distances: FloatArray,
    ids: LongArray,
    sizes: LongArray,
    looked_at: LongArray,
    start: int,
    stop: int,
) -> None:
    """Fill rows `start` to `stop` of the heaps with the nearest of all entities.

    The distances of the `count` entities with the smallest bounds are computed first. The nearest
    `count` are no farther than the farthest of these, so entities with a larger bound are left
    out. All cones are packed by `pack_one_cone`: each is scanned alone, over candidates of its
    own, so a result does not depend on which cones are searched together.
    """
    no_skip, no_skip_starts = np.empty(0, dtype=np.int64), np.zeros(2, dtype=np.int64)
    candidates = np.empty(table.shape[0], dtype=np.int64)
    cone, count = np.empty_like(region[:1]), np.empty(1, dtype=np.int64)
    for row in range(start, stop):
        # A slice would be of another array type, for which numba compiles `scan` again. Element by
        # element, because numba takes seconds to compile the assignment of whole arrays.
        for part in range(region.shape[1]):
            for place in range(region.shape[2]):
                cone[0, part, place] = region[row, part, place]
        count[0] = counts[row]
        sums, step = bound_sums[row], bound_steps[row]
        skipped = skip[skip_starts[row] : skip_starts[row + 1]]
        seeds = _smallest_sums(sums, table.shape[0], count[0], skipped)
        found = scan(
            CONE, table, weight, True, block,
            seeds, cone, count, no_skip_starts, no_skip, 0, len(seeds),
        )  # fmt: skip
        looked_at[row] = found[3][0]
        most = largest_sum(found[0][0, 0], step, table.shape[1])
        number = len(no_skip)  # a literal 0 would make numba compile `scan` for that literal too
        for entity in range(table.shape[0]):
            if sums[entity] <= most and not _is_among(skipped, entity):
                candidates[number] = entity
                number += 1
        found = scan(
            CONE, table, weight, True, block,
            candidates, cone, count, no_skip_starts, no_skip, 0, number,
        )  # fmt: skip
        looked_at[row] += found[3][0]
        sizes[row] = found[2][0]
        for place in range(sizes[row]):
            distances[row, place] = found[0][0, place]
            ids[row, place] = found[1][0, place]


@compiled
def _smallest_sums(sums: SumArray, number: int, count: int, skipped: LongArray) -> LongArray:
    """The ids, in rising order, of the `count` smallest of the first `number` sums.

    Entities in `skipped` are left out; at least `count` others must remain.
    """
    nearest = np.empty(count, dtype=np.float32)
    ids = np.empty(count, dtype=np.int64)
    size = 0
    for entity in range(number):
        total = float(sums[entity])
        if size == count and total >= nearest[0]:
            continue
        if _is_among(skipped, entity):
            continue
        if size < count:
            size += 1
            _push(nearest, ids, size, total, entity)
        else:
            _replace_top(nearest, ids, size, total, entity)
    ids.sort()
    return ids


@inlined
def _smallest(sums: FloatArray) -> np.float32:
    """The smallest of eight sums."""
    low = min(min(sums[0], sums[1]), min(sums[2], sums[3]))
    high = min(min(sums[4], sums[5]), min(sums[6], sums[7]))
    return min(low, high)


@compiled
def _push(distances: FloatArray, ids: LongArray, size: int, distance: float, entity: int) -> None:
    """Insert an entity at place `size - 1` of a heap and sift it up; its id exceeds all others.

    The top of the heap is the farthest entity, among equally far ones that of the highest id.
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
    """Replace the top of a heap by an entity and sift it down; its id exceeds all others."""
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
