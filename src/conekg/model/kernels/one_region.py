"""The innermost loops of scoring a single region on a CPU, where memory limits the speed.

They add up the same terms as `tile`, for the same callers. Since each entity is used only
once, its row is not unpacked into a buffer but read where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from conekg.graph.adjacency import LongArray
from conekg.model.kernels.processor import FloatArray, fused, inlined
from conekg.model.kernels.tile import BOX, CONE, TILE, box_term, fetch_tile

Parts: TypeAlias = tuple[FloatArray, ...]
"""A range of dimensions of every part of a packed region."""

PIECE = 64
"""Dimensions that are processed while the same ones of the next entities are prefetched."""

_ZERO, _ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)


@inlined
def add_one_region(
    geometry: int,
    table: FloatArray,
    ids: LongArray,
    ahead: LongArray,
    region: FloatArray,
    low: int,
    high: int,
    weight: np.float32,
    sums: FloatArray,
) -> None:
    """Add to `sums` [8] the distances of entities `ids` [8] in dimensions `low` to `high`.

    `region` [parts, dim] is packed; a cone by `scoring.pack_one_cone`. The same dimensions of
    the entities `ahead` [8] are prefetched meanwhile. The geometry is tested here, once: a test
    inside the loop would keep it from vectorising.
    """
    if geometry == CONE:
        _add_cone(table, ids, ahead, region, low, high, weight, sums)
    elif geometry == BOX:
        _add_box(table, ids, ahead, region, low, high, weight, sums)
    else:
        _add_point(table, ids, ahead, region, low, high, weight, sums)


@inlined
def _tangent_term(tangent: np.float32, cone: Parts, j: int, weight: np.float32) -> np.float32:
    """The term of `tile` for cones, from tan(v/4) and parts doubled by `scoring.pack_one_cone`."""
    sa, ca2, sa_sh2, ca_sh, ch, sh = (
        cone[0][j], cone[1][j], cone[2][j], cone[3][j], cone[4][j], cone[5][j],
    )  # fmt: skip
    # (1 + t²) cos(v/2), as 2t is (1 + t²) sin(v/2).
    cosine = _ONE - tangent * tangent
    shrink = _ONE / (_TWO - cosine)
    x = abs(fused(tangent, ca2, -cosine * sa))
    y = abs(fused(tangent, sa_sh2, cosine * ca_sh))
    result: np.float32 = weight * max(x * shrink, (x * ch - y) * shrink + sh)
    return result


@inlined
def _box_term(point: np.float32, box: Parts, j: int, weight: np.float32) -> np.float32:
    return box_term(point, box[0][j], box[1][j], weight)


@inlined
def _point_term(point: np.float32, other: Parts, j: int, weight: np.float32) -> np.float32:
    return abs(point - other[0][j])


@inlined
def _cone_parts(region: FloatArray, start: int, stop: int) -> Parts:
    # Six slices: the compiler would not know a slice of all parts to be contiguous, and so not
    # vectorise the loop.
    return (
        region[0, start:stop], region[1, start:stop], region[2, start:stop],
        region[3, start:stop], region[4, start:stop], region[5, start:stop],
    )  # fmt: skip


@inlined
def _box_parts(region: FloatArray, start: int, stop: int) -> Parts:
    return region[0, start:stop], region[1, start:stop]


@inlined
def _point_parts(region: FloatArray, start: int, stop: int) -> Parts:
    return (region[0, start:stop],)


def _adding(parts_of: Callable[..., Parts], term: Callable[..., np.float32]) -> Callable[..., None]:
    """The loop that adds up the terms of a geometry over entities and dimensions.

    It reads four rows of the table at a time, because one does not keep the memory busy.
    """

    @inlined
    def add(
        table: FloatArray,
        ids: LongArray,
        ahead: LongArray,
        region: FloatArray,
        low: int,
        high: int,
        weight: np.float32,
        sums: FloatArray,
    ) -> None:
        for half in range(0, TILE, 4):
            d0, d1, d2, d3 = _ZERO, _ZERO, _ZERO, _ZERO
            for start in range(low, high, PIECE):
                stop = min(start + PIECE, high)
                fetch_tile(table, ahead[half : half + 4], start, stop)
                parts = parts_of(region, start, stop)
                t0 = table[ids[half], start:stop]
                t1 = table[ids[half + 1], start:stop]
                t2 = table[ids[half + 2], start:stop]
                t3 = table[ids[half + 3], start:stop]
                for j in range(len(t0)):
                    d0 += term(t0[j], parts, j, weight)
                    d1 += term(t1[j], parts, j, weight)
                    d2 += term(t2[j], parts, j, weight)
                    d3 += term(t3[j], parts, j, weight)
            sums[half] += d0
            sums[half + 1] += d1
            sums[half + 2] += d2
            sums[half + 3] += d3

    return add


_add_cone = _adding(_cone_parts, _tangent_term)
_add_box = _adding(_box_parts, _box_term)
_add_point = _adding(_point_parts, _point_term)
