"""The memo of judged queries is never wrong, and what it forgets does not change the sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.shape import STRUCTURES
from conekg.sampling import attempt
from conekg.sampling.memo import UNKNOWN, make_memo, recall, remember
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.sample import SampledSet, sample_query_set

SHAPE = STRUCTURES["2in"]
ids = st.integers(0, 2)
queries = st.tuples(st.tuples(ids, ids), st.tuples(ids, ids))


def arrays(query: tuple[tuple[int, int], tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    anchors, relations = query
    return np.array(anchors, dtype=np.int32), np.array(relations, dtype=np.int32)


@given(st.lists(st.tuples(queries, st.integers(1, 7)), max_size=40), st.sampled_from([1, 2, 16]))
def test_a_slot_holds_the_last_query_that_was_hashed_to_it(judged, slots):
    memo = make_memo(SHAPE, slots)
    model: dict[int, tuple[object, int]] = {}
    for query, outcome in judged:
        slot, found = recall(memo, *arrays(query))
        assert 0 <= slot < slots
        kept, last = model.get(slot, (None, UNKNOWN))
        assert found == (last if kept == query else UNKNOWN)
        remember(memo, slot, *arrays(query), outcome)
        model[slot] = (query, outcome)


def test_queries_spread_over_the_slots():
    memo = make_memo(STRUCTURES["1p"], 1024)
    rows = np.arange(1024, dtype=np.int32)
    used = {recall(memo, rows[i : i + 1], rows[:1])[0] for i in range(1024)}
    assert len(used) > 550, "random slots would use 1 − 1/e of them, about 647"


def sampled(graph: KnowledgeGraph, workers: int) -> SampledSet:
    """A sample of nearly all queries of each shape, so that most attempts repeat an earlier one."""
    plain = SamplingProtocol("plain", cap=9, train_cap=9, train_negation_cap=9, patience=20_000)
    shapes = [STRUCTURES[name] for name in ("2p", "2i", "2in")]
    return sample_query_set(graph, "train", plain, 3, shapes=shapes, count=1500, workers=workers)


@pytest.mark.parametrize("slots", [1, 64])
def test_forgotten_queries_are_judged_again(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    whole = sampled(random_graph, 1)
    monkeypatch.setattr(attempt, "make_memo", lambda shape: make_memo(shape, slots))
    for workers in (1, 3):
        again = sampled(random_graph, workers)
        assert again.reports == whole.reports
        for block, same in zip(whole.query_set, again.query_set, strict=True):
            assert np.array_equal(block.anchors, same.anchors)
            assert np.array_equal(block.hard.values, same.hard.values)
    duplicates = [report.rejected.get("duplicate", 0) for report in whole.reports]
    assert min(duplicates) > 100, "the memo was used"


def test_duplicates_are_rejected_only_if_distinct(random_graph: KnowledgeGraph) -> None:
    counts = {}
    for distinct in (False, True):
        pieces = attempt.attempts(
            random_graph,
            "train",
            STRUCTURES["2p"],
            key=np.uint64(5),
            cap=None,
            tries=40,
            distinct=distinct,
            workers=1,
        )
        accepted = next(pieces).accepted
        rows = np.hstack([accepted.anchors, accepted.relations])
        counts[distinct] = (len(rows), len(np.unique(rows, axis=0)))
    assert counts[False][0] > counts[False][1] == counts[True][1] == counts[True][0]
