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
    """Sine and cosine of angles within [-2, 2], to 2e-6 (1e-7 within [-π/2, π/2]).

    Taylor polynomials of degree 11 and 12: twelve multiply-adds, where the library's
    routines reduce the range first and take several times that.
    """
    z = angle * angle
    sine = angle * (
        1.0
        + z
        * (
            -1.6666667e-1
            + z * (8.3333333e-3 + z * (-1.9841270e-4 + z * (2.7557319e-6 + z * -2.5052108e-8)))
        )
    )
    cosine = 1.0 + z * (
        -0.5
        + z
        * (
            4.1666667e-2
            + z * (-1.3888889e-3 + z * (2.4801587e-5 + z * (-2.7557319e-7 + z * 2.0876757e-9)))
        )
    )
    return sine, cosine


@triton.jit
def hyperbolic_tangent(x):
    """tanh by one exponential; absolute error below 2e-7."""
    decay = tl.exp(-2.0 * tl.abs(x))
    magnitude = (1.0 - decay) / (1.0 + decay)
    return tl.where(x < 0, -magnitude, magnitude)


@triton.jit
def prepare_entity(raw, inverse_range, GEOMETRY: tl.constexpr):
    """(u, v, slope): the entity's coordinates as `term` takes them, and d coordinate / d raw."""
    if GEOMETRY == 0:
        squashed = hyperbolic_tangent(raw * inverse_range)
        u, v = sine_cosine(1.5707963267948966 * squashed)
        slope = (3.141592653589793 * inverse_range) * (1.0 - squashed * squashed)
    else:
        u = raw
        v = raw
        slope = raw * 0.0 + 1.0
    return u, v, slope


@triton.jit
def prepare_region(first, second, GEOMETRY: tl.constexpr):
    """(a, b, c, d): the region's coordinates as `term` takes them."""
    if GEOMETRY == 0:
        a, b = sine_cosine(0.5 * first)
        c, d = sine_cosine(0.5 * second)
    else:
        a = first
        b = first
        c = second
        d = second
    return a, b, c, d


@triton.jit
def term(u, v, a, b, c, d, center_weight, GEOMETRY: tl.constexpr):
    """(distance, its derivative by the entity, by the region's first and second coordinate)."""
    if GEOMETRY == 0:
        # Half-angle form of ConE's distance: with δ = entity − axis and half aperture h,
        # x = |sin δ/2|, y = |cos δ/2|; outside the cone d_o = x·cos(h/2) − y·sin(h/2) and
        # d_i = sin(h/2), inside d_o = 0 and d_i = x. The cosine is negative only where
        # dropout has stretched h beyond π.
        s = u * b - v * a
        o = v * b + u * a
        x = tl.abs(s)
        y = tl.abs(o)
        cosine = tl.abs(d)
        outside = x >= c
        slant = y * cosine + x * c
        distance = tl.where(outside, x * cosine - y * c + center_weight * c, center_weight * x)
        by_entity = 0.5 * tl.where(outside, slant, center_weight * y)
        by_entity = tl.where((s < 0) != (o < 0), -by_entity, by_entity)
        by_first = -by_entity
        by_second = tl.where(outside, 0.5 * (center_weight * cosine - slant), 0.0)
        by_second = tl.where(d < 0, -by_second, by_second)
    elif GEOMETRY == 1:
        gap = u - a
        delta = tl.abs(gap)
        outside = delta > c
        distance = tl.where(outside, delta - c + center_weight * tl.abs(c), center_weight * delta)
        by_delta = tl.where(outside, 1.0, center_weight)
        by_entity = tl.where(gap < 0, -by_delta, tl.where(gap > 0, by_delta, 0.0))
        by_first = -by_entity
        sign = tl.where(c < 0, -center_weight, tl.where(c > 0, center_weight, 0.0))
        by_second = tl.where(outside, sign - 1.0, 0.0)
    elif GEOMETRY == 2:
        gap = u - a
        distance = tl.abs(gap)
        by_entity = tl.where(gap < 0, -1.0, tl.where(gap > 0, 1.0, 0.0))
        by_first = -by_entity
        by_second = gap * 0.0
    else:
        distance = -u * a
        by_entity = -a + u * 0.0
        by_first = -u + a * 0.0
        by_second = u * 0.0 + a * 0.0
    return distance, by_entity, by_first, by_second
