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

from conekg.model.kernels.geometry import prepare_entity, prepare_region, term


@dataclass(frozen=True)
class Contrast:
    """Loss sums and gradients of one batch."""

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
    num_warps: int = 4,
) -> Contrast:
    """The loss of a batch, its gradients, and each distance's coefficient.

    `entities` [num_entities, dim] raw rows; `first`, `second` [batch, dim] the regions;
    `candidates` [batch, 1 + negatives] ids, the positive first; `weights` [batch] sum to one;
    `offsets` [batch, candidates] is added to each distance where a geometry has terms that
    are not sums over dimensions.
    """
    batch, num_candidates = candidates.shape
    dim = entities.shape[1]
    grad_first = torch.empty_like(first)
    grad_second = torch.empty_like(second)
    coefficients = torch.empty_like(candidates, dtype=torch.float32)
    sums = torch.empty(batch, 3, device=first.device)
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
        sums,
        gamma,
        inverse_range,
        center_weight,
        num_candidates,
        dim,
        GEOMETRY=geometry,
        HAS_OFFSETS=offsets is not None,
        BLOCK_DIM=triton.next_power_of_2(dim),
        num_warps=num_warps,
    )
    totals = sums.sum(dim=0)
    return Contrast(totals[:2], grad_first, grad_second, totals[2], coefficients)


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
    sum_ptr,
    gamma,
    inverse_range,
    center_weight,
    num_candidates,
    dim,
    GEOMETRY: tl.constexpr,
    HAS_OFFSETS: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    query = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK_DIM)
    real = column < dim
    first = tl.load(first_ptr + query * dim + column, mask=real, other=0.0)
    second = tl.load(second_ptr + query * dim + column, mask=real, other=0.0)
    center, extent, rest, sign = prepare_region(first, second, GEOMETRY)
    scale = tl.load(scale_ptr)
    positive_weight = tl.load(weight_ptr + query) * 0.5
    negative_weight = positive_weight / (num_candidates - 1)
    grad_first = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    grad_second = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    positive_loss = 0.0
    negative_loss = 0.0
    grad_scale = 0.0
    candidate_ptr += query * num_candidates
    coefficient_ptr += query * num_candidates
    offset_ptr += query * num_candidates
    entity = tl.load(candidate_ptr).to(tl.int64)
    upcoming = tl.load(entity_ptr + entity * dim + column, mask=real, other=0.0)
    for place in range(0, num_candidates):
        raw = upcoming
        # The next row is on its way while this one is worked on.
        follower = tl.minimum(place + 1, num_candidates - 1)
        entity = tl.load(candidate_ptr + follower).to(tl.int64)
        upcoming = tl.load(entity_ptr + entity * dim + column, mask=real, other=0.0)
        point, _ = prepare_entity(raw, inverse_range, GEOMETRY)
        parts, by_entity, by_second = term(point, center, extent, rest, center_weight, GEOMETRY)
        distance = tl.sum(tl.where(real, parts, 0.0), axis=0)
        if HAS_OFFSETS:
            distance += tl.load(offset_ptr + place)
        logit = gamma - scale * distance
        positive = place == 0
        signed = tl.where(positive, logit, -logit)
        share = tl.where(positive, positive_weight, negative_weight)
        decay = tl.exp(-tl.abs(signed))
        loss = share * (tl.maximum(-signed, 0.0) + tl.log(1.0 + decay))
        doubt = tl.where(signed >= 0, decay, 1.0) / (1.0 + decay)  # sigmoid(-signed)
        by_logit = tl.where(positive, -share, share) * doubt
        coefficient = -scale * by_logit
        tl.store(coefficient_ptr + place, coefficient)
        positive_loss += tl.where(positive, loss, 0.0)
        negative_loss += tl.where(positive, 0.0, loss)
        grad_scale -= by_logit * distance
        if GEOMETRY == 3:
            grad_first -= coefficient * point
        else:
            grad_first -= coefficient * by_entity
        grad_second += coefficient * by_second
    tl.store(grad_first_ptr + query * dim + column, grad_first, mask=real)
    tl.store(grad_second_ptr + query * dim + column, grad_second * sign, mask=real)
    tl.store(sum_ptr + query * 3, positive_loss * 2.0)
    tl.store(sum_ptr + query * 3 + 1, negative_loss * 2.0)
    tl.store(sum_ptr + query * 3 + 2, grad_scale)


def plain_contrast(distances: Tensor, weights: Tensor, scale: Tensor, gamma: float) -> Tensor:
    """[2] the weighted losses of positives and negatives from ready distances: the reference."""
    logits = gamma - scale * distances
    positive = -(weights * logsigmoid(logits[:, 0])).sum()
    negative = -(weights * logsigmoid(-logits[:, 1:]).mean(dim=1)).sum()
    return torch.stack([positive, negative])
