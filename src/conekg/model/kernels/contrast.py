"""The contrastive loss of a batch and its gradients, each entity row read once.

`contrast` fuses gathering, distance, logit, loss and the gradients of the query
regions into one kernel: a logit's gradient depends on that logit alone, so a row
can be used for both before the next is fetched. What the entities need for their
own gradient is one number a candidate, kept for `entity_update`.
The loss is that of `training.loss.negative_sampling_loss`; `plain_contrast` is the
reference the tests compare with.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import logsigmoid

from conekg.model.kernels.geometry import CONE, by_angle, prepare_entity, prepare_region, term


@dataclass(frozen=True)
class Contrast:
    """Loss sums and gradients of one batch, and what the entities' own gradients need."""

    loss: Tensor
    """[2] the weighted loss of the positives and of the negatives; the loss is their mean."""
    grad_first: Tensor
    """[batch, dim] by the region's first component."""
    grad_second: Tensor
    """[batch, dim] by its second."""
    grad_scale: Tensor
    """[] by the distance scale."""
    coefficients: Tensor
    """[batch, candidates] by each distance."""
    prepared: tuple[Tensor, Tensor, Tensor]
    """[batch, dim] each: the regions' center, extent and rest, as `geometry.term` takes them."""


def contrast(
    entities: Tensor,
    first: Tensor,
    second: Tensor,
    candidates: Tensor,
    weights: Tensor,
    scale: Tensor,
    offsets: Tensor | None,
    *,
    geometry: int,
    gamma: float,
    inverse_range: float,
    center_weight: float,
    temperature: float = 0.0,
    num_warps: int = 4,
    tile: int = 1,
) -> Contrast:
    """The loss of a batch, its gradients, and each distance's coefficient.

    `entities` [num_entities, dim] raw rows; `first`, `second` [batch, dim] the regions;
    `candidates` [batch, 1 + negatives] ids, the positive first; `weights` [batch] sum to one;
    `scale` [1]; `offsets` [batch, candidates] are added to the distances, for models whose
    distances are not sums over dimensions alone. With a `temperature` t, a negative counts by
    softmax(t · logit) instead of all alike. `tile` negatives are worked on at once.
    """
    batch, num_candidates = candidates.shape
    dim = entities.shape[1]
    grad_first = torch.empty_like(first)
    grad_second = torch.empty_like(second)
    coefficients = torch.empty_like(candidates, dtype=torch.float32)
    sums = torch.empty(batch, 3, device=first.device)
    prepared = (first, second, second)
    if geometry == CONE:
        center, extent, rest = torch.empty(3, batch, dim, device=first.device)
        prepared = (center, extent, rest)
    _contrast_kernel[(batch,)](
        entities,
        first,
        second,
        candidates,
        weights,
        scale,
        coefficients if offsets is None else offsets,
        coefficients,
        grad_first,
        grad_second,
        *prepared,
        sums,
        gamma,
        inverse_range,
        center_weight,
        temperature,
        num_candidates,
        dim,
        GEOMETRY=geometry,
        HAS_OFFSETS=offsets is not None,
        ADVERSARIAL=temperature > 0,
        BLOCK_DIM=triton.next_power_of_2(dim),
        BLOCK_CANDIDATES=triton.next_power_of_2(num_candidates),
        TILE=tile,
        num_warps=num_warps,
    )
    totals = sums.sum(dim=0)
    return Contrast(totals[:2], grad_first, grad_second, totals[2], coefficients, prepared)


@triton.jit
def _doubt(logit):
    """(−log σ(−logit), σ(logit)): what a negative of this logit costs, and how steeply."""
    decay = tl.exp(-tl.abs(logit))
    surprise = tl.maximum(logit, 0.0) + tl.log(1.0 + decay)
    return surprise, tl.where(logit >= 0, 1.0, decay) / (1.0 + decay)


