"""Training batches drawn on the device by one kernel.

Every number comes from a counter-based generator (Philox, Salmon et al. 2011) keyed
by the seed and the number of the update, which is read from device memory: a
captured graph can be replayed, and a resumed run draws what an unbroken one would.
Uniform integers are the high half of a 32-bit product: the bias is below size / 2^32.
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
    """[queries] float32 subsampling weights"""
    row_starts: Tensor
    """[batch] int32: where the shape of batch row b starts in the table"""
    row_counts: Tensor
    """[batch] int32: how many queries that shape has"""


@dataclass(frozen=True)
class Drawn:
    """One batch."""

    anchors: Tensor
    """[batch, widest]"""
    relations: Tensor
    """[batch, widest]"""
    candidates: Tensor
    """[batch, 1 + negatives] the positive first"""
    weights: Tensor
    """[batch] sum to one"""


def draw(
    pool: Pool,
    counter: Tensor,
    seed: int,
    *,
    num_entities: int,
    negatives: int,
    filtered: bool,
) -> Drawn:
    """A batch: uniform queries of each row's shape, a uniform answer, uniform negatives.

    `counter` [1] int64 is the number of the update. With `filtered`, a negative that is an
    answer is drawn again, three times at most; without, negatives may be answers, as in the
    published code.
    """
    batch = len(pool.row_starts)
    device = pool.anchors.device
    anchors = torch.empty(batch, pool.anchors.shape[1], dtype=torch.int32, device=device)
    relations = torch.empty(batch, pool.relations.shape[1], dtype=torch.int32, device=device)
    candidates = torch.empty(batch, 1 + negatives, dtype=torch.int32, device=device)
    weights = torch.empty(batch, device=device)
    _draw_kernel[(batch,)](
        pool.anchors,
        pool.relations,
        pool.answer_offsets,
        pool.answers,
        pool.weights,
        pool.row_starts,
        pool.row_counts,
        counter,
        anchors,
        relations,
        candidates,
        weights,
        seed,
        num_entities,
        negatives,
        NUM_ANCHORS=pool.anchors.shape[1],
        NUM_RELATIONS=pool.relations.shape[1],
        FILTERED=filtered,
        BLOCK_NEGATIVES=triton.next_power_of_2(negatives),
        num_warps=1,
    )
    return Drawn(anchors, relations, candidates, weights / weights.sum())


@triton.jit
def _is_answer(candidate, answers_ptr, start, stop, valid):
    """Whether each candidate occurs in the sorted answers[start:stop]; binary search."""
    low = tl.zeros_like(candidate).to(tl.int64) + start
    high = tl.zeros_like(candidate).to(tl.int64) + stop
    for _ in range(32):
        middle = (low + high) // 2
        open_ = valid & (low < high)
        value = tl.load(answers_ptr + middle, mask=open_, other=0)
        right = open_ & (value < candidate)
        low = tl.where(right, middle + 1, low)
        high = tl.where(open_ & (value >= candidate), middle, high)
    value = tl.load(answers_ptr + low, mask=valid & (low < stop), other=-1)
    return value == candidate


@triton.jit
def _draw_kernel(
    anchors_ptr,
    relations_ptr,
    answer_offsets_ptr,
    answers_ptr,
    weights_ptr,
    row_starts_ptr,
    row_counts_ptr,
    counter_ptr,
    out_anchors_ptr,
    out_relations_ptr,
    out_candidates_ptr,
    out_weights_ptr,
    seed,
    num_entities,
    negatives,
    NUM_ANCHORS: tl.constexpr,
    NUM_RELATIONS: tl.constexpr,
    FILTERED: tl.constexpr,
    BLOCK_NEGATIVES: tl.constexpr,
):
    row = tl.program_id(0)
    update = tl.load(counter_ptr)
    low = (update & 0xFFFFFFFF).to(tl.uint32)
    high = (update >> 32).to(tl.uint32)
    lane = tl.arange(0, BLOCK_NEGATIVES)
    valid = lane < negatives
    lane32 = lane.to(tl.uint32)
    zero = lane32 * 0
    row32 = zero + row.to(tl.uint32)
    # One generator call for the row's own choices; lane 0 is as good as any.
    pick0, pick1, _, _ = tl.philox(seed, zero, row32, zero + low, zero + high)
    count = zero + tl.load(row_counts_ptr + row).to(tl.uint32)
    chosen = tl.max(tl.umulhi(pick0, count).to(tl.int64), axis=0)
    query = tl.load(row_starts_ptr + row).to(tl.int64) + chosen
    start = tl.load(answer_offsets_ptr + query)
    stop = tl.load(answer_offsets_ptr + query + 1)
    size = zero + (stop - start).to(tl.uint32)
    answer = tl.max(tl.umulhi(pick1, size).to(tl.int64), axis=0)
    out = row.to(tl.int64) * (negatives + 1)
    tl.store(out_candidates_ptr + out, tl.load(answers_ptr + start + answer))
    tl.store(out_weights_ptr + row, tl.load(weights_ptr + query))
    for slot in tl.static_range(NUM_ANCHORS):
        entity = tl.load(anchors_ptr + query * NUM_ANCHORS + slot)
        tl.store(out_anchors_ptr + row * NUM_ANCHORS + slot, entity)
    for slot in tl.static_range(NUM_RELATIONS):
        relation = tl.load(relations_ptr + query * NUM_RELATIONS + slot)
        tl.store(out_relations_ptr + row * NUM_RELATIONS + slot, relation)
    n0, n1, n2, n3 = tl.philox(seed, lane32 + 1, row32, zero + low, zero + high)
    entities = zero + num_entities.to(tl.uint32)
    negative = tl.umulhi(n0, entities).to(tl.int32)
    if FILTERED:
        again = _is_answer(negative, answers_ptr, start, stop, valid)
        negative = tl.where(again, tl.umulhi(n1, entities).to(tl.int32), negative)
        again = _is_answer(negative, answers_ptr, start, stop, valid)
        negative = tl.where(again, tl.umulhi(n2, entities).to(tl.int32), negative)
        again = _is_answer(negative, answers_ptr, start, stop, valid)
        negative = tl.where(again, tl.umulhi(n3, entities).to(tl.int32), negative)
    tl.store(out_candidates_ptr + out + 1 + lane, negative, mask=valid)
