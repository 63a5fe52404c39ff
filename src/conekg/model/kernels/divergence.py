"""BetaE's divergence for the training kernels: features of entities, and their gradients.

KL(entity ‖ query) is ln B of the query's parameters plus a function linear in them, whose
coefficients depend on the entity alone. `contrast` therefore takes it as a negated inner product
with features, plus a constant of the entity and one of the query. `divergence_features` computes
the features and constants of entities, `normalizers` the constants of queries;
`update_distributions` is `entity_update` with the chain rule through trigammas.
Special functions use the recurrence to shift arguments above 6, its six terms over one common
denominator, and then Stirling's series.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from conekg.model.beta import LARGEST, SMALLEST
from conekg.model.kernels.entity_update import Occurrences, adam_step, find_row
from conekg.model.kernels.row import (
    add_scaled,
    columns,
    load_row,
    row_pieces,
    row_warps,
    store_row,
    zero_row,
)


def divergence_features(entities: Tensor, features: Tensor, constants: Tensor) -> None:
    """Fill `features` [num_entities, 2·dim] and `constants` [num_entities] from raw rows.

    KL(entity ‖ query) = ln B(α_q, β_q) + constant − ⟨[α_q; β_q], feature⟩, summed over
    dimensions: as `Beta.scoring_features`, in float32 and one pass.
    """
    _launch_features(entities, features, constants, of_entities=True)


def normalizers(queries: Tensor) -> tuple[Tensor, Tensor]:
    """(Σ_dim ln B(α, β) [rows], its gradient [rows, 2·dim]) from queries' α and β [rows, 2·dim]."""
    gradients = torch.empty_like(queries)
    sums = torch.empty(len(queries), device=queries.device)
    _launch_features(queries, gradients, sums, of_entities=False)
    return sums, gradients


def _launch_features(rows: Tensor, features: Tensor, sums: Tensor, of_entities: bool) -> None:
    num_rows, width = rows.shape
    dim = width // 2
    _features_kernel[(num_rows,)](
        rows,
        features,
        sums,
        dim,
        SMALLEST,
        LARGEST,
        OF_ENTITIES=of_entities,
        PIECES=row_pieces(dim),
        num_warps=row_warps(dim),
        enable_fp_fusion=True,
    )


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
    """Update rows of `entities` [num_entities, 2·dim] and their moments by Adam, in place.

    `coefficients` [batch, candidates] are the gradients by each divergence, `queries`
    [batch, 2·dim] the regions' α and β. The other arguments, and which rows are updated, are as
    for `update_entities`.
    """
    dim = entities.shape[1] // 2
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
        dim,
        SMALLEST,
        LARGEST,
        ANCHORED=anchored,
        PIECES=row_pieces(dim),
        num_warps=row_warps(dim),
        enable_fp_fusion=True,
    )


@triton.jit
def _recurrence(x):
    """(near, pairs, z): min(x, 64), near·(near + 5), and the argument of Stirling's series.

    With t = near·(near + 5), (near + 1)(near + 4) = t + 4 and (near + 2)(near + 3) = t + 6: the
    six factors of the recurrence have the product t(t + 4)(t + 6). Arguments of 64 and above need
    no recurrence, and their products could overflow.
    """
    near = tl.minimum(x, 64.0)
    return near, near * (near + 5.0), tl.where(x < 64.0, x + 6.0, x)


@triton.jit
def gammas(x):
    """(ψ(x), ln Γ(x) + ln p, p) for x > 0, where p is the product of the recurrence.

    The caller takes ln p, of several products at once. ψ is exact to 1e-6 · max(1, |ψ|).
    """
    near, pairs, z = _recurrence(x)
    product = pairs * (pairs + 4.0) * (pairs + 6.0)
    reciprocals = (2.0 * near + 5.0) * ((3.0 * pairs + 20.0) * pairs + 24.0) / product
    inverse = 1.0 / z
    square = inverse * inverse
    logarithm = tl.log(z)
    series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0)))
    digamma = logarithm - 0.5 * inverse - series - tl.where(x < 64.0, reciprocals, 0.0)
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0)))
    above = (z - 0.5) * logarithm - z + 0.9189385332046727 + series
    return digamma, above, tl.where(x < 64.0, product, 1.0)


