"""What a query model is: four verbs that map regions to regions, and a distance.

A region is a tuple of tensors whose last axes are (rows, dimensions). Each model
defines what they mean: a cone has an axis and an aperture, a box a centre and an
offset. Unions are rewritten before a model sees a query, and only `embed` walks
plans, so a model never sees a query tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias, TypeGuard, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from conekg.errors import UnsupportedOperatorError

Region: TypeAlias = tuple[Tensor, ...]

MAJORITY = 500 / 800
"""The least share of dimensions that an answer has inside its region (ConE, Appendix E)."""

_CHUNK_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 26}
"""How many (row, entity, dimension) triples are in memory at once when all entities are scored.

On a CPU the temporaries then stay in the cache; on a GPU each kernel has enough to do.
"""


_MEASURING = (
    "anchor",
    "points",
    "to_angle",
    "distance_to_points",
    "distance",
    "distance_to_all",
    "logits",
    "logits_of_all",
    "scoring_features",
)
"""Methods that kernels replace, so that a subclass which overrides one cannot use the kernels.
Not every model has all of them."""


class QueryModel(nn.Module, ABC):
    """Base of all models; angles, boxes and distributions are in the subclasses.

    A subclass says how an entity becomes a point (`points`) and how far a point is from a
    region (`distance_to_points`). This class builds on them the scoring of given candidates and
    of all entities.
    """

    name: ClassVar[str]
    can_negate: ClassVar[bool]
    can_embed_universe: ClassVar[bool] = False
    has_extent: ClassVar[bool] = False
    """Whether regions have an inside, so that `inside_fraction` is defined."""
    needs_facts: ClassVar[bool] = False
    """Whether the model looks up training facts, which its constructor then takes."""
    has_own_loss: ClassVar[bool] = False
    """Whether the model is trained by its own `training_loss` instead of the shared loss."""

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

    entity: nn.Parameter
    """[num_entities, width] raw weights; `points` and `anchor` map them to points and regions."""

    @property
    def device(self) -> torch.device:
        """Where the weights are; queries are embedded and scored there."""
        return self.entity.device

    def anchor(self, entity_ids: Tensor) -> Region:
        """The regions that hold one entity each; `entity_ids` [rows]."""
        return self.anchor_of_weights(embedding(entity_ids, self.entity))

    @abstractmethod
    def anchor_of_weights(self, weights: Tensor) -> Region:
        """The regions that hold one entity each, from the entities' rows of `entity`."""

    def universe(self, count: int) -> Region:
        """The region that holds every entity, `count` rows of it."""
        raise UnsupportedOperatorError(f"{self.name} has no region for the set of all entities")

    def project(self, region: Region, relation_ids: Tensor) -> Region:
        """The regions one relation away; `relation_ids` [rows].

        A model that projects differently overrides `project_by_weights`, which plans call.
        """
        return self.project_by_weights(region, self.relation_weights(relation_ids))

    @abstractmethod
    def relation_weights(self, relation_ids: Tensor) -> tuple[Tensor, ...]:
        """The rows of the given relations, [rows, width] from each table of relation weights."""

    @abstractmethod
    def project_by_weights(self, region: Region, relation: tuple[Tensor, ...]) -> Region:
        """The regions one relation away, from the relations' rows of their tables."""

    @abstractmethod
    def intersect(self, operands: Region) -> Region:
        """The intersections of regions stacked along a leading axis [operands, rows, dim]."""

    def intersect_each(self, operands: Sequence[Region]) -> list[Region]:
        """`intersect` for several stacks, whose numbers of operands may differ.

        A model may override it to run its networks once for all stacks.
        """
        return [self.intersect(region) for region in operands]

    def negate(self, region: Region) -> Region:
        """The complements of the regions."""
        raise UnsupportedOperatorError(f"{self.name} cannot negate")

    @abstractmethod
    def points(self, entity_ids: Tensor) -> Tensor:
        """[*entity_ids.shape, width] the entities as points, in the model's own coordinates.

        Implementations must look rows up by `embedding`, not by indexing. Threads add up the
        gradient of an index in any order, so that runs could not be repeated bit for bit.
        """

    @abstractmethod
    def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] from each region to its points [rows or 1, candidates, width]."""

    def distance(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] from each region to its own candidates.

        `entity_ids` is [rows, candidates], or [1, candidates] when all rows share them.
        """
        return self.distance_to_points(region, self.points(entity_ids))

    def distance_to_all(self, region: Region) -> Tensor:
        """[rows, num_entities] from each region to every entity, in id order."""
        return self._over_all_entities(region, self.distance_to_points)

    @torch.no_grad()
    def spoilt_weights(self) -> str | None:
        """The name of a parameter that holds NaN or infinity, as diverged training leaves; or None.

        Distances do not always show it: the minimum of NaN and a number can be the number in a
        kernel, which then puts the entity close to every region.
        """
        for name, weights in self.named_parameters():
            if weights.numel() and not all(end.isfinite() for end in weights.aminmax()):
                return name
        return None

    @property
    def distance_scale(self) -> Tensor | float:
        """The factor of the distance in a logit."""
        return 1.0

    def logits(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] γ − scale · distance: positive for likely answers.

        Training uses these; ranking uses `logits_of_all`. A model that overrides one of them must
        override the other as well.
        """
        return self.gamma - self.distance_scale * self.distance(region, entity_ids)

    def logits_of_all(self, region: Region) -> Tensor:
        """[rows, num_entities] the logits of every entity, in id order."""
        return self.gamma - self.distance_scale * self.distance_to_all(region)

    def training_loss(self, rows: int, generator: torch.Generator) -> Tensor:
        """The loss, for models with `has_own_loss`, of `rows` examples drawn by `generator`."""
        raise AssertionError(f"{self.name} is trained by the shared loss")

    def size(self, region: Region) -> Tensor:
        """[rows] a number that grows with the number of answers (ConE, Section 5.3)."""
        raise UnsupportedOperatorError(f"{self.name} does not model the number of answers")

    def points_inside(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] the share of dimensions in which a point is inside the region."""
        raise UnsupportedOperatorError(f"a region of {self.name} has no inside")

    def inside_fraction(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] the share of dimensions in which a candidate is inside.

        The paper (Appendix E) counts an entity as an answer if this is at least `MAJORITY`.
        """
        return self.points_inside(region, self.points(entity_ids))

    def inside_fraction_of_all(self, region: Region) -> Tensor:
        """[rows, num_entities] the share of dimensions in which each entity is inside."""
        return self._over_all_entities(region, self.points_inside)

    def _over_all_entities(
        self, region: Region, measure: Callable[[Region, Tensor], Tensor]
    ) -> Tensor:
        """[rows, num_entities] the results of `measure`, by chunks of entities to bound memory."""
        device = region[0].device
        rows = region[0].shape[0]
        budget = _CHUNK_ELEMENTS.get(device.type, _CHUNK_ELEMENTS["cpu"])
        chunk = max(1, budget // (max(1, rows) * self.dim))
        parts = [
            measure(region, self.points(ids[None]))
            for ids in torch.arange(self.num_entities, device=device).split(chunk)
        ]
        return torch.cat(parts, dim=1)


Kind = TypeVar("Kind", bound=QueryModel)


def measures_as(model: QueryModel, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether kernels for `kind` compute this model's distances.

    The model must be a `kind` that overrides none of `_MEASURING`. A subclass that changes only
    operators keeps the kernels.
    """
    return isinstance(model, kind) and all(
        getattr(type(model), name, None) is getattr(kind, name, None) for name in _MEASURING
    )
