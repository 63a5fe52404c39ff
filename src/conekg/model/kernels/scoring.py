"""Distances from regions to every entity on a CPU, compiled by numba.

`score` serves all geometries; beside it is a plain reference for each. Trigonometry happens
once per table and once per region, never in the inner loops, which are in `tile` and
`one_region`. Kernels release the interpreter lock and run on plain threads, so that several
callers may score at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import numpy as np

from conekg.model.kernels.one_region import add_one_region
from conekg.model.kernels.processor import FloatArray, compiled, on_cache_lines, prefer_wide_vectors
from conekg.model.kernels.tile import (
    BOX,
    CONE,
    TILE,
    add_tile,
    fetch_tile,
    load_tile,
    make_buffer,
    next_tile,
)

Result = TypeVar("Result")

DIMENSIONS_AT_ONCE = 416
"""Dimensions for which a tile of entities and one region fit the first-level cache."""
ROWS_AT_ONCE = 32
"""Regions whose coordinates stay in the second-level cache during a loop over entities."""
ROWS_TO_A_FETCH = 4
"""Regions that are processed between two prefetches of the next entities."""
LEAST_WEIGHT = 1e-20
"""Replaces smaller centre weights, since packed cones are divided by them; too small to matter."""

_ZERO = np.float32(0)


def cone_table(angles: FloatArray) -> FloatArray:
    """tan(v/4) of entity angles v in [-π, π], from which sin(v/2) and cos(v/2) are rational.

    sin(v/2) = 2t / (1 + t²), cos(v/2) = (1 − t²) / (1 + t²), with |t| ≤ 1: full precision
    from half the memory of a table of sines and a table of cosines, which matters because
    scoring a single query is bound by reading the table.
    """
    table: FloatArray = np.tan(angles * np.float32(0.25))
    return table


def pack_cones(
    axis: FloatArray, half_aperture: FloatArray, center_weight: float
) -> tuple[FloatArray, float]:
    """([rows, 6, dim] packed cones, the weight for the kernels) from cones [rows, dim].

    `tile` says how its term for cones uses the six parts.
    """
    weight = max(center_weight, LEAST_WEIGHT)
    # Absolute values as in `cone_distance`, for half apertures outside [0, π].
    sine = np.abs(np.sin(half_aperture * np.float32(0.5)))
    cosine = np.abs(np.cos(half_aperture * np.float32(0.5)))
    axis_sine = np.sin(axis * np.float32(0.5))
    axis_cosine = np.cos(axis * np.float32(0.5))
    scaled = sine * np.float32(1 / weight)
    parts = (
        axis_sine,
        axis_cosine,
        axis_sine * scaled,
        axis_cosine * scaled,
        cosine * np.float32(1 / weight),
        sine,
    )
    return np.stack(parts, axis=1), weight


def pack_one_cone(region: FloatArray) -> FloatArray:
    """[1, 6, dim] a packed cone for `one_region`: the parts that multiply sin(v/2) are doubled."""
    doubled = region.copy()
    doubled[:, 1:3] *= np.float32(2)
    return doubled


def pack_regions(
    geometry: int, first: FloatArray, second: FloatArray, center_weight: float
) -> tuple[FloatArray, float]:
    """([rows, parts, dim] packed regions, the weight for the kernels).

    `first` and `second` [rows, dim] are axis and half aperture, or centre and offset; for points
    `second` is ignored.
    """
    if geometry == CONE:
        return pack_cones(first, second, center_weight)
    if geometry == BOX:
        return np.stack([first, second], axis=1), center_weight
    return first[:, None], 0.0


def score(
    geometry: int,
    table: FloatArray,
    first: FloatArray,
    second: FloatArray,
    center_weight: float,
    threads: int,
) -> FloatArray:
    """[rows, num_entities] the distances from regions (first, second), as for `pack_regions`.

    `table` [num_entities, dim] holds the entities' coordinates; for cones, that of `cone_table`.
    """
    region, weight = pack_regions(geometry, first, second, center_weight)
    rows, num_entities = len(region), len(table)
    out = np.zeros((rows, num_entities), dtype=np.float32)
    if rows == 0 or num_entities == 0:
        return out
    if geometry == CONE and rows == 1:
        region = pack_one_cone(region)
    arguments = (geometry, table, on_cache_lines(region), np.float32(weight), out)
    in_ranges(_score_one if rows == 1 else _score_all, num_entities, threads, *arguments)
    return out


def score_cones_plainly(
    angles: FloatArray, axis: FloatArray, half_aperture: FloatArray, center_weight: float
) -> FloatArray:
    """What `score` computes for cones, from entity angles, in one expression."""
    half_difference = (angles[None] - axis[:, None]) / 2
    x, y = np.abs(np.sin(half_difference)), np.abs(np.cos(half_difference))
    sine = np.abs(np.sin(half_aperture / 2))[:, None]
    cosine = np.abs(np.cos(half_aperture / 2))[:, None]
    outside = np.maximum(0, x * cosine - y * sine)
    result: FloatArray = (outside + center_weight * np.minimum(x, sine)).sum(axis=-1)
    return result


def score_boxes_plainly(
    table: FloatArray, center: FloatArray, offset: FloatArray, center_weight: float
) -> FloatArray:
    """What `score` computes for boxes, in one expression."""
    difference = np.abs(table[None] - center[:, None])
    outside = np.maximum(0, difference - offset[:, None])
    inside = np.abs(np.minimum(difference, offset[:, None]))
    result: FloatArray = (outside + center_weight * inside).sum(axis=-1)
    return result


def score_points_plainly(table: FloatArray, point: FloatArray) -> FloatArray:
    """What `score` computes for points, in one expression."""
    result: FloatArray = np.abs(table[None] - point[:, None]).sum(axis=-1)
    return result


def in_ranges(
    kernel: Callable[..., Result], number: int, threads: int, *arguments: object, step: int = TILE
) -> list[Result]:
    """The results of `kernel(*arguments, start, stop)` for the ranges of `number` items, in order.

    There is at most one range per thread; ranges start at multiples of `step`.
    """
    share = -(-number // threads)
    share += -share % step
    ranges = [(start, min(start + share, number)) for start in range(0, number, share)]
    pending = [
        thread_pool(os.getpid(), threads).submit(kernel, *arguments, start, stop)
        for start, stop in ranges[1:]
    ]
    own = kernel(*arguments, *ranges[0])
    return [own, *(future.result() for future in pending)]


@cache
def thread_pool(process_id: int, threads: int) -> ThreadPoolExecutor:
    """A pool of `threads` − 1 threads, at least one, since the caller's thread works too.

    Each process has its own pools, since threads do not survive a fork.
    """
    del process_id
    return ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="conekg-scoring")


@compiled
def _score_one(
    geometry: int,
    table: FloatArray,
    region: FloatArray,
    weight: np.float32,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Fill `out` for one region: memory limits the speed, so entities are not unpacked first."""
    prefer_wide_vectors()
    sums = np.empty(TILE, dtype=np.float32)
    ids, ahead = np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64)
    for entity in range(start, stop, TILE):
        sums[:] = _ZERO
        next_tile(entity, stop, ids)
        next_tile(entity + TILE, stop, ahead)
        add_one_region(geometry, table, ids, ahead, region[0], 0, table.shape[1], weight, sums)
        for i in range(min(TILE, stop - entity)):
            out[0, entity + i] = sums[i]


