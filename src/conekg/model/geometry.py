"""The geometries of distances, and the number by which kernels identify each.

Kernels for CPU and GPU take the plain number. `measure` says which geometry, with which
constants, a model has.
"""

from __future__ import annotations

from enum import IntEnum


class Geometry(IntEnum):
    """How the distance from an entity to a region is measured. Kernels hard-code the numbers."""

    CONE = 0
    """Sector-cones: region (axis, half aperture) in radians, entity angle π·tanh(E/ρ)."""
    BOX = 1
    """Boxes: region (centre, offset), entity a point (Query2Box)."""
    POINT = 2
    """Points under the L1 norm: region (centre, unused) (GQE)."""
    INNER = 3
    """Negated inner products: region (features, unused). BetaE's divergence is one plus a constant
    of each side."""

    @property
    def is_sum(self) -> bool:
        """Whether a distance is a sum of non-negative terms, one per dimension."""
        return self is not Geometry.INNER
