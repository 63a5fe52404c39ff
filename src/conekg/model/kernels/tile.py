"""The innermost loops of scoring on a CPU: eight entities against one region.

Compiled by numba and copied into whoever scores, so that a search for the best
entities adds up the very numbers that scoring all of them does. Every term of a
sum is at least zero, in every geometry, and so no partial sum ever falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from conekg.model.geometry import Geometry

FloatArray: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int64]
EightFloats: TypeAlias = tuple[
    np.float32, np.float32, np.float32, np.float32, np.float32, np.float32, np.float32, np.float32
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

CONE, BOX, POINT = int(Geometry.CONE), int(Geometry.BOX), int(Geometry.POINT)
"""How distance is measured, in plain numbers."""
TILE = 8
"""Entities that share each load of a region's coordinates."""

LINE = 16
"""Floats of a cache line."""
LINE_BYTES = 64

PIECE = 64
"""Dimensions of one cone that are worked on while those of the next entities are fetched."""

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


def on_cache_lines(array: FloatArray) -> FloatArray:
    """A contiguous copy that starts on a cache line: loads that straddle two cost a tenth."""
    copy: FloatArray = empty_on_cache_lines(array.shape, np.float32)
    copy[...] = array
    return copy


def empty_on_cache_lines(shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
    """An uninitialised contiguous array that starts on a cache line."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    memory = np.empty(size + LINE_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + size].view(kind).reshape(shape)


@intrinsic
def prefer_wide_vectors(typing_context: Any) -> Any:
    """Let the compiled caller use the widest vectors that the processor has.

    Compilers shun 512 bits for the sake of the code around, which ran slower then on older
    processors. These loops are all there is: they took three quarters of the time by them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Past `add`, which knows only LLVM's own attributes and not those of its targets.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once where the processor can.

    Of a sum of two products the compiler would round either one twice, and which may depend
    on an entity's place in its tile: equal entities would not be equally far then.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FloatType()
        fuse = builder.module.declare_intrinsic(
            "llvm.fmuladd", [kind], ir.FunctionType(kind, [kind] * 3)
        )
        return builder.call(fuse, arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


def emit_fetch(builder: Any, pointer: Any) -> None:
    """Ask for the cache line of a pointer; one beyond the end of the memory is ignored."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [number] * 3)
    )
    read, second_level, data = number(0), number(2), number(1)
    builder.call(fetch, [builder.bitcast(pointer, byte), read, second_level, data])


@intrinsic
def _fetch(typing_context: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask the memory for the line that holds `table[row, column]`, and do not wait for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        emit_fetch(builder, cgutils.get_item_pointer(context, builder, kind, array, arguments[1:]))
        return context.get_dummy_value()

    return types.none(table, row, column), generate


@inlined
def fetch_tile(table: FloatArray, ids: IntArray, low: int, high: int) -> None:
    """Ask the memory for some dimensions of entities that are wanted next.

    Work and waiting overlap then. The processor fetches ahead by itself only within a page
    of memory, which is hardly longer than a row. A few lines at a time: what exceeds the
    dozen that a core can wait for makes it wait.
    """
    for j in range(low, high, LINE):
        for i in range(len(ids)):
            _fetch(table, ids[i], j)


@inlined
def make_buffer(width: int) -> FloatArray:
    """[8, width] uninitialised, its rows on cache lines if the width is a multiple of 16."""
    memory = np.empty(TILE * width + LINE, dtype=np.float32)
    start = -(memory.ctypes.data // 4) % LINE
    return memory[start : start + TILE * width].reshape(TILE, width)


@inlined
def next_tile(entity: int, stop: int, ids: IntArray) -> None:
    """Fill `ids` [8] with the entities from `entity` on; the last before `stop` is repeated."""
    for i in range(TILE):
        ids[i] = min(entity + i, stop - 1)


@inlined
def load_tile(
    geometry: int,
    table: FloatArray,
    ids: IntArray,
    low: int,
    high: int,
    first: FloatArray,
    second: FloatArray,
) -> None:
    """Fill the buffers [8, high − low] from the entities `ids` [8].

    Of cones sin(v/2) and cos(v/2), from tan(v/4); otherwise the coordinates, in `first`.
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
    rows: IntArray,
    sums: FloatArray,
) -> None:
    """Add to `sums` [rows, 8] what some dimensions of a loaded tile are away from packed regions.

    `rows` says from which regions of `region` [rows, parts, dim]. The geometry is asked for
    once, not once a row: inside the loop over rows the question costs a third of the speed.
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
def _cone_distances(
    sines: FloatArray,
    cosines: FloatArray,
    region: FloatArray,
    low: int,
    high: int,
    weight: np.float32,
) -> EightFloats:
    """Ten vector instructions an element; `region` from `scoring.pack_cones`.

    With x = |sin δ/2|, y = |cos δ/2|, and S, C of the half aperture, ConE's distance is
    max(0, xC − yS) + λ min(x, S) = λ max(x, (xC − yS)/λ + S): inside a cone the first is
    the larger, since λ < 1 and sin((h−δ)/2) ≥ sin(h/2) − sin(δ/2), and outside the second.
    """
    # One by one: a slice of all six would not be known to be contiguous, and not vectorise.
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
        x = abs(fused(s0[j], ca[j], -c0[j] * sa[j]))
        y = abs(fused(c0[j], ca_sh[j], s0[j] * sa_sh[j]))
        d0 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s1[j], ca[j], -c1[j] * sa[j]))
        y = abs(fused(c1[j], ca_sh[j], s1[j] * sa_sh[j]))
        d1 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s2[j], ca[j], -c2[j] * sa[j]))
        y = abs(fused(c2[j], ca_sh[j], s2[j] * sa_sh[j]))
        d2 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s3[j], ca[j], -c3[j] * sa[j]))
        y = abs(fused(c3[j], ca_sh[j], s3[j] * sa_sh[j]))
        d3 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s4[j], ca[j], -c4[j] * sa[j]))
        y = abs(fused(c4[j], ca_sh[j], s4[j] * sa_sh[j]))
        d4 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s5[j], ca[j], -c5[j] * sa[j]))
        y = abs(fused(c5[j], ca_sh[j], s5[j] * sa_sh[j]))
        d5 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s6[j], ca[j], -c6[j] * sa[j]))
        y = abs(fused(c6[j], ca_sh[j], s6[j] * sa_sh[j]))
        d6 += max(x, fused(x, ch[j], sh[j] - y))
        x = abs(fused(s7[j], ca[j], -c7[j] * sa[j]))
        y = abs(fused(c7[j], ca_sh[j], s7[j] * sa_sh[j]))
        d7 += max(x, fused(x, ch[j], sh[j] - y))
    return (
        weight * d0, weight * d1, weight * d2, weight * d3,
        weight * d4, weight * d5, weight * d6, weight * d7,
    )  # fmt: skip


@inlined
def add_one_cone(
    table: FloatArray,
    ids: IntArray,
    ahead: IntArray,
    cone: FloatArray,
    low: int,
    high: int,
    weight: np.float32,
    sums: FloatArray,
) -> None:
    """Add to `sums` [8] what some dimensions of the entities `ids` [8] are away from one cone.

    `cone` [6, dim] is from `scoring.pack_one_cone`. Nothing is kept, as it is used but once.
    Four rows of the table are read at a time, one alone does not keep the memory busy, and
    meanwhile the same dimensions of the entities `ahead` [8] are fetched.
    """
    for half in range(0, TILE, 4):
        d0, d1, d2, d3 = _ZERO, _ZERO, _ZERO, _ZERO
        for start in range(low, high, PIECE):
            stop = min(start + PIECE, high)
            fetch_tile(table, ahead[half : half + 4], start, stop)
            sa, ca2, sa_sh2 = cone[0, start:stop], cone[1, start:stop], cone[2, start:stop]
            ca_sh, ch, sh = cone[3, start:stop], cone[4, start:stop], cone[5, start:stop]
            t0 = table[ids[half], start:stop]
            t1 = table[ids[half + 1], start:stop]
            t2 = table[ids[half + 2], start:stop]
            t3 = table[ids[half + 3], start:stop]
            for j in range(len(sa)):
                # cos(v/2) times 1 + t², as sin(v/2) is 2t; the rest as in `_cone_distances`.
                cosine = _ONE - t0[j] * t0[j]
                shrink = _ONE / (_TWO - cosine)
                x = abs(fused(t0[j], ca2[j], -cosine * sa[j]))
                y = abs(fused(t0[j], sa_sh2[j], cosine * ca_sh[j]))
                d0 += max(x * shrink, (x * ch[j] - y) * shrink + sh[j])
                cosine = _ONE - t1[j] * t1[j]
                shrink = _ONE / (_TWO - cosine)
                x = abs(fused(t1[j], ca2[j], -cosine * sa[j]))
                y = abs(fused(t1[j], sa_sh2[j], cosine * ca_sh[j]))
                d1 += max(x * shrink, (x * ch[j] - y) * shrink + sh[j])
                cosine = _ONE - t2[j] * t2[j]
                shrink = _ONE / (_TWO - cosine)
                x = abs(fused(t2[j], ca2[j], -cosine * sa[j]))
                y = abs(fused(t2[j], sa_sh2[j], cosine * ca_sh[j]))
                d2 += max(x * shrink, (x * ch[j] - y) * shrink + sh[j])
                cosine = _ONE - t3[j] * t3[j]
                shrink = _ONE / (_TWO - cosine)
                x = abs(fused(t3[j], ca2[j], -cosine * sa[j]))
                y = abs(fused(t3[j], sa_sh2[j], cosine * ca_sh[j]))
                d3 += max(x * shrink, (x * ch[j] - y) * shrink + sh[j])
        sums[half] += weight * d0
        sums[half + 1] += weight * d1
        sums[half + 2] += weight * d2
        sums[half + 3] += weight * d3


@inlined
def _box_distances(
    points: FloatArray, region: FloatArray, low: int, high: int, weight: np.float32
) -> EightFloats:
    """Query2Box: outside, and by its weight inside; `region` holds centre and offset."""
    center, offset = region[0, low:high], region[1, low:high]
    p0, p1, p2, p3 = points[0], points[1], points[2], points[3]
    p4, p5, p6, p7 = points[4], points[5], points[6], points[7]
    d0, d1, d2, d3, d4, d5, d6, d7 = (
        _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO,
    )  # fmt: skip
    for j in range(len(center)):
        x = abs(p0[j] - center[j])
        d0 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p1[j] - center[j])
        d1 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p2[j] - center[j])
        d2 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p3[j] - center[j])
        d3 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p4[j] - center[j])
        d4 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p5[j] - center[j])
        d5 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p6[j] - center[j])
        d6 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
        x = abs(p7[j] - center[j])
        d7 += max(_ZERO, x - offset[j]) + weight * abs(min(x, offset[j]))
    return d0, d1, d2, d3, d4, d5, d6, d7


@inlined
def _point_distances(points: FloatArray, region: FloatArray, low: int, high: int) -> EightFloats:
    """The L1 distance."""
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
