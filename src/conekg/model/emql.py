"""EmQL: a set of entities as a centroid and a count-min sketch.

Sun et al., "Faithful Embeddings for Knowledge Base Queries", NeurIPS 2020. The centroid is a
weighted sum of the members' vectors; the sketch records, approximately, which entities they
are. A relation is followed by looking up facts, so the model is built from the training facts.
It cannot negate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import embedding

from conekg.model.config import LARGEST_SIZE, require, require_dimensions, require_size
from conekg.model.facts import FactIndex
from conekg.model.interface import QueryModel, Region, measures_as
from conekg.model.layers import uniform_table

_MISS = -1e6
"""Added to the score of a fact whose subject is not in the sketch, and of such an answer."""
_SCORES_AT_ONCE = 1 << 24
"""How many (row, fact) scores are in memory at once when the best facts are looked up."""


@dataclass(frozen=True)
class EmqlConfig:
    """Sizes and constants of EmQL."""

    dim: int = 64
    """h, the length of the vectors."""
    top_k: int = 256
    """How many facts are kept when a relation is followed."""
    sketch_depth: int = 20
    """How many hash functions a sketch has. More of them let fewer entities in by collision."""
    sketch_width: int = 512
    """Cells of each hash function; at least twice `top_k`, to keep collisions rare."""
    decode_with_sketch: bool = False
    """Whether entities outside the sketch are ranked last. Answers then follow the stored facts;
    predicting missing facts needs it off, as in the comparison of the ConE paper."""

    def __post_init__(self) -> None:
        require_dimensions(self.dim)
        require_size("top_k", self.top_k)
        require_size("sketch_depth", self.sketch_depth)
        require(
            2 * self.top_k <= self.sketch_width <= 2 * LARGEST_SIZE,
            "sketch_width",
            self.sketch_width,
            f"at least twice top_k = {self.top_k}, and two million at most",
        )


class Emql(QueryModel):
    """EmQL; a region is (centroid [rows, dim], sketch [rows, depth · width])."""

    name: ClassVar[str] = "emql"
    can_negate: ClassVar[bool] = False
    needs_facts: ClassVar[bool] = True
    has_own_loss: ClassVar[bool] = True

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        config: EmqlConfig,
        generator: torch.Generator,
        facts: Tensor,
    ) -> None:
        super().__init__(num_entities, num_relations, config.dim, gamma=0.0)
        self.config = config
        # Vectors of length about one: the first scores then differ without saturating the softmax.
        bound = math.sqrt(3.0 / config.dim)
        self.entity = uniform_table(num_entities, config.dim, -bound, bound, generator)
        self.relation = uniform_table(num_relations, config.dim, -bound, bound, generator)
        self.facts = FactIndex(facts, num_entities, num_relations)
        cells = torch.randint(
            config.sketch_width, (num_entities, config.sketch_depth), generator=generator
        )
        first_cell = config.sketch_width * torch.arange(config.sketch_depth)
        self.cells: Tensor
        # [num_entities, depth] the cell of each entity under each hash function.
        self.register_buffer("cells", cells + first_cell)

    def anchor_of_weights(self, weights: Tensor) -> Region:
        """Not defined: the sketch of an entity needs its id, which its vector does not tell."""
        raise AssertionError("EmQL embeds entities by id")

    def anchor(self, entity_ids: Tensor) -> Region:
        """The entities' vectors, and sketches that hold one entity each."""
        members = torch.ones_like(entity_ids, dtype=self.entity.dtype)[:, None]
        return embedding(entity_ids, self.entity), self.sketch(entity_ids[:, None], members)

    def relation_weights(self, relation_ids: Tensor) -> tuple[Tensor, ...]:
        """(e_R,), the relations' vectors [rows, dim]."""
        return (embedding(relation_ids, self.relation),)

    def project_by_weights(self, region: Region, relation: tuple[Tensor, ...]) -> Region:
        """Follow(X, R): the objects of the best facts, weighted by a softmax of the facts' scores.

        A fact (s, r, o) has the key [e_s; e_r; e_o]; its score is the inner product of the key with
        the query [a_X; e_R; 0], divided by √(3h).
        """
        (centroid, sketch), (relation_vector,) = region, relation
        best = self._best_facts(centroid, relation_vector)
        subjects, relations, objects = self.facts.columns(best)
        scores = (
            (embedding(subjects, self.entity) * centroid[:, None]).sum(dim=-1)
            + (embedding(relations, self.relation) * relation_vector[:, None]).sum(dim=-1)
        ) / math.sqrt(3.0 * self.dim)
        member = self.is_member(sketch, subjects)
        # Where every fact misses, the softmax is the same without the shift by `_MISS`, which in
        # float32 would round the scores to sixteenths.
        misses = ~member & member.any(dim=-1, keepdim=True)
        scores = torch.where(misses, scores + _MISS, scores)
        weights = torch.softmax(scores, dim=-1)
        followed = (weights[:, :, None] * embedding(objects, self.entity)).sum(dim=1)
        return followed, self.sketch(objects, weights.detach())

    @torch.no_grad()
    def _best_facts(self, centroid: Tensor, relation_vector: Tensor) -> Tensor:
        """[rows, top_k] the facts with the highest scores; the sketch is not considered."""
        by_subject = _products(centroid, self.entity)
        by_relation = _products(relation_vector, self.relation)
        kept = min(self.config.top_k, self.facts.num_facts)
        chunk = max(1, _SCORES_AT_ONCE // max(1, self.facts.num_facts))
        parts = [
            (entity_scores[:, self.facts.subjects] + relation_scores[:, self.facts.relations]).topk(
                kept, dim=-1
            )[1]
            for entity_scores, relation_scores in zip(
                by_subject.split(chunk), by_relation.split(chunk), strict=True
            )
        ]
        return torch.cat(parts)

    def intersect(self, operands: Region) -> Region:
        """(Σ a_i, min_i b_i)."""
        centroid, sketch = operands
        return centroid.sum(dim=0), sketch.amin(dim=0)

    def unite(self, operands: Region) -> Region:
        """(Σ a_i, max_i b_i), the union of sets stacked as for `intersect`.

        It is part of the published model, and one of the losses trains it. Plans never call it,
        because unions are rewritten before a model sees a query.
        """
        centroid, sketch = operands
        return centroid.sum(dim=0), sketch.amax(dim=0)

    def sketch(self, entity_ids: Tensor, weights: Tensor) -> Tensor:
        """[rows, depth · width] the count-min sketches of weighted sets [rows, members]."""
        rows, members = entity_ids.shape
        depth = self.config.sketch_depth
        empty = weights.new_zeros(rows, depth * self.config.sketch_width)
        cells = self.cells[entity_ids].reshape(rows, members * depth)
        return empty.scatter_add(1, cells, weights.repeat_interleave(depth, dim=1))

    def weight_in(self, sketch: Tensor, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] an upper bound of each entity's weight in its row's sketch."""
        rows, candidates = entity_ids.shape
        cells = self.cells[entity_ids].reshape(rows, candidates * self.config.sketch_depth)
        found = sketch.expand(rows, -1).gather(1, cells)
        return found.reshape(rows, candidates, self.config.sketch_depth).amin(dim=-1)

    def is_member(self, sketch: Tensor, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] whether the row's sketch holds the entity.

        Each of k equal members weighs 1/k, and a set has at most `top_k` members. The threshold is
        half of the weight 1 / `top_k`.
        """
        return self.weight_in(sketch, entity_ids) >= self._least_weight

    @property
    def _least_weight(self) -> float:
        """The weight from which on an entity counts as a member."""
        return 0.5 / self.config.top_k

    def points(self, entity_ids: Tensor) -> Tensor:
        """[..., dim] the entities' vectors."""
        return embedding(entity_ids, self.entity)

    def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] −⟨a, e⟩; points have no ids, so the sketch plays no part."""
        return -(points * region[0][:, None]).sum(dim=-1)

    def distance(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] −⟨a, e⟩; with `decode_with_sketch`, plus 1e6 outside the sketch."""
        distances = super().distance(region, entity_ids)
        if not self.config.decode_with_sketch:
            return distances
        ids = entity_ids.expand(len(region[0]), -1)
        return _behind(distances, self.is_member(region[1], ids))

    def distance_to_all(self, region: Region) -> Tensor:
        """[rows, num_entities] as `distance`; one matrix product unless a subclass changes it."""
        if measures_as(self, Emql):
            distances = -_products(region[0], self.entity)
        else:
            distances = super().distance_to_all(region)
        if not self.config.decode_with_sketch:
            return distances
        return _behind(distances, self._is_member_of_all(region[1]))

    def _is_member_of_all(self, sketch: Tensor) -> Tensor:
        """[rows, num_entities] `is_member` for every entity, in id order."""
        kind = type(self)
        if (kind.is_member, kind.weight_in) != (Emql.is_member, Emql.weight_in):  # overridden
            ids = torch.arange(self.num_entities, device=sketch.device)
            return self.is_member(sketch, ids.expand(len(sketch), -1))
        # One hash function at a time. `weight_in`, which looks up all of them at once, took a
        # gigabyte more for 66 rows of 63,361 entities, and three times as long.
        weights = sketch.new_full((len(sketch), self.num_entities), torch.inf)
        for cells in self.cells.unbind(dim=1):
            weights = torch.minimum(weights, sketch[:, cells])
        return weights >= self._least_weight

    def training_loss(self, rows: int, generator: torch.Generator) -> Tensor:
        """The sum of four softmax losses on `rows` sets drawn from the facts.

        A set holds the objects of one (subject, relation). Each loss trains a centroid to score
        the members of a set above other entities: the set's own centroid; the sum of the
        centroids of two overlapping sets, for their intersection and again for their union; and
        the centroid that `project` gives from the subject and the relation, for the set.
        """
        subjects, relations = self.facts.draw_pairs(rows, generator)
        left = self.facts.members(subjects, relations)
        right = self.facts.members(*self.facts.draw_overlapping(left, generator))
        shared = left & right
        sums = [self._sum(members) for members in (left, right, shared)]
        sizes = [members.sum(dim=1, keepdim=True) for members in (left, right, shared)]
        mean, other, mean_shared = (total / size for total, size in zip(sums, sizes, strict=True))
        mean_united = (sums[0] + sums[1] - sums[2]) / (sizes[0] + sizes[1] - sizes[2])
        followed, _ = self.project(self.anchor(subjects), relations)
        return (
            self._cross_entropy(mean, mean)
            + self._cross_entropy(mean + other, mean_shared)
            + self._cross_entropy(mean + other, mean_united)
            + self._cross_entropy(followed, mean)
        )

    def _sum(self, members: Tensor) -> Tensor:
        """[rows, dim] the sums of the members' vectors; sets are [rows, num_entities] booleans."""
        return _products(members.to(self.entity.dtype), self.entity.t())

    def _cross_entropy(self, centroid: Tensor, target_mean: Tensor) -> Tensor:
        """The mean over sets of −log softmax(⟨a, e⟩), averaged over the members e of each.

        ⟨a, ·⟩ is linear, so the members' average score is the score of their mean.
        """
        average = (centroid * target_mean).sum(dim=-1)
        return (torch.logsumexp(_products(centroid, self.entity), dim=-1) - average).mean()


def _behind(distances: Tensor, member: Tensor) -> Tensor:
    """The distances, in float64, plus 1e6 for entities that are no member.

    In float32 the sums would be rounded to sixteenths, so that most of them would tie.
    """
    exact = distances.double()
    return torch.where(member, exact, exact - _MISS)


def _products(rows: Tensor, table: Tensor) -> Tensor:
    """[rows, table rows] inner products, converted to the rows' precision.

    Under autocast products come in bfloat16. Adding them up in it would make scores tie, and their
    log-sum-exp would be off by as much as one part in 256.
    """
    return (rows @ table.t()).to(rows.dtype)
