"""Gradients of the entity table gathered entity by entity, with Adam in the same pass.

The candidates of a batch are sorted by entity, so that one program owns one row: it
adds up what every query wants of that entity, then moves the row. There are no
atomic additions, so the result does not depend on scheduling, and the gradient
never exists in memory. Rows that no query touched are moved too, as dense Adam
does (their moments decay); the update is the one of Kingma and Ba, 2015, Alg. 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from conekg.model.kernels.geometry import prepare_entity, term

_SHORT_KEYS = 1 << 16
"""Fewer entities than this have keys of 16 bits, which sort in half the passes."""


@dataclass(frozen=True)
class Occurrences:
    """Where each entity occurs in a batch."""

    order: Tensor
    """Places in the batch, sorted by entity: first the candidates, row by row, then anchors."""
    offsets: Tensor
    """[num_entities + 1] the occurrences of entity e are `order[offsets[e] : offsets[e + 1]]`."""


def find_occurrences(candidates: Tensor, anchors: Tensor, num_entities: int) -> Occurrences:
    """The occurrences of every entity among `candidates` [batch, k] and `anchors` [rows]."""
    keys = torch.cat([candidates.reshape(-1), anchors.reshape(-1)])
    entities = torch.arange(num_entities + 1, dtype=torch.int32, device=keys.device)
    if num_entities < _SHORT_KEYS:
        keys, entities = ((part - _SHORT_KEYS // 2).to(torch.int16) for part in (keys, entities))
    ordered, order = torch.sort(keys, stable=True)
    return Occurrences(order, torch.searchsorted(ordered, entities, out_int32=True))


def update_entities(
    entities: Tensor,
    first_moment: Tensor,
    second_moment: Tensor,
    occurrences: Occurrences,
    coefficients: Tensor,
    prepared: tuple[Tensor, Tensor, Tensor],
    anchor_grads: Tensor,
    adam: Tensor,
    *,
    geometry: int,
    inverse_range: float,
    center_weight: float,
    num_warps: int = 4,
) -> None:
    """Move all rows of `entities` [num_entities, dim] and their moments, in place.

    `coefficients` [batch, candidates] by each distance, and the `prepared` regions, three of
    [batch, dim], both from `contrast`; `anchor_grads` [rows, dim] by the raw rows used as
    anchors; `adam` [5]: learning rate / (1 − β1^t), sqrt(1 − β2^t), β1, β2, ε.
    """
    num_entities, dim = entities.shape
    _update_kernel[(num_entities,)](
        entities,
        first_moment,
        second_moment,
        occurrences.order,
        occurrences.offsets,
        coefficients,
        *prepared,
        anchor_grads,
        adam,
        inverse_range,
        center_weight,
        coefficients.shape[1],
        coefficients.numel(),
        dim,
        GEOMETRY=geometry,
        BLOCK_DIM=triton.next_power_of_2(dim),
        num_warps=num_warps,
    )


@triton.jit
def adam_step(raw, gradient, first_moment, second_moment, adam_ptr):
    """(raw, first_moment, second_moment) after one update of Adam with the given gradient."""
    step_size = tl.load(adam_ptr)
    correction = tl.load(adam_ptr + 1)
    beta1 = tl.load(adam_ptr + 2)
    beta2 = tl.load(adam_ptr + 3)
    epsilon = tl.load(adam_ptr + 4)
    first_moment += (1.0 - beta1) * (gradient - first_moment)
    second_moment += (1.0 - beta2) * (gradient * gradient - second_moment)
    raw -= step_size * first_moment / (tl.sqrt(second_moment) / correction + epsilon)
    return raw, first_moment, second_moment


@triton.jit
def _update_kernel(
    entity_ptr,
    first_moment_ptr,
    second_moment_ptr,
    order_ptr,
    offset_ptr,
    coefficient_ptr,
    center_ptr,
    extent_ptr,
    rest_ptr,
    anchor_grad_ptr,
    adam_ptr,
    inverse_range,
    center_weight,
    num_candidates,
    num_places,
    dim,
    GEOMETRY: tl.constexpr,
    BLOCK_DIM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK_DIM)
    real = column < dim
    here = row * dim + column
    raw = tl.load(entity_ptr + here, mask=real, other=0.0)
    first_moment = tl.load(first_moment_ptr + here, mask=real, other=0.0)
    second_moment = tl.load(second_moment_ptr + here, mask=real, other=0.0)
    point, slope = prepare_entity(raw, inverse_range, GEOMETRY)
    by_coordinate = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    by_raw = tl.zeros([BLOCK_DIM], dtype=tl.float32)
    start = tl.load(offset_ptr + row)
    stop = tl.load(offset_ptr + row + 1)
    for index in range(start, stop):
        place = tl.load(order_ptr + index)
        if place < num_places:
            query = (place // num_candidates) * dim + column
            coefficient = tl.load(coefficient_ptr + place)
            center = tl.load(center_ptr + query, mask=real, other=0.0)
            extent = center
            rest = center
            if GEOMETRY < 2:
                extent = tl.load(extent_ptr + query, mask=real, other=0.0)
            if GEOMETRY == 0:
                rest = tl.load(rest_ptr + query, mask=real, other=0.0)
            _, by_entity, _ = term(point, center, extent, rest, center_weight, GEOMETRY)
            by_coordinate += coefficient * by_entity
        else:
            anchor = place - num_places
            by_raw += tl.load(anchor_grad_ptr + anchor * dim + column, mask=real, other=0.0)
    gradient = by_coordinate * slope + by_raw
    raw, first_moment, second_moment = adam_step(
        raw, gradient, first_moment, second_moment, adam_ptr
    )
    tl.store(entity_ptr + here, raw, mask=real)
    tl.store(first_moment_ptr + here, first_moment, mask=real)
    tl.store(second_moment_ptr + here, second_moment, mask=real)


def advance(counters: Tensor, learning_rate: Tensor, adam: Tensor) -> None:
    """Count one more update and renew Adam's bias corrections, in place.

    `counters` [2] int64: updates since the run began, and since the moments were last
    fresh; `learning_rate` [1]; `adam` [5] as `update_entities` takes it, β and ε kept.
    """
    _advance_kernel[(1,)](counters, learning_rate, adam)


@triton.jit
def _advance_kernel(counters_ptr, learning_rate_ptr, adam_ptr):
    tl.store(counters_ptr, tl.load(counters_ptr) + 1)
    count = tl.load(counters_ptr + 1) + 1
    tl.store(counters_ptr + 1, count)
    # 1 − β^t as −expm1(t·ln β) would need double precision for small t; the two powers are
    # exact enough in float64.
    beta1 = tl.load(adam_ptr + 2).to(tl.float64)
    beta2 = tl.load(adam_ptr + 3).to(tl.float64)
    steps = count.to(tl.float64)
    correction1 = 1.0 - tl.exp(steps * tl.log(beta1))
    correction2 = 1.0 - tl.exp(steps * tl.log(beta2))
    tl.store(adam_ptr, (tl.load(learning_rate_ptr).to(tl.float64) / correction1).to(tl.float32))
    tl.store(adam_ptr + 1, tl.sqrt(correction2).to(tl.float32))
