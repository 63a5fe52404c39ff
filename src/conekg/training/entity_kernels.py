"""The kernels by which the fused updater trains the entity table, by kind of model.

`EntityKernels` hides whether a model's distance is a sum of terms of raw coordinates (ConE,
Query2Box, GQE) or an inner product with features (BetaE). The updater calls `contrast` for
the loss, sends the gradients back through the operators, and calls `update` twice: for the
rows that anchor no query during the backward pass, for the others after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from conekg.model.beta import Beta
from conekg.model.geometry import Geometry
from conekg.model.interface import QueryModel, Region
from conekg.model.kernels.contrast import Contrast, contrast
from conekg.model.kernels.divergence import (
    divergence_features,
    normalizers,
    update_distributions,
)
from conekg.model.kernels.draw import Drawn
from conekg.model.kernels.entity_update import Occurrences, update_entities
from conekg.model.measure import Measure, measure_of


@dataclass(frozen=True)
class Contrasted:
    """The loss of a batch, and the gradients to be sent back through the operators."""

    result: Contrast
    outputs: tuple[Tensor, ...]
    """The outputs of the operators, and the distance scale if it is learnt."""
    gradients: tuple[Tensor, ...]
    """The gradient of the loss by each of the outputs."""


@dataclass(frozen=True)
class Moments:
    """Adam's moments of the entity table, and its constants for this update."""

    first: Tensor
    second: Tensor
    constants: Tensor
    """[5] as `update_entities` takes them."""


class EntityKernels(Protocol):
    """Loss and update of one entity table."""

    def prepare(self) -> None:
        """Compute what `contrast` needs of the current table.

        Called before each `contrast`, in parallel with the operators.
        """

    def contrast(self, region: Region, drawn: Drawn, temperature: float) -> Contrasted:
        """The loss of regions [batch, dim] against the candidates of each row, with gradients."""

    def update(
        self,
        contrasted: Contrasted,
        occurrences: Occurrences,
        anchor_grads: Tensor | None,
        adam: Moments,
    ) -> None:
        """Apply Adam to rows of the table, in place.

        Without `anchor_grads`, to the rows that anchor no query; with them, to the rows of the
        anchors. They are [rows, width], the gradients by the rows that `embed` took as anchors.
        """


def kernels_of(model: QueryModel) -> EntityKernels | None:
    """The kernels for a model; None if there are none or the model has its own loss."""
    measure = None if model.has_own_loss else measure_of(model)
    if measure is None:
        return None
    if measure.geometry is Geometry.INNER:
        assert isinstance(model, Beta)
        return DivergenceKernels(model)
    return DistanceKernels(model, measure)


class DistanceKernels:
    """For distances that sum over dimensions a term of a raw coordinate and a region's two."""

    def __init__(self, model: QueryModel, measure: Measure) -> None:
        self._model = model
        self._measure = measure
        self._constant_scale = torch.ones(1, device=model.entity.device)

    def prepare(self) -> None:
        """Does nothing: these kernels read the rows of the table directly."""

    def contrast(self, region: Region, drawn: Drawn, temperature: float) -> Contrasted:
        """See `EntityKernels`; a learnt distance scale is an additional output."""
        scale = self._model.distance_scale
        result = contrast(
            self._model.entity.detach(),
            region[0].detach(),
            region[-1].detach(),
            drawn.candidates,
            drawn.weights,
            scale.detach() if isinstance(scale, Tensor) else self._constant_scale * scale,
            None,
            geometry=int(self._measure.geometry),
            gamma=self._model.gamma,
            inverse_range=self._measure.inverse_range,
            center_weight=self._measure.center_weight,
            temperature=temperature,
            positives=drawn.positives,
        )
        gradients = (result.grad_first, result.grad_second)[: len(region)]
        if isinstance(scale, Tensor):
            by_scale = result.grad_scale.reshape(1)
            return Contrasted(result, (*region, scale), (*gradients, by_scale))
        return Contrasted(result, tuple(region), gradients)

    def update(
        self,
        contrasted: Contrasted,
        occurrences: Occurrences,
        anchor_grads: Tensor | None,
        adam: Moments,
    ) -> None:
        """See `EntityKernels`."""
        update_entities(
            self._model.entity.detach(),
            adam.first,
            adam.second,
            occurrences,
            contrasted.result.coefficients,
            contrasted.result.prepared,
            anchor_grads,
            adam.constants,
            geometry=int(self._measure.geometry),
            inverse_range=self._measure.inverse_range,
            center_weight=self._measure.center_weight,
        )


class DivergenceKernels:
    """For BetaE: the features of all entities are recomputed in each update."""

    def __init__(self, model: Beta) -> None:
        self._model = model
        self._features = torch.empty_like(model.entity, requires_grad=False)
        self._constants = torch.empty(model.num_entities, device=model.entity.device)
        self._scale = torch.ones(1, device=model.entity.device)

    def prepare(self) -> None:
        """See `EntityKernels`."""
        divergence_features(self._model.entity.detach(), self._features, self._constants)

    def contrast(self, region: Region, drawn: Drawn, temperature: float) -> Contrasted:
        """See `EntityKernels`."""
        queries = torch.cat([part.detach() for part in region], dim=-1)
        own, by_parameters = normalizers(queries)
        result = contrast(
            self._features,
            queries,
            queries,
            drawn.candidates,
            drawn.weights,
            self._scale,
            self._constants[drawn.candidates] + own[:, None],
            geometry=int(Geometry.INNER),
            gamma=self._model.gamma,
            inverse_range=1.0,
            center_weight=0.0,
            temperature=temperature,
            positives=drawn.positives,
        )
        by_own = result.coefficients.sum(dim=-1, keepdim=True)
        by_alpha, by_beta = (result.grad_first + by_own * by_parameters).chunk(2, dim=-1)
        return Contrasted(result, tuple(region), (by_alpha, by_beta))

    def update(
        self,
        contrasted: Contrasted,
        occurrences: Occurrences,
        anchor_grads: Tensor | None,
        adam: Moments,
    ) -> None:
        """See `EntityKernels`."""
        update_distributions(
            self._model.entity.detach(),
            adam.first,
            adam.second,
            occurrences,
            contrasted.result.coefficients,
            contrasted.result.prepared[0],
            anchor_grads,
            adam.constants,
        )
