"""Distance terms and their derivatives, one dimension at a time, for Triton kernels.

Each geometry says how far one coordinate of an entity is from one coordinate of a
query region, and how that changes with each of the three numbers involved. The
kernels beside this file add these terms up, for a geometry that is a compile-time
constant. They are launched with `enable_fp_fusion`, whose default differs between
versions of Triton, because half of the arithmetic is multiply-adds. This module is
imported only with a GPU or under Triton's interpreter.
"""

from __future__ import annotations

import triton
import triton.language as tl

from conekg.model.geometry import Geometry

CONE, BOX = int(Geometry.CONE), int(Geometry.BOX)
POINT, INNER = int(Geometry.POINT), int(Geometry.INNER)
"""The geometries as plain numbers, which launches of kernels take."""


@triton.jit
def sine_cosine(turns):
    """sin(πu) and cos(πu) for u in [-1/2, 1/2], to 2e-7; the sine has the sign of u.

    Minimax polynomials of degree 9 and 8, fitted by Lawson's algorithm: ten multiply-adds.
    The library's routines reduce the range first and take several times as many.
    """
    z = turns * turns
    sine = 7.722015492e-02
    sine = sine * z - 5.980451895e-01
    sine = sine * z + 2.550031381
    sine = sine * z - 5.167706881
    sine = sine * z + 3.141592580
    cosine = 2.196981874e-01
    cosine = cosine * z - 1.331880940
    cosine = cosine * z + 4.058412060
    cosine = cosine * z - 4.934792869
    cosine = cosine * z + 9.999999537e-01
    return sine * turns, cosine


@triton.jit
def nearest_turn(turns):
    """The same direction within [-1/2, 1/2], for an angle in turns, shares of the circle.

    Adding and subtracting 1.5·2^23 rounds to the nearest whole number in two additions.
    """
    return turns - ((turns + 12582912.0) - 12582912.0)


@triton.jit
def with_sign_of(magnitude, number):
    """A magnitude >= 0 with the sign of `number`, by one logical instruction."""
    sign = number.to(tl.int32, bitcast=True) & -2147483648
    return (magnitude.to(tl.int32, bitcast=True) | sign).to(tl.float32, bitcast=True)


@triton.jit
def prepare_entity(raw, inverse_range, GEOMETRY: tl.constexpr):
    """(point, slope): the coordinate that `term` takes, and its derivative by `raw`.

    For a cone, the point is the entity's angle in turns, θ / 2π = tanh(E/ρ) / 2, minus 1/2. That is
    −s with s = 1 / (1 + exp(2E/ρ)), to 2e-7; the square of a reciprocal root gives s without a
    division. The slope is the derivative of the half angle θ / 2, as `term` takes derivatives.
    """
    if GEOMETRY == 0:
        root = tl.rsqrt(1.0 + tl.exp2(raw * (2.8853900817779268 * inverse_range)))
        share = root * root
        point = -share
        slope = (6.283185307179586 * inverse_range) * share * (1.0 - share)
    else:
        point = raw
        slope = raw * 0.0 + 1.0
    return point, slope


@triton.jit
def prepare_region(first, second, GEOMETRY: tl.constexpr):
    """(center, extent, rest, sign): the region's coordinates as `term` takes them.

    For a cone: the axis in turns minus 1/2, as points are, |sin(h/2)|, |cos(h/2)|, and the sign of
    the derivative of |sin(h/2)| by h. That is −1 for half apertures h beyond π, which dropout can
    cause, and for those below zero, which complements of such cones have.
    """
    if GEOMETRY == 0:
        center = first * 0.15915494309189535 - 0.5
        turns = second * 0.15915494309189535
        wrapped = nearest_turn(turns)
        sine, rest = sine_cosine(wrapped)
        extent = tl.abs(sine)
        sign = tl.where(wrapped < 0, -1.0, 1.0)
    else:
        center = first
        extent = second
        rest = second
        sign = second * 0.0 + 1.0
    return center, extent, rest, sign


@triton.jit
def term(point, center, extent, rest, center_weight, GEOMETRY: tl.constexpr):
    """(distance, its derivative by the entity, its derivative by the region's second coordinate).

    A cone's derivatives are by half angles; callers convert sums of them by `slope` and `by_angle`.
    The derivative with respect to the second coordinate still lacks the factor `sign` of the
    region, which callers apply. The derivative with respect to the first coordinate is minus that
    with respect to the entity; for INNER it is minus the point.
    """
    if GEOMETRY == 0:
        # Half-angle form of ConE's distance: with δ = entity − axis and half aperture h,
        # x = |sin δ/2|, y = |cos δ/2|; outside the cone d_o = x·cos(h/2) − y·sin(h/2) and
        # d_i = sin(h/2), inside d_o = 0 and d_i = x. Both have period 2π in δ.
        gap = nearest_turn(point - center)
        sine, y = sine_cosine(gap)
        x = tl.abs(sine)
        outside = x >= extent
        slant = y * rest + x * extent
        edge = x * rest + center_weight * extent - y * extent
        distance = tl.where(outside, edge, center_weight * x)
        by_entity = tl.where(outside, slant, center_weight * y)
        by_entity = with_sign_of(by_entity, gap)
        by_second = tl.where(outside, center_weight * rest - slant, 0.0)
    elif GEOMETRY == 1:
        gap = point - center
        delta = tl.abs(gap)
        outside = delta > extent
        distance = tl.where(
            outside, delta - extent + center_weight * tl.abs(extent), center_weight * delta
        )
        by_delta = tl.where(outside, 1.0, center_weight)
        by_entity = tl.where(gap < 0, -by_delta, tl.where(gap > 0, by_delta, 0.0))
        sign = tl.where(extent < 0, -center_weight, tl.where(extent > 0, center_weight, 0.0))
        by_second = tl.where(outside, sign - 1.0, 0.0)
    elif GEOMETRY == 2:
        gap = point - center
        distance = tl.abs(gap)
        by_entity = tl.where(gap < 0, -1.0, tl.where(gap > 0, 1.0, 0.0))
        by_second = gap * 0.0
    else:
        distance = -point * center
        by_entity = -center + point * 0.0
        by_second = point * 0.0
    return distance, by_entity, by_second


@triton.jit
def by_angle(gradient, GEOMETRY: tl.constexpr):
    """A sum of `term`'s derivatives by a region's coordinate, for cones by its angle itself."""
    if GEOMETRY == 0:
        gradient = 0.5 * gradient
    return gradient


@triton.jit
def cone_distance(sine, cosine, axis_sine, axis_cosine, extent, rest, center_weight):
    """ConE's distance from given half-angle sines and cosines, without any trigonometry.

    By the addition theorems the same as `term`. `extent` and `rest` must not be negative.
    """
    x = tl.abs(sine * axis_cosine - cosine * axis_sine)
    y = tl.abs(cosine * axis_cosine + sine * axis_sine)
    return tl.maximum(x * rest - y * extent, 0.0) + center_weight * tl.minimum(x, extent)
