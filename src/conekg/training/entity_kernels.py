"""What the fused updater does with the entity table, by kind of model.

`EntityKernels` hides whether a model's distance is a sum of terms of raw coordinates
(ConE, Query2Box, GQE) or an inner product with features (BetaE): the updater contrasts
a batch, sends the gradients back through the operators, and lets the kernels move
every row of the table: meanwhile those that need nothing from there, then the others.
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
    """The contrast of a batch, ready to be sent back through the operators."""

    result: Contrast
    outputs: tuple[Tensor, ...]
    """What the operators put out, and learnt scales: where gradients enter."""
    gradients: tuple[Tensor, ...]
    """By each output."""


@dataclass(frozen=True)
class Moments:
    """Adam's state of the entity table and its constants of this update."""

    first: Tensor
    second: Tensor
    constants: Tensor
    """[5] as `update_entities` takes them."""


class EntityKernels(Protocol):
    """Loss and update of one entity table."""

    def prepare(self) -> None:
        """Make what `contrast` needs of the table as it is now; before each, beside operators."""

    def contrast(self, region: Region, drawn: Drawn, temperature: float) -> Contrasted:
        """The loss of a batch of regions [batch, dim] against its candidates, and gradients."""

    def update(
        self,
        contrasted: Contrasted,
        occurrences: Occurrences,
        anchor_grads: Tensor | None,
        adam: Moments,
    ) -> None:
        """Move rows of the table by what candidates and anchors want of them.

        Without `anchor_grads` the rows that are no anchors, with them [rows, width] the others.
        """


def kernels_of(model: QueryModel) -> EntityKernels | None:
    """The kernels for a model; None where there are none, or where its own loss is to be used."""
    measure = None if model.has_own_loss else measure_of(model)
    if measure is None:
        return None
    if measure.geometry is Geometry.INNER:
        assert isinstance(model, Beta)
        return DivergenceKernels(model)
    return DistanceKernels(model, measure)


class DistanceKernels:
    """For distances that are sums of terms of a raw coordinate and a region's two."""

    def __init__(self, model: QueryModel, measure: Measure) -> None:
        self._model = model
        self._measure = measure
        self._constant_scale = torch.ones(1, device=model.entity.device)

    def prepare(self) -> None:
        """Nothing: rows are used as they are."""

    def contrast(self, region: Region, drawn: Drawn, temperature: float) -> Contrasted:
        """See `EntityKernels`; a learnt distance scale is one more output."""
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
    """For BetaE: features of every entity are made anew in each update."""

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
