"""The geometries in which a distance is measured, and the number that kernels know each by.

Kernels, compiled for a CPU or a GPU, take the plain number; which geometry a model has and
with what constants is `measure`'s to say.
"""

from __future__ import annotations

from enum import IntEnum


class Geometry(IntEnum):
    """How far an entity is from a region. Kernels compare with these very numbers."""

    CONE = 0
    """Sector-cones: region (axis, half aperture) in radians, entity angle π·tanh(E/ρ)."""
    BOX = 1
    """Boxes: region (centre, offset), entity a point (Query2Box)."""
    POINT = 2
    """Points under the L1 norm: region (centre, unused) (GQE)."""
    INNER = 3
    """Negated inner products: region (features, unused); BetaE's divergence is one."""

    @property
    def is_sum(self) -> bool:
        """Whether a distance is a sum of terms of at least zero, one a dimension."""
        return self is not Geometry.INNER
