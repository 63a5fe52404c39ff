"""The contrastive loss of a batch and its gradients, each entity row read once.

`contrast` fuses gathering, distance, logit, loss and the gradients by the query
regions into one kernel: a logit's gradient depends on that logit alone, so an entity
row serves both before the next one is fetched. For the gradient of the entity table,
one number per candidate is kept, which `entity_update` reads. The loss is that of
`training.loss.negative_sampling_loss` (ConE, Section 4.3); `plain_contrast` is the
reference that tests compare with.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import logsigmoid

from conekg.model.kernels.geometry import CONE, by_angle, prepare_entity, prepare_region, term
from conekg.model.kernels.row import (
    add_scaled,
    columns,
    load_row,
    row_pieces,
    row_warps,
    scaled,
    store_row,
    zero_row,
)


@dataclass(frozen=True)
class Contrast:
    """The loss of one batch, its gradients, and what `entity_update` needs of the regions."""

    loss: Tensor
    """[2] the weighted loss of the positives and of the negatives; the loss is their mean."""
    grad_first: Tensor
    """[batch, dim] the gradient by the region's first component."""
    grad_second: Tensor
    """[batch, dim] the gradient by its second component."""
    grad_scale: Tensor
    """[] the gradient by the distance scale."""
    coefficients: Tensor
    """[batch, candidates] the gradient by each distance."""
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
    positives: int = 1,
) -> Contrast:
    """The loss of a batch and its gradients by the regions, the scale and each distance.

    `entities` [num_entities, dim] raw rows; `first`, `second` [batch, dim] the regions;
    `candidates` [batch, positives + negatives] ids, positives first; `weights` [batch] sum to
    one; `scale` [1]; `offsets` [batch, candidates] are added to the distances, for models whose
    distances are not sums over dimensions alone. With a `temperature` t above 0, the negatives of
    a query are weighted by softmax(t · logit) instead of equally.
    """
    # The kernel walks rows by their width: views of another layout would be read as other numbers.
    assert all(rows.is_contiguous() for rows in (entities, first, second, candidates))
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
        positives,
        num_candidates,
        dim,
        GEOMETRY=geometry,
        HAS_OFFSETS=offsets is not None,
        ADVERSARIAL=temperature > 0,
        PIECES=row_pieces(dim),
        BLOCK_CANDIDATES=triton.next_power_of_2(num_candidates),
        num_warps=row_warps(dim),
        enable_fp_fusion=True,
    )
    totals = sums.sum(dim=0)
    return Contrast(totals[:2], grad_first, grad_second, totals[2], coefficients, prepared)


@triton.jit
def _softplus_and_sigmoid(logit):
    """(−log σ(−logit), σ(logit)): the loss of a negative with this logit, and its derivative."""
    decay = tl.exp(-tl.abs(logit))
    softplus = tl.maximum(logit, 0.0) + tl.log(1.0 + decay)
    return softplus, tl.where(logit >= 0, 1.0, decay) / (1.0 + decay)


@triton.jit
def _prepare_row(first, second, dim, GEOMETRY: tl.constexpr, PIECES: tl.constexpr):
    """The rows (center, extent, rest, sign) of a region; see `prepare_region`."""
    centers, extents, rests, signs = (), (), (), ()
    for piece in tl.static_range(len(PIECES)):
        center, extent, rest, sign = prepare_region(first[piece], second[piece], GEOMETRY)
        # In columns beyond `dim` the extent is 0; with rest 0, distance and derivatives are 0.
        rest = tl.where(columns(PIECES, piece) < dim, rest, 0.0)
        centers = centers + (center,)
        extents = extents + (extent,)
        rests = rests + (rest,)
        signs = signs + (sign,)
    return centers, extents, rests, signs


