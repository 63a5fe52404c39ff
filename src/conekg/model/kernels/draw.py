"""Training batches drawn on the device by one kernel.

Every number comes from a counter-based generator (Philox, Salmon et al. 2011) keyed
by the seed and the number of the update. That number is read from device memory,
so that a captured graph can be replayed, and a resumed run draws the same batches
as an unbroken one. Uniform integers are the high half of a 32-bit product, with a
bias below size / 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Pool:
    """Queries of several shapes in one table, their id slots padded to equal width."""

    anchors: Tensor
    """[queries, widest] int32"""
    relations: Tensor
    """[queries, widest] int32"""
    answer_offsets: Tensor
    """[queries + 1] int64"""
    answers: Tensor
    """[total] int32, sorted within a query"""
    weights: Tensor
    """[queries] float32: the weight of each in the loss"""
    near_offsets: Tensor
    """[queries + 1] int64"""
    near_misses: Tensor
    """[total] int32: each query's preferred negatives, of which it may have none"""
    row_starts: Tensor
    """[batch] int32: where the shape of batch row b starts in the table"""
    row_counts: Tensor
    """[batch] int32: how many queries that shape has"""
    most_answers: int
    """The largest number of answers of any query"""


@dataclass(frozen=True)
class Drawn:
    """One batch."""

    anchors: Tensor
    """[batch, widest]"""
    relations: Tensor
    """[batch, widest]"""
    candidates: Tensor
    """[batch, positives + negatives] the positives first"""
    weights: Tensor
    """[batch] sum to one"""
    positives: int = 1
    """How many of each row's candidates are answers"""


def draw(
    pool: Pool,
    counter: Tensor,
    seed: int,
    *,
    num_entities: int,
    negatives: int,
    filtered: bool,
    positives: int = 1,
    near: int = 0,
    shared: bool = False,
    ahead: int = 0,
) -> Drawn:
    """A batch: uniform queries of each row's shape, uniform answers, uniform negatives.

    `counter` [1] int64 is the number of the update; the batch is the one of `ahead` updates later.
    With `filtered`, negatives are drawn from the entities that are not answers; without, they
    may be answers, as in the published code. With `shared`, all queries have the same negatives,
    except that with `filtered` a query has one of its own in the place of each that answers it.
    The first `near` negatives are drawn from the query's near misses, if it has any.
    """
    batch = len(pool.row_starts)
    device = pool.anchors.device
    anchors = torch.empty(batch, pool.anchors.shape[1], dtype=torch.int32, device=device)
    relations = torch.empty(batch, pool.relations.shape[1], dtype=torch.int32, device=device)
    candidates = torch.empty(batch, positives + negatives, dtype=torch.int32, device=device)
    weights = torch.empty(batch, device=device)
    _draw_kernel[(batch,)](
        pool.anchors,
        pool.relations,
        pool.answer_offsets,
        pool.answers,
        pool.weights,
        pool.near_offsets,
        pool.near_misses,
        pool.row_starts,
        pool.row_counts,
        counter,
        anchors,
        relations,
        candidates,
        weights,
        seed,
        num_entities,
        positives,
        negatives,
        near,
        ahead,
        NUM_ANCHORS=pool.anchors.shape[1],
        NUM_RELATIONS=pool.relations.shape[1],
        FILTERED=filtered,
        SHARED=shared,
        HAS_NEAR=near > 0,
        ROUNDS=pool.most_answers.bit_length(),
        BLOCK=triton.next_power_of_2(max(positives, negatives)),
        num_warps=1,
        enable_fp_fusion=True,
    )
    return Drawn(anchors, relations, candidates, weights / weights.sum(), positives)


@triton.jit
def _skip_answers(index, answers_ptr, start, count, ROUNDS: tl.constexpr):
    """The `index`-th entity that is not among the sorted answers[start : start + count].

    `answers[j] - j` other entities precede answer j. The entity is therefore `index` plus the
    number of answers with `answers[j] - j <= index`, which a binary search of `ROUNDS` steps
    finds. No draw is rejected.
    """
    low = index * 0
    high = low + count
    for _ in tl.static_range(ROUNDS):
        middle = (low + high) // 2
        searching = low < high
        answer = tl.load(answers_ptr + start + middle, mask=searching, other=0)
        skipped = searching & (answer - middle <= index)
        low = tl.where(skipped, middle + 1, low)
        high = tl.where(searching & (answer - middle > index), middle, high)
    return index + low


