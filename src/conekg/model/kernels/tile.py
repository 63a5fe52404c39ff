"""The innermost loops of scoring on a CPU: eight entities against many regions.

numba inlines them into every loop that scores, so that a search for the best entities
adds up exactly the numbers that scoring all of them does. No term of a sum is negative,
in any geometry, so partial sums never decrease. For a single region there are other
loops, in `one_region`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from conekg.graph.adjacency import LongArray
from conekg.model.geometry import Geometry
from conekg.model.kernels.processor import LINE, FloatArray, fetch, fused, inlined

EightFloats: TypeAlias = tuple[
    np.float32, np.float32, np.float32, np.float32, np.float32, np.float32, np.float32, np.float32
]

CONE, BOX, POINT = int(Geometry.CONE), int(Geometry.BOX), int(Geometry.POINT)
"""The geometries as plain numbers."""
TILE = 8
"""Entities of a tile, which share each load of a region's coordinates."""

_ZERO, _ONE = np.float32(0), np.float32(1)


@inlined
def fetch_tile(table: FloatArray, ids: LongArray, low: int, high: int) -> None:
    """Prefetch dimensions `low` to `high` of the entities that are scored next.

    Arithmetic and memory access then overlap. The processor by itself prefetches only within a
    page of memory, which is hardly longer than a row. Callers prefetch a few lines at a time: a
    core stalls when more than about a dozen are pending.
    """
    for j in range(low, high, LINE):
        for i in range(len(ids)):
            fetch(table, ids[i], j)


