"""Query2Box: a set of entities as an axis-parallel box, a centre and an offset.

Ren, Hu and Leskovec, "Query2box: Reasoning over Knowledge Graphs in Vector Space Using
Box Embeddings", ICLR 2020. The complement of a box is not a box, so the model cannot negate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import embedding

from conekg.model.config import require, require_dimensions, require_margin
from conekg.model.interface import QueryModel, Region
from conekg.model.layers import DeepSet, perceptron, uniform_table


@dataclass(frozen=True)
class BoxConfig:
    """Sizes and constants of Query2Box; the defaults are those of the published runs."""

    dim: int = 400
    """d, the number of dimensions of a box. The ConE paper reports 1600."""
    gamma: float = 24.0
    """γ, the margin of the loss; also sets the scale ρ = (γ + 2) / d of all tables."""
    center_weight: float = 0.02
    """The weight of the distance within the box."""

    def __post_init__(self) -> None:
        require_dimensions(self.dim)
        require_margin(self.gamma)
        require(0 <= self.center_weight < 1, "center_weight", self.center_weight, "in [0, 1)")


class Box(QueryModel):
    """Query2Box; a region is (center, offset), each [rows, dim]."""

    name: ClassVar[str] = "box"
    can_negate: ClassVar[bool] = False
    has_extent: ClassVar[bool] = True

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        config: BoxConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__(num_entities, num_relations, config.dim, config.gamma)
        self.config = config
        dim, rho = config.dim, self.embedding_range
        self.entity = uniform_table(num_entities, dim, -rho, rho, generator)
        self.relation_center = uniform_table(num_relations, dim, -rho, rho, generator)
        # Initialised positive but not constrained: a relation may shrink a box.
        self.relation_offset = uniform_table(num_relations, dim, 0.0, rho, generator)
        self.attention = perceptron((dim, dim, dim), generator)
        self.gate = DeepSet(dim, dim, dim, generator)

    def anchor_of_weights(self, weights: Tensor) -> Region:
        """Boxes of offset zero at the entities' points."""
        return weights, torch.zeros_like(weights)

    def relation_weights(self, relation_ids: Tensor) -> tuple[Tensor, ...]:
        """(c_r, o_r), the relations' centres and offsets, each [rows, dim]."""
        return (
            embedding(relation_ids, self.relation_center),
            embedding(relation_ids, self.relation_offset),
        )

    def project_by_weights(self, region: Region, relation: tuple[Tensor, ...]) -> Region:
        """(c + c_r, o + o_r)."""
        (center, offset), (relation_center, relation_offset) = region, relation
        return center + relation_center, offset + relation_offset

    def intersect(self, operands: Region) -> Region:
        """Attention over centres; min_i o_i ∘ σ(DeepSets(o)) for offsets."""
        center, offset = operands
        # Under autocast the networks return bfloat16, too coarse for softmax and sigmoid.
        weights = torch.softmax(self.attention(center).to(center.dtype), dim=0)
        gate = torch.sigmoid(self.gate(offset).to(offset.dtype))
        return (weights * center).sum(dim=0), offset.amin(dim=0) * gate

    def points(self, entity_ids: Tensor) -> Tensor:
        """[..., dim] the entities' points."""
        return embedding(entity_ids, self.entity)

    def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] ‖relu(δ − o)‖₁ + λ ‖min(δ, o)‖₁ with δ = |e − c|."""
        center, offset = (part[:, None] for part in region)
        difference = (points - center).abs()
        outside = torch.relu(difference - offset).sum(dim=-1)
        # Offsets can be negative. Then min(δ, o) = o counts by its absolute value, as published.
        inside = torch.minimum(difference, offset).abs().sum(dim=-1)
        return outside + self.config.center_weight * inside

    def size(self, region: Region) -> Tensor:
        """[rows] the sum of the box's side lengths."""
        _, offset = region
        return 2.0 * offset.abs().sum(dim=-1)

    def points_inside(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] the share of dimensions with δ ≤ o."""
        center, offset = (part[:, None] for part in region)
        return ((points - center).abs() <= offset).to(points.dtype).mean(dim=-1)
