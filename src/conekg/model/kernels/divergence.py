"""BetaE's divergence for the training kernels: features of entities, and their gradients.

KL(entity ‖ query) is linear in the query's parameters once digammas of the entity's are
at hand, so `contrast` takes it as a negated inner product with ready features plus a
constant of each side. `divergence_features` makes the features of all entities, and
`update_distributions` is `entity_update` with the chain rule through trigammas.
Special functions are the recurrence up to arguments above 6, then Stirling's series.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from conekg.model.beta import LARGEST, SMALLEST
from conekg.model.kernels.entity_update import Occurrences, adam_step, find_row


def divergence_features(entities: Tensor) -> tuple[Tensor, Tensor]:
    """(features [num_entities, 2·dim], constants [num_entities]) of raw rows of that shape.

    KL(entity ‖ query) = ln B(α_q, β_q) + constant − ⟨[α_q; β_q], feature⟩, summed over
    dimensions: as `Beta.scoring_features`, in float32 and one pass.
    """
    num_entities, width = entities.shape
    features = torch.empty_like(entities)
    constants = torch.empty(num_entities, device=entities.device)
    _features_kernel[(num_entities,)](
        entities,
        features,
        constants,
        width // 2,
        SMALLEST,
        LARGEST,
        BLOCK_DIM=triton.next_power_of_2(width // 2),
        num_warps=4,
        enable_fp_fusion=True,
    )
    return features, constants


def update_distributions(
    entities: Tensor,
    first_moment: Tensor,
    second_moment: Tensor,
    occurrences: Occurrences,
    coefficients: Tensor,
    queries: Tensor,
    anchor_grads: Tensor | None,
    adam: Tensor,
) -> None:
    """Move rows of `entities` [num_entities, 2·dim] and their moments, in place.

    `coefficients` [batch, candidates] by each divergence; `queries` [batch, 2·dim] the
    regions' α and β; which rows, and the other arguments, as for `update_entities`.
    """
    width = entities.shape[1]
    anchored = anchor_grads is not None
    _update_kernel[(len(occurrences.anchors) if anchored else len(entities),)](
        entities,
        first_moment,
        second_moment,
        occurrences.order,
        occurrences.offsets,
        occurrences.anchors,
        coefficients,
        queries,
        anchor_grads if anchored else entities,
        adam,
        coefficients.shape[1],
        coefficients.numel(),
        width // 2,
        SMALLEST,
        LARGEST,
        ANCHORED=anchored,
        BLOCK_DIM=triton.next_power_of_2(width // 2),
        num_warps=4,
        enable_fp_fusion=True,
    )


@triton.jit
def digamma(x):
    """ψ(x) for x > 0, to 1e-6 of its size."""
    shift = 1.0 / x
    for k in tl.static_range(1, 6):
        shift += 1.0 / (x + k)
    z = x + 6.0
    inverse = 1.0 / z
    square = inverse * inverse
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0)))
    return tl.log(z) - 0.5 * inverse - series - shift


@triton.jit
def trigamma(x):
    """ψ'(x) for x > 0, to 1e-6 of its size."""
    shift = 1.0 / (x * x)
    for k in tl.static_range(1, 6):
        inverse = 1.0 / (x + k)
        shift += inverse * inverse
    inverse = 1.0 / (x + 6.0)
    square = inverse * inverse
    series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0))
    return inverse + square * (0.5 + inverse * series) + shift


@triton.jit
def log_gamma(x):
    """ln Γ(x) for x > 0, to 1e-6 of the larger of 1 and its size."""
    # Pairs of factors: the product of all six would overflow for large arguments.
    shift = tl.log(x * (x + 1.0)) + tl.log((x + 2.0) * (x + 3.0)) + tl.log((x + 4.0) * (x + 5.0))
    z = x + 6.0
    inverse = 1.0 / z
    square = inverse * inverse
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)))
    return (z - 0.5) * tl.log(z) - z + 0.9189385332046727 + series - shift


@triton.jit
def _features_kernel(
    entity_ptr,
    feature_ptr,
    constant_ptr,
    dim,
    smallest,
    largest,
    BLOCK_DIM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK_DIM)[None, :]
    real = column < dim
    here = row * 2 * dim + tl.arange(0, 2)[:, None] * dim + column  # α, then β
    raw = tl.load(entity_ptr + here, mask=real, other=0.0)
    parameters = tl.minimum(tl.maximum(raw + 1.0, smallest), largest)
    total = tl.sum(parameters, axis=0)[None, :]
    features = digamma(parameters) - digamma(total)
    tl.store(feature_ptr + here, features, mask=real)
    own = tl.where(real, parameters * features - log_gamma(parameters), 0.0)
    both = tl.where(real, log_gamma(total), 0.0)
    tl.store(constant_ptr + row, tl.sum(tl.sum(own, axis=0) + tl.sum(both, axis=0), axis=0))


@triton.jit
def _update_kernel(
    entity_ptr,
    first_moment_ptr,
    second_moment_ptr,
    order_ptr,
    offset_ptr,
    anchor_ptr,
    coefficient_ptr,
    query_ptr,
    anchor_grad_ptr,
    adam_ptr,
    num_candidates,
    num_places,
    dim,
    smallest,
    largest,
    ANCHORED: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    row, start, stop, is_own = find_row(order_ptr, offset_ptr, anchor_ptr, num_places, ANCHORED)
    if not is_own:
        return
    column = tl.arange(0, BLOCK_DIM)[None, :]
    real = column < dim
    place_in_row = tl.arange(0, 2)[:, None] * dim + column  # α, then β
    here = row * 2 * dim + place_in_row
    raw = tl.load(entity_ptr + here, mask=real, other=0.0)
    first_moment = tl.load(first_moment_ptr + here, mask=real, other=0.0)
    second_moment = tl.load(second_moment_ptr + here, mask=real, other=0.0)
    parameters = tl.minimum(tl.maximum(raw + 1.0, smallest), largest)
    excess = tl.zeros([2, BLOCK_DIM], dtype=tl.float32)
    by_raw = tl.zeros([2, BLOCK_DIM], dtype=tl.float32)
    for index in range(start, stop):
        place = tl.load(order_ptr + index).to(tl.int32)
        if not ANCHORED or place < num_places:
            query = (place // num_candidates) * 2 * dim + place_in_row
            coefficient = tl.load(coefficient_ptr + place)
            excess += coefficient * (parameters - tl.load(query_ptr + query, mask=real, other=0.0))
        else:
            anchor = (place - num_places) * 2 * dim + place_in_row
            by_raw += tl.load(anchor_grad_ptr + anchor, mask=real, other=0.0)
    # ∂KL/∂α_e = (α_e − α_q) ψ'(α_e) − (α_e + β_e − α_q − β_q) ψ'(α_e + β_e), and alike for β.
    total = tl.sum(parameters, axis=0)[None, :]
    shared = tl.sum(excess, axis=0)[None, :] * trigamma(total)
    inside = (raw + 1.0 >= smallest) & (raw + 1.0 <= largest)  # elsewhere the clamp is flat
    gradient = tl.where(inside, excess * trigamma(parameters) - shared, 0.0) + by_raw
    raw, first_moment, second_moment = adam_step(
        raw, gradient, first_moment, second_moment, adam_ptr
    )
    tl.store(entity_ptr + here, raw, mask=real)
    tl.store(first_moment_ptr + here, first_moment, mask=real)
    tl.store(second_moment_ptr + here, second_moment, mask=real)
