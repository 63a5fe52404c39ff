"""BetaE: a set of entities as a product of Beta distributions.

Ren and Leskovec, "Beta Embeddings for Multi-Hop Logical Reasoning in Knowledge Graphs",
NeurIPS 2020. Negation takes reciprocals of both parameters, which turns regions of high
density into regions of low density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import embedding

from conekg.model.config import require_dimensions, require_margin
from conekg.model.interface import QueryModel, Region
from conekg.model.layers import apply_to_each, perceptron, uniform_table

SMALLEST, LARGEST = 0.05, 1e9
"""Bounds of α and β, as published."""


@dataclass(frozen=True)
class BetaConfig:
    """Sizes and constants of BetaE; the defaults are those of the published runs."""

    dim: int = 400
    """d, the number of Beta distributions; an entity has 2d parameters."""
    gamma: float = 60.0
    """γ, the margin of the loss; also sets the scale ρ = (γ + 2) / d of all tables."""
    hidden: int = 1600
    """Width of the two hidden layers of the projection network."""

    def __post_init__(self) -> None:
        require_dimensions(self.dim, self.hidden)
        require_margin(self.gamma)


class Beta(QueryModel):
    """BetaE; a region is (alpha, beta), each [rows, dim], positive."""

    name: ClassVar[str] = "beta"
    can_negate: ClassVar[bool] = True

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        config: BetaConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__(num_entities, num_relations, config.dim, config.gamma)
        self.config = config
        dim, rho = config.dim, self.embedding_range
        self.entity = uniform_table(num_entities, 2 * dim, -rho, rho, generator)
        self.relation = uniform_table(num_relations, dim, -rho, rho, generator)
        self.projection = perceptron((3 * dim, config.hidden, config.hidden, 2 * dim), generator)
        self.attention = perceptron((2 * dim, 2 * dim, dim), generator)

    def anchor_of_weights(self, weights: Tensor) -> Region:
        """The entities' own distributions."""
        return regularize(weights).chunk(2, dim=-1)

    def relation_weights(self, relation_ids: Tensor) -> tuple[Tensor, ...]:
        """(r,), the relations' vectors [rows, dim]."""
        return (embedding(relation_ids, self.relation),)

    def project_by_weights(self, region: Region, relation: tuple[Tensor, ...]) -> Region:
        """(α', β') = reg(MLP([α; β; r]))."""
        inputs = torch.cat([*region, *relation], dim=-1)
        # Under autocast the network returns bfloat16, which is too coarse for α and β.
        return regularize(self.projection(inputs).to(inputs.dtype)).chunk(2, dim=-1)

    def intersect(self, operands: Region) -> Region:
        """Weighted means of α and of β with the same attention weights."""
        return self._intersections([operands])[0]

    def intersect_each(self, operands: Sequence[Region]) -> list[Region]:
        """`intersect` for several stacks, whose numbers of operands may differ."""
        if type(self).intersect is not Beta.intersect:  # a subclass overrides it
            return super().intersect_each(operands)
        return self._intersections(operands)

    def _intersections(self, operands: Sequence[Region]) -> list[Region]:
        """The intersection of each stack; the attention network runs once for all of them."""
        inputs = [torch.cat(region, dim=-1) for region in operands]
        weights = [
            torch.softmax(attention.to(stack.dtype), dim=0)
            for attention, stack in zip(apply_to_each(self.attention, inputs), inputs, strict=True)
        ]
        return [
            ((weight * alpha).sum(dim=0), (weight * beta).sum(dim=0))
            for (alpha, beta), weight in zip(operands, weights, strict=True)
        ]

    def negate(self, region: Region) -> Region:
        """(1/α, 1/β)."""
        alpha, beta = region
        return alpha.reciprocal(), beta.reciprocal()

    def points(self, entity_ids: Tensor) -> Tensor:
        """[..., 2·dim] α and β of the entities, concatenated."""
        return regularize(embedding(entity_ids, self.entity))

    def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] Σ_dim KL(entity ‖ query)."""
        alpha, beta = (part[:, None] for part in region)
        entity_alpha, entity_beta = points.chunk(2, dim=-1)
        return divergence(entity_alpha, entity_beta, alpha, beta).sum(dim=-1)

    def scoring_features(self) -> tuple[Tensor, Tensor]:
        """(features [num_entities, 2·dim], constants [num_entities]) in float64.

        KL(entity ‖ query) = query_constant + constants − ⟨[α_q; β_q], features⟩.
        """
        points = regularize(self.entity.double())
        alpha, beta = points.chunk(2, dim=-1)
        total = torch.digamma(alpha + beta)
        features = torch.cat([torch.digamma(alpha) - total, torch.digamma(beta) - total], dim=-1)
        constants = (points * features).sum(dim=-1) - log_beta(alpha, beta).sum(dim=-1)
        return features, constants

    def size(self, region: Region) -> Tensor:
        """[rows] the differential entropy; flatter distributions stand for more answers."""
        return entropy(*region).sum(dim=-1)


def regularize(raw: Tensor) -> Tensor:
    """Parameters of Beta distributions from raw weights, reg(x) = clamp(x + 1, 0.05, 1e9)."""
    return (raw + 1.0).clamp(SMALLEST, LARGEST)


def log_beta(alpha: Tensor, beta: Tensor) -> Tensor:
    """ln B(α, β), the logarithm of the normaliser of a Beta distribution."""
    return torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)


def divergence(alpha: Tensor, beta: Tensor, other_alpha: Tensor, other_beta: Tensor) -> Tensor:
    """KL(Beta(α, β) ‖ Beta(α', β')), elementwise; arguments broadcast."""
    return (
        log_beta(other_alpha, other_beta)
        - log_beta(alpha, beta)
        + (alpha - other_alpha) * torch.digamma(alpha)
        + (beta - other_beta) * torch.digamma(beta)
        + (other_alpha - alpha + other_beta - beta) * torch.digamma(alpha + beta)
    )


def query_constant(alpha: Tensor, beta: Tensor) -> Tensor:
    """[rows] Σ_dim ln B(α_q, β_q), the part of the divergence that all entities share."""
    return log_beta(alpha, beta).sum(dim=-1)


def entropy(alpha: Tensor, beta: Tensor) -> Tensor:
    """The differential entropy of Beta(α, β), elementwise; at most 0, its value for α = β = 1."""
    return (
        log_beta(alpha, beta)
        - (alpha - 1.0) * torch.digamma(alpha)
        - (beta - 1.0) * torch.digamma(beta)
        + (alpha + beta - 2.0) * torch.digamma(alpha + beta)
    )