@inlined
def make_buffer(width: int) -> FloatArray:
    """[8, width] uninitialised; its rows start on cache lines if the width is a multiple of 16."""
    memory = np.empty(TILE * width + LINE, dtype=np.float32)
    start = -(memory.ctypes.data // 4) % LINE
    return memory[start : start + TILE * width].reshape(TILE, width)


@inlined
def next_tile(entity: int, stop: int, ids: LongArray) -> None:
    """Fill `ids` [8] with the entities from `entity` on; at `stop` the last one repeats."""
    for i in range(TILE):
        ids[i] = min(entity + i, stop - 1)


@inlined
def load_tile(
    geometry: int,
    table: FloatArray,
    ids: LongArray,
    low: int,
    high: int,
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Fill the buffers [8, high − low] from the entities `ids` [8].

    For cones, `first` gets sin(v/2) and `second` cos(v/2), from tan(v/4); in other geometries
    `first` gets the coordinates.
    """
    for i in range(TILE):
        row = table[ids[i], low:high]
        if geometry == CONE:
            _unpack(row, first[i], second[i])
        else:
            _copy(row, first[i])


@inlined
def _unpack(tangents: FloatArray, sines: FloatArray, cosines: FloatArray) -> None:
    for j in range(len(tangents)):
        square = tangents[j] * tangents[j]
        shrink = _ONE / (_ONE + square)
        sines[j] = (tangents[j] + tangents[j]) * shrink
        cosines[j] = (_ONE - square) * shrink


@inlined
def _copy(row: FloatArray, into: FloatArray) -> None:
    for j in range(len(row)):
        into[j] = row[j]


@inlined
def add_tile(
    geometry: int,
    first: FloatArray,
    second: FloatArray,
    region: FloatArray,
    low: int,
    high: int,
    weight: np.float32,
    rows: LongArray,
    sums: FloatArray,
) -> None:
    """Add to `sums` [rows, 8] the distances of a loaded tile in dimensions `low` to `high`.

    `rows` selects the packed regions of `region` [rows, parts, dim]. The geometry is tested outside
    the loops over rows: inside, the test costs a third of the speed.
    """
    if geometry == CONE:
        for r in rows:
            terms = _cone_distances(first, second, region[r], low, high, weight)
            _add(terms, sums[r])
    elif geometry == BOX:
        for r in rows:
            _add(_box_distances(first, region[r], low, high, weight), sums[r])
    else:
        for r in rows:
            _add(_point_distances(first, region[r], low, high), sums[r])


@inlined
def _add(terms: EightFloats, sums: FloatArray) -> None:
    sums[0] += terms[0]
    sums[1] += terms[1]
    sums[2] += terms[2]
    sums[3] += terms[3]
    sums[4] += terms[4]
    sums[5] += terms[5]
    sums[6] += terms[6]
    sums[7] += terms[7]


@inlined
def _cone_term(
    sine: np.float32,
    cosine: np.float32,
    sa: np.float32,
    ca: np.float32,
    sa_sh: np.float32,
    ca_sh: np.float32,
    ch: np.float32,
    sh: np.float32,
) -> np.float32:
    """One dimension of ConE's distance over λ, from sin(v/2) and cos(v/2), in ten instructions.

    With x = |sin δ/2|, y = |cos δ/2|, and S, C of the half aperture, ConE's distance is
    max(0, xC − yS) + λ min(x, S) = λ max(x, (xC − yS)/λ + S): inside a cone the first is
    the larger, since λ < 1 and sin((h−δ)/2) ≥ sin(h/2) − sin(δ/2), and outside the second.
    """
    x = abs(fused(sine, ca, -cosine * sa))
    y = abs(fused(cosine, ca_sh, sine * sa_sh))
    return max(x, fused(x, ch, sh - y))


@inlined
def box_term(
    point: np.float32, center: np.float32, offset: np.float32, weight: np.float32
) -> np.float32:
    """One dimension of Query2Box's distance: the outside part plus `weight` times the inside."""
    x = abs(point - center)
    result: np.float32 = fused(weight, abs(min(x, offset)), max(_ZERO, x - offset))
    return result


@inlined
def _cone_distances(
    sines: FloatArray,
    cosines: FloatArray,
    region: FloatArray,
    low: int,
    high: int,
    weight: np.float32,
) -> EightFloats:
    """ConE's distances of eight entities; `region` from `scoring.pack_cones`."""
    # Six slices: the compiler would not know a slice of all parts to be contiguous, and so not
    # vectorise the loop.
    sa, ca, sa_sh = region[0, low:high], region[1, low:high], region[2, low:high]
    ca_sh, ch, sh = region[3, low:high], region[4, low:high], region[5, low:high]
    s0, s1, s2, s3 = sines[0], sines[1], sines[2], sines[3]
    s4, s5, s6, s7 = sines[4], sines[5], sines[6], sines[7]
    c0, c1, c2, c3 = cosines[0], cosines[1], cosines[2], cosines[3]
    c4, c5, c6, c7 = cosines[4], cosines[5], cosines[6], cosines[7]
    d0, d1, d2, d3, d4, d5, d6, d7 = (
        _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO,
    )  # fmt: skip
    for j in range(len(sa)):
        d0 += _cone_term(s0[j], c0[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d1 += _cone_term(s1[j], c1[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d2 += _cone_term(s2[j], c2[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d3 += _cone_term(s3[j], c3[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d4 += _cone_term(s4[j], c4[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d5 += _cone_term(s5[j], c5[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d6 += _cone_term(s6[j], c6[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
        d7 += _cone_term(s7[j], c7[j], sa[j], ca[j], sa_sh[j], ca_sh[j], ch[j], sh[j])
    return (
        weight * d0, weight * d1, weight * d2, weight * d3,
        weight * d4, weight * d5, weight * d6, weight * d7,
    )  # fmt: skip


@inlined
def _box_distances(
    points: FloatArray, region: FloatArray, low: int, high: int, weight: np.float32
) -> EightFloats:
    """Query2Box's distances of eight entities; `region` holds centre and offset."""
    center, offset = region[0, low:high], region[1, low:high]
    p0, p1, p2, p3 = points[0], points[1], points[2], points[3]
    p4, p5, p6, p7 = points[4], points[5], points[6], points[7]
    d0, d1, d2, d3, d4, d5, d6, d7 = (
        _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO,
    )  # fmt: skip
    for j in range(len(center)):
        d0 += box_term(p0[j], center[j], offset[j], weight)
        d1 += box_term(p1[j], center[j], offset[j], weight)
        d2 += box_term(p2[j], center[j], offset[j], weight)
        d3 += box_term(p3[j], center[j], offset[j], weight)
        d4 += box_term(p4[j], center[j], offset[j], weight)
        d5 += box_term(p5[j], center[j], offset[j], weight)
        d6 += box_term(p6[j], center[j], offset[j], weight)
        d7 += box_term(p7[j], center[j], offset[j], weight)
    return d0, d1, d2, d3, d4, d5, d6, d7


@inlined
def _point_distances(points: FloatArray, region: FloatArray, low: int, high: int) -> EightFloats:
    """The L1 distances of eight entities."""
    center = region[0, low:high]
    p0, p1, p2, p3 = points[0], points[1], points[2], points[3]
    p4, p5, p6, p7 = points[4], points[5], points[6], points[7]
    d0, d1, d2, d3, d4, d5, d6, d7 = (
        _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO,
    )  # fmt: skip
    for j in range(len(center)):
        d0 += abs(p0[j] - center[j])
        d1 += abs(p1[j] - center[j])
        d2 += abs(p2[j] - center[j])
        d3 += abs(p3[j] - center[j])
        d4 += abs(p4[j] - center[j])
        d5 += abs(p5[j] - center[j])
        d6 += abs(p6[j] - center[j])
        d7 += abs(p7[j] - center[j])
    return d0, d1, d2, d3, d4, d5, d6, d7
