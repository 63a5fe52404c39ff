"""Rankings are in the order of scores, ties by id, of one region and of a union."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.answering.ranking import Ranking, best, merge_rankings, rank

NO_IDS = np.empty(0, dtype=np.int32)


@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=12),
    count=st.integers(0, 14),
    seed=st.integers(0, 99),
)
def test_some_entities_rank_by_score_and_then_by_id(
    scores: list[float], count: int, seed: int
) -> None:
    ids = np.random.default_rng(seed).permutation(40)[: len(scores)]
    ranking = rank(torch.from_numpy(ids), torch.tensor(scores), count)
    expected = sorted(zip(ids.tolist(), scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
    found = zip(ranking.entity_ids.tolist(), ranking.scores.tolist(), strict=True)
    assert list(found) == expected[:count]
    assert ranking.scores.dtype == np.float64


@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=12),
    count=st.integers(1, 14),
    skip=st.sets(st.integers(0, 11)),
)
def test_best_breaks_ties_by_id(scores: list[float], count: int, skip: set[int]) -> None:
    skipped = np.array(sorted(i for i in skip if i < len(scores)), dtype=np.int32)
    given_scores = torch.tensor(scores)
    ranking = best(given_scores, count, skipped)
    assert given_scores.tolist() == scores, "arguments are never changed"
    allowed = [i for i in range(len(scores)) if i not in skip]
    assert ranking.entity_ids.tolist() == sorted(allowed, key=lambda i: (-scores[i], i))[:count]


@given(
    rows=st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=6, max_size=6), min_size=1, max_size=4
    ),
    count=st.integers(1, 8),
    more=st.integers(0, 2),
)
def test_a_union_ranks_by_the_best_branch(rows: list[list[float]], count: int, more: int) -> None:
    parts = [best(torch.tensor(row), count + more, NO_IDS) for row in rows]
    merged, origin = merge_rankings(parts, count)
    scores = np.max(rows, axis=0)
    assert merged.entity_ids.tolist() == sorted(range(6), key=lambda i: (-scores[i], i))[:count]
    np.testing.assert_array_equal(merged.scores, scores[merged.entity_ids])
    for branch, entity_id in zip(origin, merged.entity_ids, strict=True):
        assert rows[branch][entity_id] == scores[entity_id]


def test_merging_nothing_gives_nothing() -> None:
    empty = Ranking(np.empty(0, dtype=np.int64), np.empty(0))
    merged, _ = merge_rankings([empty, empty], 3)
    assert len(merged.entity_ids) == 0