@compiled
def _score_all(
    geometry: int,
    table: FloatArray,
    region: FloatArray,
    weight: np.float32,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Fill `out` for many regions: a tile of entities is unpacked once for all of them."""
    prefer_wide_vectors()
    dim = table.shape[1]
    first, second = make_buffer(DIMENSIONS_AT_ONCE), make_buffer(DIMENSIONS_AT_ONCE)
    sums = np.empty((region.shape[0], TILE), dtype=np.float32)
    ids, ahead = np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64)
    for first_row in range(0, region.shape[0], ROWS_AT_ONCE):
        rows = np.arange(first_row, min(first_row + ROWS_AT_ONCE, region.shape[0]))
        for entity in range(start, stop, TILE):
            sums[:] = _ZERO
            next_tile(entity, stop, ids)
            next_tile(entity + TILE, stop, ahead)
            for low in range(0, dim, DIMENSIONS_AT_ONCE):
                high = min(low + DIMENSIONS_AT_ONCE, dim)
                load_tile(geometry, table, ids, low, high, first, second)
                fetched, parts = low, -(-len(rows) // ROWS_TO_A_FETCH)
                for part in range(parts):
                    some = rows[part * ROWS_TO_A_FETCH : (part + 1) * ROWS_TO_A_FETCH]
                    add_tile(geometry, first, second, region, low, high, weight, some, sums)
                    until = low + (high - low) * (part + 1) // parts
                    fetch_tile(table, ahead, fetched, until)
                    fetched = until
            for r in rows:
                for i in range(min(TILE, stop - entity)):
                    out[r, entity + i] = sums[r, i]
