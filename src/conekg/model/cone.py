"""ConE: a set of entities as a product of sector-cones, one per dimension.

Zhang et al., "ConE: Cone Embeddings for Multi-Hop Reasoning over Knowledge Graphs",
NeurIPS 2021. A cone has an axis in [-π, π) and an aperture θ_ap in [0, 2π]. This module
stores the *half* aperture h = θ_ap / 2 in [0, π], which most formulas need. Comments say
where a formula follows the authors' code rather than the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from conekg.model.config import require, require_choice, require_dimensions, require_margin
from conekg.model.interface import QueryModel, Region, measures_as
from conekg.model.kernels.candidates import cone_candidate_distance
from conekg.model.layers import DeepSet, apply_to_each, perceptron, uniform_table

Arctangent: TypeAlias = Literal["exact", "published"]
Projection: TypeAlias = Literal["published", "rotation"]

_SHORTEST_AVERAGE = 1e-3
"""Length of an average of unit vectors below which `angle` passes no gradient. It is also the
smallest |x| of `published_angle`."""
_APERTURE_SLOPE = 2.0
"""The slope s of h → (π/2)(tanh(s(2h/π − 1)) + 1), the map of half apertures under `rotation`
before relation and network change them. Its derivative is at most s. With s = 2 it maps h = 0 to
(π/2)(1 − tanh 2) = 0.06 and h = π to π − 0.06."""


@dataclass(frozen=True)
class ConeConfig:
    """Sizes and constants of ConE; the defaults are those of FB15k-237."""

    dim: int = 800
    """d, the number of cones that make up a region."""
    gamma: float = 30.0
    """γ, the margin of the loss; also sets the scale ρ = (γ + 2) / d of all tables."""
    hidden: int = 1600
    """Width of the two hidden layers of the projection network."""
    dropout: float = 0.1
    """Probability that an operand's half aperture is zeroed in an intersection, in training."""
    center_weight: float = 0.02
    """λ, the weight of the inside distance."""
    axis_scale: float = 1.0
    """λ1, the slope of the map from network outputs to axes (`rotation`: to turns of axes)."""
    aperture_scale: float = 2.0
    """λ2, the slope of the map from network outputs to apertures."""
    projection: Projection = "published"
    """How a relation changes a cone. With `published`, the network computes the new cone. With
    `rotation`, the relation turns the axis and shifts the aperture, and the network, whose output
    starts at zero, corrects both. Relations then compose along paths from the first training step
    on, so that far fewer steps are needed."""
    turned_share: float = 1.0
    """With `rotation`, the share of the d cones that relations turn, at least one cone; the network
    computes the others, as with `published`. Turned cones learn single links fastest; computed ones
    are better at long paths and at negation. A distance sums over both kinds."""
    initial_scale: float = 0.5
    """The distance scale m starts at this multiple of ρ. With the published 0.5, all logits start
    far above zero, where training at a large learning rate saturates. Values that centre them are
    about 3, and about 1.2 with `rotation`, whose cones start narrow."""
    arctangent: Arctangent = "exact"
    """How an average direction becomes an angle: `exact` is atan2; `published` first replaces
    every |x| < 1e-3 by +1e-3, which flips the sign of small negative x."""

    def __post_init__(self) -> None:
        require_dimensions(self.dim, self.hidden)
        require_margin(self.gamma)
        require(0 <= self.dropout < 1, "dropout", self.dropout, "at least 0 and below 1")
        require(0 <= self.center_weight < 1, "center_weight", self.center_weight, "in [0, 1)")
        require(self.axis_scale > 0, "axis_scale", self.axis_scale, "a positive number")
        require(self.aperture_scale > 0, "aperture_scale", self.aperture_scale, "a positive number")
        require(self.initial_scale > 0, "initial_scale", self.initial_scale, "a positive number")
        require_choice("arctangent", self.arctangent, Arctangent)
        require_choice("projection", self.projection, Projection)
        require(0 < self.turned_share <= 1, "turned_share", self.turned_share, "in (0, 1]")
        require(
            self.turned_share == 1 or self.projection == "rotation",
            "turned_share",
            self.turned_share,
            f"1, its default, where projection is {self.projection!r}, which turns no cone",
        )