@triton.jit
def _compare(
    raw,
    center,
    extent,
    rest,
    inverse_range,
    center_weight,
    GEOMETRY: tl.constexpr,
    PIECES: tl.constexpr,
):
    """(distance, −∂distance/∂first, ∂distance/∂second) of a raw entity row from a region.

    The derivatives are rows, in the units of `term`.
    """
    distance = 0.0
    by_first, by_second = (), ()
    for piece in tl.static_range(len(PIECES)):
        point, _ = prepare_entity(raw[piece], inverse_range, GEOMETRY)
        parts, by_entity, second = term(
            point, center[piece], extent[piece], rest[piece], center_weight, GEOMETRY
        )
        if GEOMETRY == 3:
            by_entity = point
        distance += tl.sum(parts, axis=0)
        by_first = by_first + (by_entity,)
        by_second = by_second + (second,)
    return distance, by_first, by_second


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
    num_positives,
    num_candidates,
    dim,
    GEOMETRY: tl.constexpr,
    HAS_OFFSETS: tl.constexpr,
    ADVERSARIAL: tl.constexpr,
    PIECES: tl.constexpr,
    BLOCK_CANDIDATES: tl.constexpr,
):
    query = tl.program_id(0).to(tl.int64)
    here = query * dim
    center, extent, rest, sign = _prepare_row(
        load_row(first_ptr + here, dim, PIECES),
        load_row(second_ptr + here, dim, PIECES),
        dim,
        GEOMETRY,
        PIECES,
    )
    if GEOMETRY == 0:
        store_row(center_ptr + here, center, dim, PIECES)
        store_row(extent_ptr + here, extent, dim, PIECES)
        store_row(rest_ptr + here, rest, dim, PIECES)
    scale = tl.load(scale_ptr)
    weight = tl.load(weight_ptr + query) * 0.5
    candidate_ptr += query * num_candidates
    coefficient_ptr += query * num_candidates
    offset_ptr += query * num_candidates
    # Sums over the negatives, weighted by `share`; divided by `total`, the sum of shares, below.
    grad_first = zero_row(center, PIECES)
    grad_second = zero_row(center, PIECES)
    negative_loss = 0.0
    grad_scale = 0.0
    total = 0.0
    peak = -float("inf")
    entity = tl.load(candidate_ptr + num_positives).to(tl.int64)
    next_row = load_row(entity_ptr + entity * dim, dim, PIECES)
    for place in range(num_positives, num_candidates):
        raw = next_row
        # Load the next row while this one is processed; after the negatives come the positives.
        next_place = tl.where(place + 1 < num_candidates, place + 1, 0)
        entity = tl.load(candidate_ptr + next_place).to(tl.int64)
        next_row = load_row(entity_ptr + entity * dim, dim, PIECES)
        distance, by_first, by_second = _compare(
            raw, center, extent, rest, inverse_range, center_weight, GEOMETRY, PIECES
        )
        if HAS_OFFSETS:
            distance += tl.load(offset_ptr + place)
        logit = gamma - scale * distance
        tl.store(coefficient_ptr + place, logit)
        loss, sigmoid = _softplus_and_sigmoid(logit)
        share = 1.0
        if ADVERSARIAL:
            # A softmax in one pass: the sums so far are scaled down when a larger logit appears.
            highest = tl.maximum(peak, temperature * logit)
            shrink = tl.exp(peak - highest)
            share = tl.exp(temperature * logit - highest)
            peak = highest
            total *= shrink
            negative_loss *= shrink
            grad_scale *= shrink
            grad_first = scaled(grad_first, shrink, PIECES)
            if GEOMETRY < 2:
                grad_second = scaled(grad_second, shrink, PIECES)
        total += share
        negative_loss += share * loss
        grad_scale += share * sigmoid * distance
        grad_first = add_scaled(grad_first, share * sigmoid, by_first, PIECES)
        if GEOMETRY < 2:  # points and inner products have no second coordinate
            grad_second = add_scaled(grad_second, -share * sigmoid, by_second, PIECES)
    negative = scale * weight / total
    grad_scale *= -weight / total
    grad_first = scaled(grad_first, negative, PIECES)
    grad_second = scaled(grad_second, negative, PIECES)
    each = weight / num_positives
    positive_loss = 0.0
    for place in range(num_positives):
        raw = next_row
        next_place = tl.minimum(place + 1, num_positives - 1)
        entity = tl.load(candidate_ptr + next_place).to(tl.int64)
        next_row = load_row(entity_ptr + entity * dim, dim, PIECES)
        distance, by_first, by_second = _compare(
            raw, center, extent, rest, inverse_range, center_weight, GEOMETRY, PIECES
        )
        if HAS_OFFSETS:
            distance += tl.load(offset_ptr + place)
        loss, sigmoid = _softplus_and_sigmoid(scale * distance - gamma)
        positive = scale * each * sigmoid
        tl.store(coefficient_ptr + place, positive)
        positive_loss += each * loss
        grad_scale += each * sigmoid * distance
        grad_first = add_scaled(grad_first, -positive, by_first, PIECES)
        if GEOMETRY < 2:
            grad_second = add_scaled(grad_second, positive, by_second, PIECES)
    for piece in tl.static_range(len(PIECES)):
        column = columns(PIECES, piece)
        real = column < dim
        by_axis = by_angle(grad_first[piece], GEOMETRY)
        by_aperture = by_angle(grad_second[piece], GEOMETRY) * sign[piece]
        tl.store(grad_first_ptr + here + column, by_axis, mask=real)
        tl.store(grad_second_ptr + here + column, by_aperture, mask=real)
    tl.store(sum_ptr + query * 3, 2.0 * positive_loss)
    tl.store(sum_ptr + query * 3 + 1, 2.0 * weight / total * negative_loss)
    tl.store(sum_ptr + query * 3 + 2, grad_scale)
    # The loop has stored the logit of each negative, whose share is known only now.
    tl.debug_barrier()
    place = tl.arange(0, BLOCK_CANDIDATES)
    kept = (place >= num_positives) & (place < num_candidates)
    logit = tl.load(coefficient_ptr + place, mask=kept, other=0.0)
    _, sigmoid = _softplus_and_sigmoid(logit)
    coefficient = -negative * sigmoid
    if ADVERSARIAL:
        coefficient *= tl.exp(temperature * logit - peak)
    tl.debug_barrier()
    tl.store(coefficient_ptr + place, coefficient, mask=kept)


def plain_contrast(
    distances: Tensor,
    weights: Tensor,
    scale: Tensor,
    gamma: float,
    temperature: float = 0.0,
    positives: int = 1,
) -> Tensor:
    """[2] the weighted losses of positives and of negatives, from given distances."""
    logits = gamma - scale * distances
    negatives = logits[:, positives:]
    positive = -(weights * logsigmoid(logits[:, :positives]).mean(dim=1)).sum()
    share = torch.softmax(temperature * negatives.detach(), dim=1)
    negative = -(weights * (share * logsigmoid(-negatives)).sum(dim=1)).sum()
    return torch.stack([positive, negative])
