"""How a model measures distance: its geometry, and the constants that kernels need with it.

Scoring, searching and training ask here, and nowhere else, which kernels compute a model's
distance, if any do.
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
    """The geometry and constants of a model; None if no kernel computes its distance.

    A subclass of a model has the same measure unless it overrides a method that distances depend
    on (`interface.measures_as`).
    """
    if measures_as(model, Cone):
        return Measure(Geometry.CONE, model.config.center_weight, 1.0 / model.embedding_range)
    if measures_as(model, Box):
        return Measure(Geometry.BOX, model.config.center_weight)
    if measures_as(model, Gqe):
        return Measure(Geometry.POINT)
    # The kernels for divergences take no distance scale.
    if measures_as(model, Beta) and type(model).distance_scale is Beta.distance_scale:
        return Measure(Geometry.INNER)
    return None


def scale_of(model: QueryModel) -> float:
    """The distance scale as a number; a learnt scale at its present value."""
    return float(torch.as_tensor(model.distance_scale).detach())
