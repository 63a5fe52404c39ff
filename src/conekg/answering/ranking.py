"""Rankings: entities in the order of their scores; equal scores rank by entity id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from conekg.graph.adjacency import IntArray, LongArray


@dataclass(frozen=True)
class Ranking:
    """Entities of one region, best first."""

    entity_ids: LongArray
    """[k]"""
    scores: NDArray[np.float64]
    """[k] logits, falling."""


def rank(ids: Tensor, scores: Tensor, count: int) -> Ranking:
    """The `count` best of the entities `ids`, by `scores`; both [candidates], on any device."""
    return rank_arrays(ids.cpu().numpy(), scores.double().cpu().numpy(), count)


def rank_arrays(ids: LongArray, scores: NDArray[np.float64], count: int) -> Ranking:
    """The same as `rank`, for NumPy arrays."""
    order = np.lexsort((ids, -scores))[:count]
    return Ranking(ids[order], scores[order])


def best(scores: Tensor, count: int, skip: IntArray) -> Ranking:
    """The `count` best of all entities not in `skip`, from their scores [num_entities]."""
    scores = scores.clone()
    scores[torch.as_tensor(skip, dtype=torch.long, device=scores.device)] = -torch.inf
    count = min(count, len(scores) - len(skip))
    if count <= 0:
        return Ranking(np.empty(0, dtype=np.int64), np.empty(0))
    worst = scores.topk(count).values[-1]
    ids = (scores >= worst).nonzero()[:, 0]  # may be more than `count` when there are ties
    return rank(ids, scores[ids], count)


def merge_rankings(rankings: Sequence[Ranking], count: int) -> tuple[Ranking, LongArray]:
    """The `count` best entities of a union of regions, and the place of each one's region.

    An entity's score is that of its best region. If it is among the best `count` of the union, it
    is among the best `count` of that region, so rankings of `count` entities are enough.
    """
    if len(rankings) == 1:  # most queries have one region, already in order
        (only,) = rankings
        best_ids, best_scores = only.entity_ids[:count], only.scores[:count]
        return Ranking(best_ids, best_scores), np.zeros(len(best_ids), dtype=np.int64)
    ids = np.concatenate([ranking.entity_ids for ranking in rankings])
    scores = np.concatenate([ranking.scores for ranking in rankings])
    origin = np.repeat(np.arange(len(rankings)), [len(ranking.scores) for ranking in rankings])
    order = np.lexsort((ids, -scores))
    _, first = np.unique(ids[order], return_index=True)
    order = order[np.sort(first)][:count]
    return Ranking(ids[order], scores[order]), origin[order]