@triton.jit
def _contrast_kernel(
    entity_ptr,
    first_ptr,
    second_ptr,
    candidate_ptr,
    weight_ptr,
    scale_ptr,
    offset_ptr,
    coefficient_ptr,
    grad_first_ptr,
    grad_second_ptr,
    center_ptr,
    extent_ptr,
    rest_ptr,
    sum_ptr,
    gamma,
    inverse_range,
    center_weight,
    temperature,
    num_candidates,
    dim,
    GEOMETRY: tl.constexpr,
    HAS_OFFSETS: tl.constexpr,
    ADVERSARIAL: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
    BLOCK_CANDIDATES: tl.constexpr,
    TILE: tl.constexpr,
):
    query = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK_DIM)
    real = column < dim
    here = query * dim + column
    first = tl.load(first_ptr + here, mask=real, other=0.0)
    second = tl.load(second_ptr + here, mask=real, other=0.0)
    center, extent, rest, sign = prepare_region(first, second, GEOMETRY)
    if GEOMETRY == 0:
        rest = tl.where(real, rest, 0.0)  # columns beyond `dim` are at no distance
        tl.store(center_ptr + here, center, mask=real)
        tl.store(extent_ptr + here, extent, mask=real)
        tl.store(rest_ptr + here, rest, mask=real)
    scale = tl.load(scale_ptr)
    weight = tl.load(weight_ptr + query) * 0.5
    candidate_ptr += query * num_candidates
    coefficient_ptr += query * num_candidates
    offset_ptr += query * num_candidates
    # Sums over the negatives, each counting by its share; divided by `total` at the end.
    grad_first = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    grad_second = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    negative_loss = 0.0
    grad_scale = 0.0
    total = 0.0
    peak = -float("inf")
    lane = tl.arange(0, TILE)
    # Padding reads the positive, which is wanted in the end.
    place = tl.where(lane + 1 < num_candidates, lane + 1, 0)
    entity = tl.load(candidate_ptr + place).to(tl.int64)
    upcoming = tl.load(
        entity_ptr + entity[:, None] * dim + column[None, :], mask=real[None, :], other=0.0
    )
    for start in range(1, num_candidates, TILE):
        raw = upcoming
        # The next rows are on their way while these are worked on.
        place = start + TILE + lane
        place = tl.where(place < num_candidates, place, 0)
        entity = tl.load(candidate_ptr + place).to(tl.int64)
        upcoming = tl.load(
            entity_ptr + entity[:, None] * dim + column[None, :], mask=real[None, :], other=0.0
        )
        point, _ = prepare_entity(raw, inverse_range, GEOMETRY)
        parts, by_entity, by_second = term(
            point, center[None, :], extent[None, :], rest[None, :], center_weight, GEOMETRY
        )
        distance = tl.sum(parts, axis=1)
        place = start + lane
        live = place < num_candidates
        if HAS_OFFSETS:
            distance += tl.load(offset_ptr + place, mask=live, other=0.0)
        logit = gamma - scale * distance
        tl.store(coefficient_ptr + place, logit, mask=live)
        surprise, doubt = _doubt(logit)
        if ADVERSARIAL:
            # The softmax in one pass: sums so far shrink whenever a larger logit turns up.
            warmth = tl.where(live, temperature * logit, -float("inf"))
            highest = tl.maximum(peak, tl.max(warmth, axis=0))
            shrink = tl.exp(peak - highest)
            share = tl.exp(warmth - highest)
            peak = highest
            total *= shrink
            negative_loss *= shrink
            grad_scale *= shrink
            grad_first *= shrink
            grad_second *= shrink
        else:
            share = tl.where(live, 1.0, 0.0)
        total += tl.sum(share, axis=0)
        by_logit = share * doubt
        negative_loss += tl.sum(share * surprise, axis=0)
        grad_scale += tl.sum(by_logit * distance, axis=0)
        if GEOMETRY == 3:
            grad_first += tl.sum(by_logit[:, None] * point, axis=0)
        else:
            grad_first += tl.sum(by_logit[:, None] * by_entity, axis=0)
        grad_second -= tl.sum(by_logit[:, None] * by_second, axis=0)
    negative_weight = weight / total
    # The positive, last: lane 0 of the padding holds its row.
    raw = tl.sum(tl.where((lane == 0)[:, None], upcoming, 0.0), axis=0)
    point, _ = prepare_entity(raw, inverse_range, GEOMETRY)
    parts, by_entity, by_second = term(point, center, extent, rest, center_weight, GEOMETRY)
    distance = tl.sum(parts, axis=0)
    if HAS_OFFSETS:
        distance += tl.load(offset_ptr)
    surprise, doubt = _doubt(scale * distance - gamma)
    coefficient = scale * weight * doubt
    negative_share = scale * negative_weight
    if GEOMETRY == 3:
        grad_first = negative_share * grad_first - coefficient * point
    else:
        grad_first = negative_share * grad_first - coefficient * by_entity
    grad_second = negative_share * grad_second + coefficient * by_second
    tl.store(grad_first_ptr + here, by_angle(grad_first, GEOMETRY), mask=real)
    tl.store(grad_second_ptr + here, by_angle(grad_second, GEOMETRY) * sign, mask=real)
    tl.store(sum_ptr + query * 3, 2.0 * weight * surprise)
    tl.store(sum_ptr + query * 3 + 1, 2.0 * negative_weight * negative_loss)
    tl.store(sum_ptr + query * 3 + 2, weight * doubt * distance - negative_weight * grad_scale)
    # What was kept of each negative is its logit; its share is known only now.
    tl.debug_barrier()
    place = tl.arange(0, BLOCK_CANDIDATES)
    negative = (place > 0) & (place < num_candidates)
    logit = tl.load(coefficient_ptr + place, mask=negative, other=0.0)
    _, doubt = _doubt(logit)
    share = negative_share * doubt
    if ADVERSARIAL:
        share *= tl.exp(temperature * logit - peak)
    tl.debug_barrier()
    tl.store(coefficient_ptr + place, -share, mask=negative)
    tl.store(coefficient_ptr, coefficient)


def plain_contrast(
    distances: Tensor, weights: Tensor, scale: Tensor, gamma: float, temperature: float = 0.0
) -> Tensor:
    """[2] the weighted losses of positives and negatives from ready distances: the reference."""
    logits = gamma - scale * distances
    negatives = logits[:, 1:]
    positive = -(weights * logsigmoid(logits[:, 0])).sum()
    share = torch.softmax(temperature * negatives.detach(), dim=1)
    negative = -(weights * (share * logsigmoid(-negatives)).sum(dim=1)).sum()
    return torch.stack([positive, negative])
