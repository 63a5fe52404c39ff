"""Gradients of the entity table gathered entity by entity, with Adam in the same pass.

The candidates of a batch are sorted by entity, so that one program owns one row: it
adds up the gradients of that entity over all queries, then updates the row. There are
no atomic additions, so the result does not depend on scheduling, and the gradient of
the table is never stored. Rows that no query touches are updated too, as by dense Adam
(their moments decay); the update is that of Kingma and Ba, 2015, Alg. 1.
Rows of anchors also need the gradient through the operators. All others, nearly the
whole table, can be updated while that gradient is being computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from conekg.model.kernels.geometry import prepare_entity, term
from conekg.model.kernels.row import (
    add_scaled,
    load_row,
    row_pieces,
    row_warps,
    store_row,
    zero_row,
)

_SHORT_KEYS = 1 << 16
"""With fewer entities than this, sort keys have 16 bits, which halves the passes of the sort."""


@dataclass(frozen=True)
class Occurrences:
    """The places of a batch at which each entity occurs, as candidate or anchor."""

    order: Tensor
    """[places] the places, sorted by entity. They number the candidates, row by row, and then the
    anchors."""
    offsets: Tensor
    """[num_entities + 1] the occurrences of entity e are `order[offsets[e] : offsets[e + 1]]`."""
    anchors: Tensor
    """[anchors] the entities that are anchors of queries; an entity may occur repeatedly."""


def find_occurrences(candidates: Tensor, anchors: Tensor, num_entities: int) -> Occurrences:
    """The occurrences of every entity among `candidates` [batch, k] and `anchors` of any shape."""
    keys = torch.cat([candidates.reshape(-1), anchors.reshape(-1)])
    entities = torch.arange(num_entities + 1, dtype=torch.int32, device=keys.device)
    if num_entities < _SHORT_KEYS:
        keys, entities = ((part - _SHORT_KEYS // 2).to(torch.int16) for part in (keys, entities))
    ordered, order = torch.sort(keys, stable=True)
    offsets = torch.searchsorted(ordered, entities, out_int32=True)
    return Occurrences(order, offsets, anchors.reshape(-1))


def update_entities(
    entities: Tensor,
    first_moment: Tensor,
    second_moment: Tensor,
    occurrences: Occurrences,
    coefficients: Tensor,
    prepared: tuple[Tensor, Tensor, Tensor],
    anchor_grads: Tensor | None,
    adam: Tensor,
    *,
    geometry: int,
    inverse_range: float,
    center_weight: float,
) -> None:
    """Update rows of `entities` [num_entities, dim] and their moments by Adam, in place.

    Without `anchor_grads`, the rows that are no anchors of the batch are updated. With
    `anchor_grads` [anchors, dim], the gradients by the anchors' raw rows, the rows of the anchors
    are. One call of each kind updates every row once.

    `coefficients` [batch, candidates], the gradients by each distance, and the `prepared` regions,
    three of [batch, dim], are those of `contrast`; `adam` [5] holds learning rate / (1 − β1^t),
    sqrt(1 − β2^t), β1, β2, ε.
    """
    dim = entities.shape[1]
    anchored = anchor_grads is not None
    _update_kernel[(len(occurrences.anchors) if anchored else len(entities),)](
        entities,
        first_moment,
        second_moment,
        occurrences.order,
        occurrences.offsets,
        occurrences.anchors,
        coefficients,
        *prepared,
        anchor_grads if anchored else entities,
        adam,
        inverse_range,
        center_weight,
        coefficients.shape[1],
        coefficients.numel(),
        dim,
        GEOMETRY=geometry,
        ANCHORED=anchored,
        PIECES=row_pieces(dim),
        num_warps=row_warps(dim),
        enable_fp_fusion=True,
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
def find_row(order_ptr, offset_ptr, anchor_ptr, num_places, ANCHORED: tl.constexpr):
    """(row, start, stop, is_own): the program's row, its range of occurrences, whether it owns it.

    Anchors come last among a row's occurrences. With `ANCHORED` each program stands for an anchor
    and owns that entity's row if its anchor is the last occurrence, so that only one of several
    equal anchors does. Without, each program stands for a row and owns it if the last occurrence
    is no anchor.
    """
    program = tl.program_id(0)
    row = program.to(tl.int64)
    if ANCHORED:
        row = tl.load(anchor_ptr + program).to(tl.int64)
    start = tl.load(offset_ptr + row)
    stop = tl.load(offset_ptr + row + 1)
    last = tl.load(order_ptr + stop - 1, mask=stop > start, other=0).to(tl.int32)
    is_own = last < num_places
    if ANCHORED:
        is_own = last == num_places + program
    return row, start, stop, is_own


@triton.jit
def _update_kernel(
    entity_ptr,
    first_moment_ptr,
    second_moment_ptr,
    order_ptr,
    offset_ptr,
    anchor_ptr,
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
    ANCHORED: tl.constexpr,
    PIECES: tl.constexpr,
):
    row, start, stop, is_own = find_row(order_ptr, offset_ptr, anchor_ptr, num_places, ANCHORED)
    if not is_own:
        return
    here = row * dim
    raw = load_row(entity_ptr + here, dim, PIECES)
    points, slopes = (), ()
    for piece in tl.static_range(len(PIECES)):
        point, slope = prepare_entity(raw[piece], inverse_range, GEOMETRY)
        points = points + (point,)
        slopes = slopes + (slope,)
    by_point = zero_row(raw, PIECES)
    by_raw = zero_row(raw, PIECES)
    for index in range(start, stop):
        place = tl.load(order_ptr + index).to(tl.int32)
        if not ANCHORED or place < num_places:
            query = (place // num_candidates) * dim
            coefficient = tl.load(coefficient_ptr + place)
            center = load_row(center_ptr + query, dim, PIECES)
            extent = center
            rest = center
            if GEOMETRY < 2:
                extent = load_row(extent_ptr + query, dim, PIECES)
            if GEOMETRY == 0:
                rest = load_row(rest_ptr + query, dim, PIECES)
            gradient = ()
            for piece in tl.static_range(len(PIECES)):
                _, by_entity, _ = term(
                    points[piece],
                    center[piece],
                    extent[piece],
                    rest[piece],
                    center_weight,
                    GEOMETRY,
                )
                gradient = gradient + (by_entity,)
            by_point = add_scaled(by_point, coefficient, gradient, PIECES)
        else:
            anchor = (place - num_places) * dim
            gradient = load_row(anchor_grad_ptr + anchor, dim, PIECES)
            by_raw = add_scaled(by_raw, 1.0, gradient, PIECES)
    first_moment = load_row(first_moment_ptr + here, dim, PIECES)
    second_moment = load_row(second_moment_ptr + here, dim, PIECES)
    moved, firsts, seconds = (), (), ()
    for piece in tl.static_range(len(PIECES)):
        new, first, second = adam_step(
            raw[piece],
            by_point[piece] * slopes[piece] + by_raw[piece],
            first_moment[piece],
            second_moment[piece],
            adam_ptr,
        )
        moved = moved + (new,)
        firsts = firsts + (first,)
        seconds = seconds + (second,)
    store_row(entity_ptr + here, moved, dim, PIECES)
    store_row(first_moment_ptr + here, firsts, dim, PIECES)
    store_row(second_moment_ptr + here, seconds, dim, PIECES)


def advance(counters: Tensor, learning_rate: Tensor, adam: Tensor) -> None:
    """Count one more update and recompute Adam's bias corrections, in place.

    `counters` [2] int64: updates since the run began, and since the moments were last
    reset; `learning_rate` [1]; `adam` [5] as `update_entities` takes it, whose β and ε stay.
    """
    _advance_kernel[(1,)](counters, learning_rate, adam, enable_fp_fusion=True)


@triton.jit
def _advance_kernel(counters_ptr, learning_rate_ptr, adam_ptr):
    tl.store(counters_ptr, tl.load(counters_ptr) + 1)
    count = tl.load(counters_ptr + 1) + 1
    tl.store(counters_ptr + 1, count)
    # In float32, 1 − β^t would lose its digits for small t; float64 has enough of them.
    beta1 = tl.load(adam_ptr + 2).to(tl.float64)
    beta2 = tl.load(adam_ptr + 3).to(tl.float64)
    steps = count.to(tl.float64)
    correction1 = 1.0 - tl.exp(steps * tl.log(beta1))
    correction2 = 1.0 - tl.exp(steps * tl.log(beta2))
    tl.store(adam_ptr, (tl.load(learning_rate_ptr).to(tl.float64) / correction1).to(tl.float32))
    tl.store(adam_ptr + 1, tl.sqrt(correction2).to(tl.float32))
