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
    block_dim = triton.next_power_of_2(dim)
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
        BLOCK_CANDIDATES=max(1, min(4, 4096 // block_dim)),
        BLOCK_DIM=block_dim,
        num_warps=4,
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
    BLOCK_CANDIDATES: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    query = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK_DIM)
    real = column < dim
    first = tl.load(first_ptr + query * dim + column, mask=real, other=0.0)
    second = tl.load(second_ptr + query * dim + column, mask=real, other=0.0)
    a, b, c, d = prepare_region(first, second, GEOMETRY)
    a = a[None, :]
    b = b[None, :]
    c = c[None, :]
    d = d[None, :]
    scale = tl.load(scale_ptr)
    weight = tl.load(weight_ptr + query) * 0.5
    negative_weight = weight / (num_candidates - 1)
    grad_first = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    grad_second = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    positive_loss = 0.0
    negative_loss = 0.0
    grad_scale = 0.0
    for start in range(0, num_candidates, BLOCK_CANDIDATES):
        place = start + tl.arange(0, BLOCK_CANDIDATES)
        valid = place < num_candidates
        entity = tl.load(candidate_ptr + query * num_candidates + place, mask=valid, other=0)
        mask = valid[:, None] & real[None, :]
        raw = tl.load(
            entity_ptr + entity.to(tl.int64)[:, None] * dim + column[None, :], mask=mask, other=0.0
        )
        u, v, _ = prepare_entity(raw, inverse_range, GEOMETRY)
        parts, _, by_first, by_second = term(u, v, a, b, c, d, center_weight, GEOMETRY)
        distance = tl.sum(tl.where(mask, parts, 0.0), axis=1)
        if HAS_OFFSETS:
            distance += tl.load(offset_ptr + query * num_candidates + place, mask=valid, other=0.0)
        positive = place == 0
        logit = gamma - scale * distance
        signed = tl.where(positive, logit, -logit)
        share = tl.where(valid, tl.where(positive, weight, negative_weight), 0.0)
        decay = tl.exp(-tl.abs(signed))
        loss = share * (tl.maximum(-signed, 0.0) + tl.log(1.0 + decay))
        doubt = tl.where(signed >= 0, decay, 1.0) / (1.0 + decay)  # sigmoid(-signed)
        by_logit = tl.where(positive, -share, share) * doubt
        coefficient = -scale * by_logit
        tl.store(coefficient_ptr + query * num_candidates + place, coefficient, mask=valid)
        positive_loss += tl.sum(tl.where(positive, loss, 0.0))
        negative_loss += tl.sum(tl.where(positive, 0.0, loss))
        grad_scale -= tl.sum(by_logit * distance)
        grad_first += tl.sum(coefficient[:, None] * by_first, axis=0)
        grad_second += tl.sum(coefficient[:, None] * by_second, axis=0)
    tl.store(grad_first_ptr + query * dim + column, grad_first, mask=real)
    tl.store(grad_second_ptr + query * dim + column, grad_second, mask=real)
    tl.store(sum_ptr + query * 3, positive_loss * 2.0)
    tl.store(sum_ptr + query * 3 + 1, negative_loss * 2.0)
    tl.store(sum_ptr + query * 3 + 2, grad_scale)


def plain_contrast(distances: Tensor, weights: Tensor, scale: Tensor, gamma: float) -> Tensor:
    """[2] the weighted losses of positives and negatives from ready distances: the reference."""
    logits = gamma - scale * distances
    positive = -(weights * logsigmoid(logits[:, 0])).sum()
    negative = -(weights * logsigmoid(-logits[:, 1:]).mean(dim=1)).sum()
    return torch.stack([positive, negative])
