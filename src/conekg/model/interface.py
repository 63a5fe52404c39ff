"""What a query model is: four verbs that map regions to regions, and a distance.

A region is a tuple of tensors whose last axes are (rows, dimensions); what its
components mean is the model's business (a cone has an axis and an aperture, a
box a centre and an offset). Unions are rewritten away before a model sees a
query, and `embed` alone walks plans, so a model never sees a tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from conekg.errors import UnsupportedOperatorError

Region: TypeAlias = tuple[Tensor, ...]


class QueryModel(nn.Module, ABC):
    """Base of all models; angles, boxes and distributions are in the subclasses."""

    name: ClassVar[str]
    can_negate: ClassVar[bool]
    can_embed_universe: ClassVar[bool] = False

    def __init__(self, num_entities: int, num_relations: int, dim: int, gamma: float) -> None:
        super().__init__()
        self.num_entities = num_entities
        self.num_relations = num_relations
        self.dim = dim
        self.gamma = gamma

    @property
    def embedding_range(self) -> float:
        """ρ = (γ + 2) / d, the half-width of the uniform initialisation of every table."""
        return (self.gamma + 2.0) / self.dim

    @abstractmethod
    def anchor(self, entity_ids: Tensor) -> Region:
        """The regions that hold one entity each; `entity_ids` [rows]."""

    def universe(self, count: int) -> Region:
        """The region that holds every entity, `count` rows of it."""
        raise UnsupportedOperatorError(f"{self.name} has no region for the set of all entities")

    @abstractmethod
    def project(self, region: Region, relation_ids: Tensor) -> Region:
        """The regions one relation away; `relation_ids` [rows]."""

    @abstractmethod
    def intersect(self, operands: Region) -> Region:
        """The intersections of regions stacked along a leading axis [operands, rows, dim]."""

    def negate(self, region: Region) -> Region:
        """The complements of the regions."""
        raise UnsupportedOperatorError(f"{self.name} cannot negate")

    @abstractmethod
    def distance(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] from each region to its own candidates, `entity_ids` of that size."""

    def distance_to_all(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity, in id order."""
        ids = torch.arange(self.num_entities, device=region[0].device)
        return self.distance(region, ids.expand(region[0].shape[0], -1))

    @property
    def distance_scale(self) -> Tensor | float:
        """What the distance is multiplied with before it is compared with the margin."""
        return 1.0

    def logits(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] γ − scale · distance: positive for likely answers."""
        return self.gamma - self.distance_scale * self.distance(region, entity_ids)

    def logits_of_all(self, region: Region) -> Tensor:
        """[rows, num_entities] the logits of every entity, in id order."""
        return self.gamma - self.distance_scale * self.distance_to_all(region)

    def size(self, region: Region) -> Tensor:
        """[rows] a number that grows with the number of answers; the paper's Section 5.3."""
        raise UnsupportedOperatorError(f"{self.name} does not model the number of answers")
