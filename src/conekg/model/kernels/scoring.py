"""Distances from regions to every entity on a CPU, compiled by numba.

One function a geometry, each with its plain reference beside it. Trigonometry happens
once a table and once a region, never in the inner loop. Kernels release the interpreter
lock and are spread over plain threads, so that several callers may score at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]

_Function = TypeVar("_Function", bound=Callable[..., Any])

TILE = 4
"""Entities that share each load of a region's coordinates."""
DIMENSIONS_AT_ONCE = 512
"""Dimensions for which a tile of entities and one region fit the first-level cache."""
ROWS_AT_ONCE = 32
"""Regions whose coordinates stay in the second-level cache while entities pass by."""

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


def compiled(function: _Function) -> _Function:
    """The function in machine code: sums in any order, no lock, kept on disk."""
    # The Python error model would test every divisor and keep the loop from vectorising.
    decorate = numba.njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
    result: _Function = decorate(function)
    return result


def inlined(function: _Function) -> _Function:
    """The function copied into its callers: a call per tile would count array references."""
    decorate = numba.njit(nogil=True, fastmath=True, error_model="numpy", inline="always")
    result: _Function = decorate(function)
    return result


def cone_table(angles: FloatArray) -> FloatArray:
    """tan(v/4) of entity angles v in [-π, π], from which sin(v/2) and cos(v/2) are rational.

    sin(v/2) = 2t / (1 + t²), cos(v/2) = (1 − t²) / (1 + t²), with |t| ≤ 1: full precision
    from half the memory of a table of sines and a table of cosines, which matters because
    scoring a single query is bound by reading the table.
    """
    table: FloatArray = np.tan(angles * np.float32(0.25))
    return table


def score_cones(
    table: FloatArray,
    axis: FloatArray,
    half_aperture: FloatArray,
    center_weight: float,
    threads: int,
) -> FloatArray:
    """[rows, num_entities] ConE's distance; `table` from `cone_table`, regions [rows, dim]."""
    # Absolute values, as in `cone_distance`: any aperture gives what the formula gives.
    sine = np.abs(np.sin(half_aperture * np.float32(0.5)))
    cosine = np.abs(np.cos(half_aperture * np.float32(0.5)))
    axis_sine = np.sin(axis * np.float32(0.5))
    axis_cosine = np.cos(axis * np.float32(0.5))
    region = np.stack(
        [axis_sine, axis_cosine, axis_sine * sine, axis_cosine * sine, cosine, sine], axis=1
    )
    kernel = _score_one_cone if len(axis) == 1 else _score_cones
    return over_threads(kernel, table, region, center_weight, threads)


def score_cones_plainly(
    angles: FloatArray, axis: FloatArray, half_aperture: FloatArray, center_weight: float
) -> FloatArray:
    """What `score_cones` computes, from entity angles, in one expression."""
    half_difference = (angles[None] - axis[:, None]) / 2
    x, y = np.abs(np.sin(half_difference)), np.abs(np.cos(half_difference))
    sine = np.abs(np.sin(half_aperture / 2))[:, None]
    cosine = np.abs(np.cos(half_aperture / 2))[:, None]
    outside = np.maximum(0, x * cosine - y * sine)
    result: FloatArray = (outside + center_weight * np.minimum(x, sine)).sum(axis=-1)
    return result


def score_boxes(
    table: FloatArray, center: FloatArray, offset: FloatArray, center_weight: float, threads: int
) -> FloatArray:
    """[rows, num_entities] Query2Box's distance from points [num_entities, dim]."""
    region = np.stack([center, offset], axis=1)
    return over_threads(_score_boxes, table, region, center_weight, threads)


def score_boxes_plainly(
    table: FloatArray, center: FloatArray, offset: FloatArray, center_weight: float
) -> FloatArray:
    """What `score_boxes` computes, in one expression."""
    difference = np.abs(table[None] - center[:, None])
    outside = np.maximum(0, difference - offset[:, None])
    inside = np.abs(np.minimum(difference, offset[:, None]))
    result: FloatArray = (outside + center_weight * inside).sum(axis=-1)
    return result