@triton.jit
def trigamma(x):
    """ψ'(x) for x > 0, to a relative error of 1e-6."""
    _, pairs, z = _recurrence(x)
    outer, middle, inner = pairs, pairs + 4.0, pairs + 6.0
    far, wide, narrow = middle * inner, outer * inner, outer * middle
    squares = (2.0 * pairs + 25.0) * far * far
    squares += (2.0 * pairs + 17.0) * wide * wide
    squares += (2.0 * pairs + 13.0) * narrow * narrow
    product = outer * far
    shift = tl.where(x < 64.0, squares / (product * product), 0.0)
    inverse = 1.0 / z
    square = inverse * inverse
    series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0))
    return inverse + square * (0.5 + inverse * series) + shift


@triton.jit
def _regularized(raw, smallest, largest):
    """clamp(raw + 1, smallest, largest), as `beta.regularize`."""
    return tl.minimum(tl.maximum(raw + 1.0, smallest), largest)


@triton.jit
def _features_kernel(
    row_ptr,
    feature_ptr,
    sum_ptr,
    dim,
    smallest,
    largest,
    OF_ENTITIES: tl.constexpr,
    PIECES: tl.constexpr,
):
    """Per row, the gradient of ln B(α, β) and a sum over dimensions.

    The sum is of ln B(α, β) for queries, of ⟨(α, β), gradient⟩ − ln B(α, β) for entities.
    """
    row = tl.program_id(0).to(tl.int64)
    here = row * 2 * dim
    alphas = load_row(row_ptr + here, dim, PIECES)
    betas = load_row(row_ptr + here + dim, dim, PIECES)
    by_alphas, by_betas = (), ()
    total = 0.0
    for piece in tl.static_range(len(PIECES)):
        real = columns(PIECES, piece) < dim
        alpha, beta = alphas[piece], betas[piece]
        if OF_ENTITIES:
            alpha = _regularized(alpha, smallest, largest)
            beta = _regularized(beta, smallest, largest)
        else:
            alpha = tl.where(real, alpha, 1.0)  # any value with a finite logarithm
            beta = tl.where(real, beta, 1.0)
        by_alpha, above_alpha, product_alpha = gammas(alpha)
        by_beta, above_beta, product_beta = gammas(beta)
        by_both, above_both, product_both = gammas(alpha + beta)
        by_alpha -= by_both
        by_beta -= by_both
        log_beta = above_alpha + above_beta - above_both
        log_beta -= tl.log(product_alpha * product_beta / product_both)
        if OF_ENTITIES:
            log_beta = alpha * by_alpha + beta * by_beta - log_beta
        total += tl.sum(tl.where(real, log_beta, 0.0), axis=0)
        by_alphas = by_alphas + (by_alpha,)
        by_betas = by_betas + (by_beta,)
    store_row(feature_ptr + here, by_alphas, dim, PIECES)
    store_row(feature_ptr + here + dim, by_betas, dim, PIECES)
    tl.store(sum_ptr + row, total)


@triton.jit
def _regularized_row(raw, smallest, largest, PIECES: tl.constexpr):
    """The parameters of a raw row, α or β."""
    row = ()
    for piece in tl.static_range(len(PIECES)):
        row = row + (_regularized(raw[piece], smallest, largest),)
    return row


@triton.jit
def _add_excess(excess, coefficient, parameters, query_ptr, dim, PIECES: tl.constexpr):
    """excess + coefficient · (parameters − those of the query)."""
    query = load_row(query_ptr, dim, PIECES)
    return add_scaled(excess, coefficient, add_scaled(parameters, -1.0, query, PIECES), PIECES)


