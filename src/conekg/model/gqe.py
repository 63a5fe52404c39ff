"""GQE: a set of entities as one point, a relation as a translation.

Hamilton et al., "Embedding Logical Queries on Knowledge Graphs", NeurIPS 2018, in the
form that the ConE paper compares with: translation, attention over operands, L1 distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import embedding

from conekg.model.config import require_dimensions, require_margin
from conekg.model.interface import QueryModel, Region
from conekg.model.layers import perceptron, uniform_table


@dataclass(frozen=True)
class GqeConfig:
    """Sizes and constants of GQE; the defaults are those of the published runs."""

    dim: int = 800
    """d, the length of the vectors. The ConE paper reports 1600."""
    gamma: float = 24.0
    """γ, the margin of the loss; also sets the scale ρ = (γ + 2) / d of all tables."""

    def __post_init__(self) -> None:
        require_dimensions(self.dim)
        require_margin(self.gamma)


class Gqe(QueryModel):
    """GQE; a region is (point,), [rows, dim]."""

    name: ClassVar[str] = "gqe"
    can_negate: ClassVar[bool] = False

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        config: GqeConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__(num_entities, num_relations, config.dim, config.gamma)
        self.config = config
        dim, rho = config.dim, self.embedding_range
        self.entity = uniform_table(num_entities, dim, -rho, rho, generator)
        self.relation = uniform_table(num_relations, dim, -rho, rho, generator)
        self.attention = perceptron((dim, dim, dim), generator)

    def anchor_of_weights(self, weights: Tensor) -> Region:
        """The entities' own vectors."""
        return (weights,)

    def relation_weights(self, relation_ids: Tensor) -> tuple[Tensor, ...]:
        """(r,), the relations' vectors [rows, dim]."""
        return (embedding(relation_ids, self.relation),)

    def project_by_weights(self, region: Region, relation: tuple[Tensor, ...]) -> Region:
        """q + r."""
        (point,), (translation,) = region, relation
        return (point + translation,)

    def intersect(self, operands: Region) -> Region:
        """Σ_i softmax_i(W2 ReLU(W1 q_i)) ∘ q_i."""
        (point,) = operands
        # Under autocast the network returns bfloat16, too coarse for a softmax.
        weights = torch.softmax(self.attention(point).to(point.dtype), dim=0)
        return ((weights * point).sum(dim=0),)

    def points(self, entity_ids: Tensor) -> Tensor:
        """[..., dim] the entities' vectors."""
        return embedding(entity_ids, self.entity)

    def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] ‖e − q‖₁."""
        (point,) = region
        return (points - point[:, None]).abs().sum(dim=-1)