def score_points(table: FloatArray, point: FloatArray, threads: int) -> FloatArray:
    """[rows, num_entities] the L1 distance from points [num_entities, dim]."""
    return over_threads(_score_points, table, point[:, None], 0.0, threads)


def score_points_plainly(table: FloatArray, point: FloatArray) -> FloatArray:
    """What `score_points` computes, in one expression."""
    result: FloatArray = np.abs(table[None] - point[:, None]).sum(axis=-1)
    return result


def over_threads(
    kernel: Callable[..., None],
    table: FloatArray,
    region: FloatArray,
    center_weight: float,
    threads: int,
) -> FloatArray:
    """[rows, num_entities] from a kernel that fills a range of entities, one range a thread."""
    rows, num_entities = len(region), len(table)
    out = np.zeros((rows, num_entities), dtype=np.float32)
    if rows == 0 or num_entities == 0:
        return out
    region = np.ascontiguousarray(region, dtype=np.float32)
    weight = np.float32(center_weight)
    share = -(-num_entities // threads)
    share += -share % TILE
    ranges = [(start, min(start + share, num_entities)) for start in range(0, num_entities, share)]
    waiting = [
        thread_pool(os.getpid(), threads).submit(kernel, table, region, weight, out, start, stop)
        for start, stop in ranges[1:]
    ]
    kernel(table, region, weight, out, *ranges[0])
    for part in waiting:
        part.result()
    return out


@cache
def thread_pool(process_id: int, threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work; each process has its own, since threads do not survive a fork."""
    del process_id
    return ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="conekg-scoring")


@compiled
def _score_one_cone(
    table: FloatArray,
    region: FloatArray,
    center_weight: np.float32,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """One cone: the memory sets the pace, so each entity is unpacked where it is used."""
    # Indexed one by one: unpacking would lose that rows are contiguous, and with it the vectors.
    sa, ca2, sa_sh2 = region[0, 0], _TWO * region[0, 1], _TWO * region[0, 2]
    ca_sh, ch, sh = region[0, 3], region[0, 4], region[0, 5]
    for entity in range(start, stop):
        outside = _ZERO
        inside = _ZERO
        row = table[entity]
        for j in range(table.shape[1]):
            t = row[j]
            cosine = _ONE - t * t  # of v/2, times 1 + t², as sin(v/2) is 2t
            shrink = _ONE / (_TWO - cosine)
            x = abs(t * ca2[j] - cosine * sa[j])
            y = abs(cosine * ca_sh[j] + t * sa_sh2[j])
            outside += max(_ZERO, x * ch[j] - y) * shrink
            inside += min(x * shrink, sh[j])
        out[0, entity] = outside + center_weight * inside


@compiled
def _score_cones(
    table: FloatArray,
    region: FloatArray,
    center_weight: np.float32,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Many cones: a tile of entities is unpacked once and meets every region."""
    rows, dim = region.shape[0], table.shape[1]
    sines = np.empty((TILE, DIMENSIONS_AT_ONCE), dtype=np.float32)
    cosines = np.empty((TILE, DIMENSIONS_AT_ONCE), dtype=np.float32)
    for first_row in range(0, rows, ROWS_AT_ONCE):
        last_row = min(first_row + ROWS_AT_ONCE, rows)
        for entity in range(start, stop, TILE):
            # The last tile repeats its last entity and writes the same number again.
            e0, last = entity, stop - 1
            e1, e2, e3 = min(e0 + 1, last), min(e0 + 2, last), min(e0 + 3, last)
            for low in range(0, dim, DIMENSIONS_AT_ONCE):
                high = min(low + DIMENSIONS_AT_ONCE, dim)
                _unpack(table[e0, low:high], sines[0], cosines[0])
                _unpack(table[e1, low:high], sines[1], cosines[1])
                _unpack(table[e2, low:high], sines[2], cosines[2])
                _unpack(table[e3, low:high], sines[3], cosines[3])
                for r in range(first_row, last_row):
                    d0, d1, d2, d3 = _cone_terms(
                        sines, cosines, region[r], low, high, center_weight
                    )
                    if low:
                        d0 += out[r, e0]
                        d1 += out[r, e1]
                        d2 += out[r, e2]
                        d3 += out[r, e3]
                    out[r, e0] = d0
                    out[r, e1] = d1
                    out[r, e2] = d2
                    out[r, e3] = d3


@inlined
def _unpack(tangents: FloatArray, sines: FloatArray, cosines: FloatArray) -> None:
    """Fill sin(v/2) and cos(v/2) from tan(v/4)."""
    for j in range(len(tangents)):
        t = tangents[j]
        square = t * t
        shrink = _ONE / (_ONE + square)
        sines[j] = (t + t) * shrink
        cosines[j] = (_ONE - square) * shrink


@inlined
def _cone_terms(
    sines: FloatArray,
    cosines: FloatArray,
    region: FloatArray,
    low: int,
    high: int,
    center_weight: np.float32,
) -> tuple[np.float32, np.float32, np.float32, np.float32]:
    """The distances of a tile of four entities; eleven vector instructions an element."""
    sa, ca, sa_sh = region[0, low:high], region[1, low:high], region[2, low:high]
    ca_sh, ch, sh = region[3, low:high], region[4, low:high], region[5, low:high]
    s0, s1, s2, s3 = sines[0], sines[1], sines[2], sines[3]
    c0, c1, c2, c3 = cosines[0], cosines[1], cosines[2], cosines[3]
    out0, out1, out2, out3 = _ZERO, _ZERO, _ZERO, _ZERO
    in0, in1, in2, in3 = _ZERO, _ZERO, _ZERO, _ZERO
    for j in range(high - low):
        x = abs(s0[j] * ca[j] - c0[j] * sa[j])
        out0 += max(_ZERO, x * ch[j] - abs(c0[j] * ca_sh[j] + s0[j] * sa_sh[j]))
        in0 += min(x, sh[j])
        x = abs(s1[j] * ca[j] - c1[j] * sa[j])
        out1 += max(_ZERO, x * ch[j] - abs(c1[j] * ca_sh[j] + s1[j] * sa_sh[j]))
        in1 += min(x, sh[j])
        x = abs(s2[j] * ca[j] - c2[j] * sa[j])
        out2 += max(_ZERO, x * ch[j] - abs(c2[j] * ca_sh[j] + s2[j] * sa_sh[j]))
        in2 += min(x, sh[j])
        x = abs(s3[j] * ca[j] - c3[j] * sa[j])
        out3 += max(_ZERO, x * ch[j] - abs(c3[j] * ca_sh[j] + s3[j] * sa_sh[j]))
        in3 += min(x, sh[j])
    return (
        out0 + center_weight * in0,
        out1 + center_weight * in1,
        out2 + center_weight * in2,
        out3 + center_weight * in3,
    )


@compiled
def _score_boxes(
    table: FloatArray,
    region: FloatArray,
    center_weight: np.float32,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Boxes, a few at a time, against a range of entities."""
    rows = region.shape[0]
    for first_row in range(0, rows, ROWS_AT_ONCE):
        for entity in range(start, stop):
            point = table[entity]
            for r in range(first_row, min(first_row + ROWS_AT_ONCE, rows)):
                center, offset = region[r, 0], region[r, 1]
                outside = _ZERO
                inside = _ZERO
                for j in range(table.shape[1]):
                    difference = abs(point[j] - center[j])
                    outside += max(_ZERO, difference - offset[j])
                    inside += abs(min(difference, offset[j]))
                out[r, entity] = outside + center_weight * inside


@compiled
def _score_points(
    table: FloatArray,
    region: FloatArray,
    center_weight: np.float32,
    out: FloatArray,
    start: int,
    stop: int,
) -> None:
    """Points, a few at a time, against a range of entities; the weight plays no part."""
    rows = region.shape[0]
    for first_row in range(0, rows, ROWS_AT_ONCE):
        for entity in range(start, stop):
            point = table[entity]
            for r in range(first_row, min(first_row + ROWS_AT_ONCE, rows)):
                center = region[r, 0]
                total = _ZERO
                for j in range(table.shape[1]):
                    total += abs(point[j] - center[j])
                out[r, entity] = total