@triton.jit
def _move(
    entity_ptr,
    first_moment_ptr,
    second_moment_ptr,
    raw,
    by_parameters,
    by_raw,
    adam_ptr,
    smallest,
    largest,
    dim,
    PIECES: tl.constexpr,
):
    """Update one half of a row, its α or its β, by Adam."""
    first_moment = load_row(first_moment_ptr, dim, PIECES)
    second_moment = load_row(second_moment_ptr, dim, PIECES)
    moved, firsts, seconds = (), (), ()
    for piece in tl.static_range(len(PIECES)):
        parameter = raw[piece] + 1.0
        inside = (parameter >= smallest) & (parameter <= largest)  # outside, the clamp is flat
        new, first, second = adam_step(
            raw[piece],
            tl.where(inside, by_parameters[piece], 0.0) + by_raw[piece],
            first_moment[piece],
            second_moment[piece],
            adam_ptr,
        )
        moved = moved + (new,)
        firsts = firsts + (first,)
        seconds = seconds + (second,)
    store_row(entity_ptr, moved, dim, PIECES)
    store_row(first_moment_ptr, firsts, dim, PIECES)
    store_row(second_moment_ptr, seconds, dim, PIECES)


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
    PIECES: tl.constexpr,
):
    row, start, stop, is_own = find_row(order_ptr, offset_ptr, anchor_ptr, num_places, ANCHORED)
    if not is_own:
        return
    here = row * 2 * dim  # the row's α; its β follow
    raw_alpha = load_row(entity_ptr + here, dim, PIECES)
    raw_beta = load_row(entity_ptr + here + dim, dim, PIECES)
    alpha = _regularized_row(raw_alpha, smallest, largest, PIECES)
    beta = _regularized_row(raw_beta, smallest, largest, PIECES)
    excess_alpha = zero_row(raw_alpha, PIECES)
    excess_beta = zero_row(raw_beta, PIECES)
    by_raw_alpha = zero_row(raw_alpha, PIECES)
    by_raw_beta = zero_row(raw_beta, PIECES)
    for index in range(start, stop):
        place = tl.load(order_ptr + index).to(tl.int32)
        if not ANCHORED or place < num_places:
            query = query_ptr + (place // num_candidates) * 2 * dim
            coefficient = tl.load(coefficient_ptr + place)
            excess_alpha = _add_excess(excess_alpha, coefficient, alpha, query, dim, PIECES)
            excess_beta = _add_excess(excess_beta, coefficient, beta, query + dim, dim, PIECES)
        else:
            anchor = anchor_grad_ptr + (place - num_places) * 2 * dim
            gradient = load_row(anchor, dim, PIECES)
            by_raw_alpha = add_scaled(by_raw_alpha, 1.0, gradient, PIECES)
            gradient = load_row(anchor + dim, dim, PIECES)
            by_raw_beta = add_scaled(by_raw_beta, 1.0, gradient, PIECES)
    # ∂KL/∂α_e = (α_e − α_q) ψ'(α_e) − (α_e + β_e − α_q − β_q) ψ'(α_e + β_e), and alike for β.
    by_alpha, by_beta = (), ()
    for piece in tl.static_range(len(PIECES)):
        shared = excess_alpha[piece] + excess_beta[piece]
        shared *= trigamma(alpha[piece] + beta[piece])
        by_alpha = by_alpha + (excess_alpha[piece] * trigamma(alpha[piece]) - shared,)
        by_beta = by_beta + (excess_beta[piece] * trigamma(beta[piece]) - shared,)
    _move(
        entity_ptr + here,
        first_moment_ptr + here,
        second_moment_ptr + here,
        raw_alpha,
        by_alpha,
        by_raw_alpha,
        adam_ptr,
        smallest,
        largest,
        dim,
        PIECES,
    )
    here += dim
    _move(
        entity_ptr + here,
        first_moment_ptr + here,
        second_moment_ptr + here,
        raw_beta,
        by_beta,
        by_raw_beta,
        adam_ptr,
        smallest,
        largest,
        dim,
        PIECES,
    )
