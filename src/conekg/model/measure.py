"""How a model measures distance: its geometry, and the constants that kernels need with it.

The one place that asks whose distance a model has. Who scores, searches or trains with
kernels asks here which of them are right for a model, if any.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from conekg.model.beta import Beta
from conekg.model.box import Box
from conekg.model.cone import Cone
from conekg.model.geometry import Geometry
from conekg.model.gqe import Gqe
from conekg.model.interface import QueryModel, measures_as


@dataclass(frozen=True)
class Measure:
    """A geometry and its constants, as kernels take them."""

    geometry: Geometry
    center_weight: float = 0.0
    """λ, the weight of the distance within a cone or a box."""
    inverse_range: float = 1.0
    """1 / ρ, by which raw weights of cones are multiplied before they become angles."""


def measure_of(model: QueryModel) -> Measure | None:
    """How a model measures; None where no kernel does as it does.

    A model derived from another measures as that one unless it changes what its distances
    come from (`interface.measures_as`).
    """
    if measures_as(model, Cone):
        return Measure(Geometry.CONE, model.config.center_weight, 1.0 / model.embedding_range)
    if measures_as(model, Box):
        return Measure(Geometry.BOX, model.config.center_weight)
    if measures_as(model, Gqe):
        return Measure(Geometry.POINT)
    # The kernels of divergences know no scale.
    if measures_as(model, Beta) and type(model).distance_scale is Beta.distance_scale:
        return Measure(Geometry.INNER)
    return None


def scale_of(model: QueryModel) -> float:
    """What the distance is multiplied with in a score, as a number; learnt ones as they are now."""
    return float(torch.as_tensor(model.distance_scale).detach())