@triton.jit
def _is_answer(entity, answers_ptr, start, count, ROUNDS: tl.constexpr):
    """Whether each entity is among the sorted answers[start : start + count]."""
    low = entity * 0
    high = low + count
    for _ in tl.static_range(ROUNDS):
        middle = (low + high) // 2
        searching = low < high
        answer = tl.load(answers_ptr + start + middle, mask=searching, other=0)
        low = tl.where(searching & (answer < entity), middle + 1, low)
        high = tl.where(searching & (answer >= entity), middle, high)
    return tl.load(answers_ptr + start + low, mask=low < count, other=-1) == entity


@triton.jit
def _draw_kernel(
    anchors_ptr,
    relations_ptr,
    answer_offsets_ptr,
    answers_ptr,
    weights_ptr,
    near_offsets_ptr,
    near_misses_ptr,
    row_starts_ptr,
    row_counts_ptr,
    counter_ptr,
    out_anchors_ptr,
    out_relations_ptr,
    out_candidates_ptr,
    out_weights_ptr,
    seed,
    num_entities,
    positives,
    negatives,
    near,
    ahead,
    NUM_ANCHORS: tl.constexpr,
    NUM_RELATIONS: tl.constexpr,
    FILTERED: tl.constexpr,
    SHARED: tl.constexpr,
    HAS_NEAR: tl.constexpr,
    ROUNDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    update = tl.load(counter_ptr) + ahead
    low = (update & 0xFFFFFFFF).to(tl.uint32)
    high = (update >> 32).to(tl.uint32)
    lane = tl.arange(0, BLOCK)
    lane32 = lane.to(tl.uint32)
    zero = lane32 * 0
    row32 = zero + row.to(tl.uint32)
    # One draw for the row's query and its first answer, the same in all lanes.
    pick0, pick1, _, _ = tl.philox(seed, zero, row32, zero + low, zero + high)
    count = zero + tl.load(row_counts_ptr + row).to(tl.uint32)
    chosen = tl.max(tl.umulhi(pick0, count).to(tl.int64), axis=0)
    query = tl.load(row_starts_ptr + row).to(tl.int64) + chosen
    start = tl.load(answer_offsets_ptr + query)
    stop = tl.load(answer_offsets_ptr + query + 1)
    size = zero + (stop - start).to(tl.uint32)
    out = row.to(tl.int64) * (positives + negatives)
    tl.store(out_weights_ptr + row, tl.load(weights_ptr + query))
    for slot in tl.static_range(NUM_ANCHORS):
        entity = tl.load(anchors_ptr + query * NUM_ANCHORS + slot)
        tl.store(out_anchors_ptr + row * NUM_ANCHORS + slot, entity)
    for slot in tl.static_range(NUM_RELATIONS):
        relation = tl.load(relations_ptr + query * NUM_RELATIONS + slot)
        tl.store(out_relations_ptr + row * NUM_RELATIONS + slot, relation)
    n0, n1, n2, _ = tl.philox(seed, lane32 + 1, row32, zero + low, zero + high)
    answer = tl.umulhi(tl.where(lane == 0, pick1, n1), size).to(tl.int64)
    positive = tl.load(answers_ptr + start + answer)
    tl.store(out_candidates_ptr + out + lane, positive, mask=lane < positives)
    if SHARED:
        # One draw for all rows, keyed by a row that no batch has.
        common, _, _, _ = tl.philox(seed, lane32 + 1, zero + 0xFFFFFFFF, zero + low, zero + high)
        shared = tl.umulhi(common, zero + num_entities.to(tl.uint32)).to(tl.int32)
    if FILTERED:
        answers = (stop - start).to(tl.int32)
        free = zero + (num_entities - answers).to(tl.uint32)
        negative = tl.umulhi(n0, free).to(tl.int32)
        negative = _skip_answers(negative, answers_ptr, start, answers, ROUNDS)
        if SHARED:
            own = _is_answer(shared, answers_ptr, start, answers, ROUNDS)
            negative = tl.where(own, negative, shared)
    elif SHARED:
        negative = shared
    else:
        negative = tl.umulhi(n0, zero + num_entities.to(tl.uint32)).to(tl.int32)
    if HAS_NEAR:
        near_start = tl.load(near_offsets_ptr + query)
        near_count = zero + (tl.load(near_offsets_ptr + query + 1) - near_start).to(tl.uint32)
        is_near = (lane < near) & (near_count > 0)
        place = tl.umulhi(n2, near_count).to(tl.int64)
        close = tl.load(near_misses_ptr + near_start + place, mask=is_near, other=0)
        negative = tl.where(is_near, close, negative)
    tl.store(out_candidates_ptr + out + positives + lane, negative, mask=lane < negatives)