class Cone(QueryModel):
    """ConE; a region is (axis, half_aperture), each [rows, dim], in radians."""

    name: ClassVar[str] = "cone"
    can_negate: ClassVar[bool] = True
    can_embed_universe: ClassVar[bool] = True
    has_extent: ClassVar[bool] = True
    turned: Tensor
    """[dim] 1 for cones that relations turn, 0 for cones that the network computes."""

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        config: ConeConfig,
        generator: torch.Generator,
    ) -> None:
        super().__init__(num_entities, num_relations, config.dim, config.gamma)
        self.config = config
        dim, rho = config.dim, self.embedding_range
        self.entity = uniform_table(num_entities, dim, -rho, rho, generator)
        self.relation_axis = uniform_table(num_relations, dim, -rho, rho, generator)
        self.relation_aperture = uniform_table(num_relations, dim, -rho, rho, generator)
        self.projection = perceptron((2 * dim, config.hidden, config.hidden, 2 * dim), generator)
        turned = max(1, round(config.turned_share * dim)) if config.projection == "rotation" else 0
        self.register_buffer("turned", (torch.arange(dim) < turned).float(), persistent=False)
        with torch.no_grad():
            for parameter in self.projection[-1].parameters():
                for outputs in parameter.chunk(2):  # the outputs for axes, then for apertures
                    outputs[:turned] = 0.0
        # One hidden layer of width d, as published; the paper's appendix says three of 1600.
        self.attention = perceptron((2 * dim, dim, dim), generator)
        self.gate = DeepSet(2 * dim, dim, dim, generator)
        self.scale = nn.Parameter(torch.full((1,), config.initial_scale * rho))
        self.dropout_generator: torch.Generator | None = None
        """The generator that dropout draws from; None means the default generator of the device."""

    @property
    def distance_scale(self) -> Tensor:
        """[1] m, the learnt factor of the distance, in the authors' code but not in the paper."""
        return self.scale

    def to_angle(self, weight: Tensor) -> Tensor:
        """Angles π·tanh(w / ρ) in (-π, π) from raw weights of any shape."""
        return math.pi * torch.tanh(weight / self.embedding_range)

    def anchor_of_weights(self, weights: Tensor) -> Region:
        """Cones of aperture zero at the entities' axes (ConE, Section 4.1)."""
        axis = self.to_angle(weights)
        return axis, torch.zeros_like(axis)

    def universe(self, count: int) -> Region:
        """Cones of half aperture π, the full circle; their axis 0 is arbitrary (ConE, App. F.1)."""
        axis = self.entity.new_zeros(count, self.dim)
        return axis, torch.full_like(axis, math.pi)

    def relation_weights(self, relation_ids: Tensor) -> tuple[Tensor, ...]:
        """Raw weights (axis, aperture) of the relations, each [rows, dim]."""
        return (
            embedding(relation_ids, self.relation_axis),
            embedding(relation_ids, self.relation_aperture),
        )

    def project_by_weights(self, region: Region, relation: tuple[Tensor, ...]) -> Region:
        """f_r(V) = g(MLP([axis + axis_r ; h + h_r])) (ConE, Section 4.2, Eq. 3).

        `rotation` departs from the paper: for the cones that relations turn, the relation rotates
        the axis, as in RotatE (Sun et al., 2019), and shifts the aperture by its raw weight w_r;
        the network's output x corrects both:
        θ_ax = wrap(axis + axis_r + π tanh(λ1 x)), h' = π/2 (tanh(2(2h/π − 1) + w_r/ρ + λ2 x) + 1).
        """
        (axis, half_aperture), (turn, opening) = region, relation
        relation_axis = self.to_angle(turn)
        # The same map as for axes, as published, so a relation's aperture may be negative.
        moved = torch.cat([axis + relation_axis, half_aperture + self.to_angle(opening)], dim=-1)
        # Under autocast the network returns bfloat16, which is too coarse for angles.
        raw_axis, raw_aperture = self.projection(moved).to(moved.dtype).chunk(2, dim=-1)
        # ConE, Section 4.2, g: θ_ax = π tanh(λ1 x), θ_ap = π tanh(λ2 x) + π, halved.
        new_axis = math.pi * torch.tanh(self.config.axis_scale * raw_axis)
        level = self.config.aperture_scale * raw_aperture
        if self.config.projection == "rotation":
            new_axis = wrap(self.turned * (axis + relation_axis) + new_axis)
            # Linear in h: the inverse of the map below would keep h, but is infinite at h = 0.
            kept = _APERTURE_SLOPE * (2.0 / math.pi * half_aperture - 1.0)
            level = self.turned * (kept + opening / self.embedding_range) + level
        return new_axis, 0.5 * math.pi * (torch.tanh(level) + 1.0)

    def intersect(self, operands: Region) -> Region:
        """(SemanticAverage, CardMin) of cones [operands, rows, dim] (ConE, Section 4.2)."""
        return self._intersections([operands])[0]

    def intersect_each(self, operands: Sequence[Region]) -> list[Region]:
        """`intersect` for several stacks, whose numbers of operands may differ."""
        if type(self).intersect is not Cone.intersect:  # a subclass overrides it
            return super().intersect_each(operands)
        return self._intersections(operands)

    def _intersections(self, operands: Sequence[Region]) -> list[Region]:
        """The intersection of each stack; each network runs once for all of them."""
        # Lower and upper bound of every cone, [θ_ax − θ_ap/2 ; θ_ax + θ_ap/2].
        bounds = [torch.cat([axis - half, axis + half], dim=-1) for axis, half in operands]
        attention = apply_to_each(self.attention, bounds)
        gates = self.gate.of_each(bounds)
        return [
            (self._semantic_average(axis, weight), self._card_min(half, gate))
            for (axis, half), weight, gate in zip(operands, attention, gates, strict=True)
        ]

    def _semantic_average(self, axis: Tensor, attention: Tensor) -> Tensor:
        """[rows, dim] the direction of the weighted mean of the axes' unit vectors."""
        weights = torch.softmax(attention.to(axis.dtype), dim=0)
        x = (weights * torch.cos(axis)).sum(dim=0)
        y = (weights * torch.sin(axis)).sum(dim=0)
        return published_angle(x, y) if self.config.arctangent == "published" else angle(x, y)

    def _card_min(self, half_aperture: Tensor, gate: Tensor) -> Tensor:
        """[rows, dim] min_i h_i · σ(DeepSets(bounds)): never wider than any operand."""
        narrowest = self._drop(half_aperture).amin(dim=0)
        return narrowest * torch.sigmoid(gate.to(half_aperture.dtype))

    def _drop(self, half_aperture: Tensor) -> Tensor:
        """Half apertures with dropout when training: zeroed, or grown by 1 / (1 − p)."""
        probability = self.config.dropout
        if not self.training or probability == 0.0:
            return half_aperture
        kept = torch.empty_like(half_aperture).bernoulli_(
            1.0 - probability, generator=self.dropout_generator
        )
        return half_aperture * kept / (1.0 - probability)

    def negate(self, region: Region) -> Region:
        """Opposite axes, θ_ap' = 2π − θ_ap (ConE, Section 4.2, complement)."""
        axis, half_aperture = region
        return torch.where(axis >= 0, axis - math.pi, axis + math.pi), math.pi - half_aperture

    def points(self, entity_ids: Tensor) -> Tensor:
        """[..., dim] the entities' axes."""
        return self.to_angle(embedding(entity_ids, self.entity))

    def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] d_con = d_o + λ d_i (ConE, Section 4.3)."""
        axis, half_aperture = (part[:, None] for part in region)
        return cone_distance(points, axis, half_aperture, self.config.center_weight)

    def distance(self, region: Region, entity_ids: Tensor) -> Tensor:
        """[rows, candidates] as in the base class.

        Compiled loops compute it in float32 on a CPU if each row has its own candidates.
        """
        axis, half_aperture = region
        is_compiled = (
            axis.device.type == "cpu" and axis.dtype == torch.float32 and measures_as(self, Cone)
        )
        if not is_compiled or entity_ids.shape[0] != axis.shape[0]:
            return super().distance(region, entity_ids)
        if entity_ids.numel() < self.num_entities:  # only the angles that are needed
            distinct, places = entity_ids.unique(return_inverse=True)
            angles = self.points(distinct)
        else:
            angles, places = self.to_angle(self.entity), entity_ids
        return cone_candidate_distance(
            angles, places, axis, half_aperture, self.config.center_weight
        )

    def size(self, region: Region) -> Tensor:
        """[rows] ‖θ_ap‖₁, which grows with the number of answers (ConE, Section 5.3)."""
        _, half_aperture = region
        return (2.0 * half_aperture).abs().sum(dim=-1)

    def points_inside(self, region: Region, points: Tensor) -> Tensor:
        """[rows, candidates] the share of cones that hold the point (ConE, Appendix E)."""
        axis, half_aperture = (part[:, None] for part in region)
        inside = torch.sin((points - axis) / 2).abs() <= torch.sin(half_aperture / 2).abs()
        return inside.to(points.dtype).mean(dim=-1)


def cone_distance(
    point: Tensor, axis: Tensor, half_aperture: Tensor, center_weight: float
) -> Tensor:
    """Σ_dim (d_out + λ d_in), zero on the axis; the arguments broadcast against each other.

    With δ = point − axis the published distance is d_out = min(|sin((δ+h)/2)|, |sin((δ−h)/2)|),
    zero where |sin(δ/2)| < |sin(h/2)|, and d_in = min(|sin(δ/2)|, |sin(h/2)|). (The paper
    prints sin(·)/2, under which opposite angles would coincide; sin(·/2) is meant.) By the
    addition theorems d_out = max(0, |sin δ/2 cos h/2| − |cos δ/2 sin h/2|), which needs no
    selection and subtracts no near-equal angles. The absolute values of sin h/2 and cos h/2
    keep it equal to the published form for h beyond π, which dropout can cause.
    """
    half_difference = (point - axis) / 2
    x, y = torch.sin(half_difference).abs(), torch.cos(half_difference).abs()
    sine, cosine = torch.sin(half_aperture / 2).abs(), torch.cos(half_aperture / 2).abs()
    outside = torch.relu(x * cosine - y * sine)
    inside = torch.minimum(x, sine)
    return (outside + center_weight * inside).sum(dim=-1)


def wrap(angle: Tensor) -> Tensor:
    """The same direction in [-π, π), up to rounding; the gradient is 1 everywhere."""
    return torch.remainder(angle + math.pi, 2.0 * math.pi) - math.pi


def angle(x: Tensor, y: Tensor) -> Tensor:
    """The angle of (x, y) in [-π, π], with a gradient that is finite everywhere.

    The gradient grows like the inverse of the vector's length. Where the length is below
    1e-3 no gradient flows, which bounds it by 1e3 as the published form does; the value is
    exact everywhere, and 0 for the zero vector.
    """
    short = x.detach().square() + y.detach().square() < _SHORTEST_AVERAGE**2
    return torch.atan2(torch.where(short, y.detach(), y), torch.where(short, x.detach(), x))


def published_angle(x: Tensor, y: Tensor) -> Tensor:
    """The angle as the authors compute it: |x| < 1e-3 becomes +1e-3, then arctan(y / x)."""
    x = torch.where(x.abs() < _SHORTEST_AVERAGE, torch.full_like(x, _SHORTEST_AVERAGE), x)
    half_turn = torch.full_like(x, math.pi)
    turn = torch.where(y >= 0, half_turn, -half_turn)
    return torch.atan(y / x) + torch.where(x < 0, turn, torch.zeros_like(x))
