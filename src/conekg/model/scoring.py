"""Scoring all entities repeatedly with weights that no longer change.

A `ScoringTable` holds what can be computed from the entity weights alone, so that
evaluating and answering compute it once. It is an explicit object, made when the weights
are final: a model keeps no hidden copies that could become outdated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec

import torch
from torch import Tensor

from conekg.errors import ConeKGError
from conekg.model.beta import Beta, query_constant
from conekg.model.cone import Cone
from conekg.model.geometry import Geometry
from conekg.model.interface import QueryModel, Region
from conekg.model.kernels import scoring
from conekg.model.kernels.processor import on_cache_lines
from conekg.model.measure import Measure, measure_of


class ScoringTable(ABC):
    """Distances and logits of all entities under the weights a model had when this was made."""

    def __init__(self, model: QueryModel) -> None:
        self.num_entities = model.num_entities
        self.gamma = model.gamma
        scale = model.distance_scale
        self._scale = scale.detach().clone() if isinstance(scale, Tensor) else scale

    @abstractmethod
    def distances(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity, in id order; no gradient."""

    def logits(self, region: Region) -> Tensor:
        """[rows, num_entities] γ − scale · distance, without a gradient."""
        # In place, because scores of all entities are the largest tensors in memory.
        return self.distances(region).mul_(-self._scale).add_(self.gamma)


def check_weights_finite(model: QueryModel) -> None:
    """Raise ConeKGError unless all weights are finite; no score would mean anything."""
    spoilt = model.spoilt_weights()
    if spoilt is not None:
        raise ConeKGError(
            f"the model's weights {spoilt!r} are not all finite numbers (NaN or infinity), so it "
            "cannot score anything",
            hint="its training diverged: train again with a lower learning rate",
        )


def scoring_table(model: QueryModel) -> ScoringTable:
    """The fastest table for a model on its device and in its precision.

    Raises ConeKGError unless all weights are finite.
    """
    check_weights_finite(model)
    weights = model.entity
    measure = measure_of(model)
    if measure is not None and measure.geometry is Geometry.INNER:
        assert isinstance(model, Beta)
        return DivergenceTable(model)
    if measure is not None and weights.dtype == torch.float32:
        if weights.device.type == "cpu":
            return CompiledTable(model)
        if weights.device.type == "cuda" and find_spec("triton") is not None:
            return DeviceTable(model)
    return PlainTable(model)


class PlainTable(ScoringTable):
    """The model's own arithmetic, in chunks: any model, any device, any precision.

    It holds no copy of the weights, so it is valid only while they do not change.
    """

    def __init__(self, model: QueryModel) -> None:
        super().__init__(model)
        self._model = model

    @torch.no_grad()
    def distances(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity."""
        return self._model.distance_to_all(region)

    @torch.no_grad()
    def logits(self, region: Region) -> Tensor:
        """[rows, num_entities] the model's own logits, which may depend on more than distance."""
        return self._model.logits_of_all(region)


class CompiledTable(ScoringTable):
    """Cones, boxes and points in float32 on a CPU, by compiled loops over a copied table."""

    def __init__(self, model: QueryModel) -> None:
        super().__init__(model)
        self._measure = _sum_measure(model)
        with torch.no_grad():
            weights = model.entity.detach()
            if self._measure.geometry is Geometry.CONE:
                assert isinstance(model, Cone)
                rows = scoring.cone_table(model.to_angle(weights).numpy())
            else:
                rows = weights.numpy()
            self._table = on_cache_lines(rows)

    def distances(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity."""
        first, second = region[0].detach().numpy(), region[-1].detach().numpy()
        geometry, weight = int(self._measure.geometry), self._measure.center_weight
        threads = torch.get_num_threads()
        return torch.from_numpy(
            scoring.score(geometry, self._table, first, second, weight, threads)
        )


class DeviceTable(ScoringTable):
    """Cones, boxes and points in float32 on a GPU, by one Triton kernel."""

    def __init__(self, model: QueryModel) -> None:
        # Imported here because Triton is not installed on machines without a GPU.
        from conekg.model.kernels import score_all

        super().__init__(model)
        measure = _sum_measure(model)
        self._center_weight = measure.center_weight
        self._columns = score_all.EntityColumns(
            model.entity.detach(),
            geometry=int(measure.geometry),
            inverse_range=measure.inverse_range,
        )

    def distances(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity."""
        first, second = region[0].detach(), region[-1].detach()
        return self._columns.distances(first, second, self._center_weight)


class DivergenceTable(ScoringTable):
    """BetaE on any device, by one matrix product for all entities.

    Up to a constant of the query, the divergence is linear in the query's parameters:
    KL(entity ‖ query) = c_q + c_e − ⟨[α_q; β_q], features_e⟩. A small divergence is then a
    difference of large numbers, so it is taken in float64 and converted to the model's precision.
    """

    def __init__(self, model: Beta) -> None:
        super().__init__(model)
        with torch.no_grad():
            self._features, self._constants = model.scoring_features()
        self._dtype = model.entity.dtype

    @torch.no_grad()
    def distances(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity."""
        parameters = torch.cat(region, dim=-1).to(self._features.dtype)
        alpha, beta = parameters.chunk(2, dim=-1)
        distances = self._constants - parameters @ self._features.t()
        return (distances + query_constant(alpha, beta)[:, None]).to(self._dtype)


def _sum_measure(model: QueryModel) -> Measure:
    """The measure of a model whose distances are sums over dimensions."""
    measure = measure_of(model)
    assert measure is not None, f"no kernels for {model.name}"
    assert measure.geometry.is_sum, f"no sum over dimensions: {model.name}"
    return measure
