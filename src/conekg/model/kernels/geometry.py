"""Distance terms and their derivatives, one dimension at a time, for Triton kernels.

Each geometry says how far one coordinate of an entity is from one coordinate of a
query region, and how that changes with each of the three numbers involved. The
kernels beside this file add these terms up; which geometry they use is a
compile-time constant. Imported only where a GPU, or Triton's interpreter, is at hand.
"""

from __future__ import annotations

import triton
import triton.language as tl

CONE = 0
"""Sector-cones: region (axis, half aperture) in radians, entity angle π·tanh(E/ρ)."""
BOX = 1
"""Boxes: region (centre, offset), entity a point (Query2Box)."""
POINT = 2
"""Points under the L1 norm: region (centre, unused) (GQE)."""
INNER = 3
"""Negated inner products: region (features, unused); BetaE's divergence is one."""


@triton.jit
def sine_cosine(angle):
    """Sine and cosine of angles within [0, π/2], both non-negative, to 2e-7.

    Minimax polynomials of degree 9 and 8, fitted on that interval by Lawson's algorithm: ten
    multiply-adds, where the library's routines reduce the range first and take several times
    that.
    """
    z = angle * angle
    sine = 2.590489369e-06
    sine = sine * z - 1.980089827e-04
    sine = sine * z + 8.332899834e-03
    sine = sine * z - 1.666664764e-01
    sine = sine * z + 9.999999766e-01
    cosine = 2.315407802e-05
    cosine = cosine * z - 1.385371241e-03
    cosine = cosine * z + 4.166358619e-02
    cosine = cosine * z - 4.999990545e-01
    cosine = cosine * z + 9.999999537e-01
    return sine * angle, tl.maximum(cosine, 0.0)


@triton.jit
def hyperbolic_tangent(x):
    """tanh by one exponential; absolute error below 2e-7."""
    decay = tl.exp(-2.0 * tl.abs(x))
    magnitude = (1.0 - decay) / (1.0 + decay)
    return tl.where(x < 0, -magnitude, magnitude)


@triton.jit
def prepare_entity(raw, inverse_range, GEOMETRY: tl.constexpr):
    """(point, slope): the coordinate that `term` takes, and d entity coordinate / d raw.

    A cone's point is half the entity's angle; its slope is that of the whole angle.
    """
    if GEOMETRY == 0:
        squashed = hyperbolic_tangent(raw * inverse_range)
        point = 1.5707963267948966 * squashed
        slope = (3.141592653589793 * inverse_range) * (1.0 - squashed * squashed)
    else:
        point = raw
        slope = raw * 0.0 + 1.0
    return point, slope


@triton.jit
def prepare_region(first, second, GEOMETRY: tl.constexpr):
    """(center, extent, rest, sign): the region's coordinates as `term` takes them.

    For a cone: half the axis, sin(h/2), |cos(h/2)|, and the sign of that cosine, which is
    negative only where dropout has stretched the half aperture h beyond π.
    """
    if GEOMETRY == 0:
        center = 0.5 * first
        half = 0.5 * second
        beyond = half > 1.5707963267948966
        extent, rest = sine_cosine(tl.where(beyond, 3.141592653589793 - half, half))
        sign = tl.where(beyond, -1.0, 1.0)
    else:
        center = first
        extent = second
        rest = second
        sign = second * 0.0 + 1.0
    return center, extent, rest, sign


@triton.jit
def term(point, center, extent, rest, center_weight, GEOMETRY: tl.constexpr):
    """(distance, its derivative by the entity, by the region's second coordinate).

    The derivative by the first coordinate is that by the entity, negated, except for INNER,
    where it is minus the point; the one by the second still wants the region's sign.
    """
    if GEOMETRY == 0:
        # Half-angle form of ConE's distance: with δ = entity − axis and half aperture h,
        # x = |sin δ/2|, y = |cos δ/2|; outside the cone d_o = x·cos(h/2) − y·sin(h/2) and
        # d_i = sin(h/2), inside d_o = 0 and d_i = x.
        gap = point - center
        turn = tl.abs(gap)
        beyond = turn > 1.5707963267948966
        x, y = sine_cosine(tl.where(beyond, 3.141592653589793 - turn, turn))
        outside = x >= extent
        slant = y * rest + x * extent
        weighted = center_weight * extent
        distance = tl.where(outside, x * rest - y * extent + weighted, center_weight * x)
        by_entity = 0.5 * tl.where(outside, slant, center_weight * y)
        by_entity = tl.where((gap < 0) != beyond, -by_entity, by_entity)
        by_second = tl.where(outside, 0.5 * (center_weight * rest - slant), 0.0)
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
def cone_distance(sine, cosine, axis_sine, axis_cosine, extent, rest, center_weight):
    """ConE's distance from ready half-angle sines and cosines: no trigonometry at all.

    The same as `term`, by the addition theorems, for half apertures up to π.
    """
    x = tl.abs(sine * axis_cosine - cosine * axis_sine)
    y = tl.abs(cosine * axis_cosine + sine * axis_sine)
    return tl.maximum(x * rest - y * extent, 0.0) + center_weight * tl.minimum(x, extent)
