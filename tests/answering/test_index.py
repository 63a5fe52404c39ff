"""The index returns the best entities, whichever way it takes to find them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import small_models
from conekg.answering import index as index_module
from conekg.answering.index import (
    EntityIndex,
    Ranking,
    all_points,
    best,
    measure_recall,
    merge_rankings,
    nearest_by_blocks,
)
from conekg.answering.shortlist import HarmonicShortlist
from conekg.model.catalog import build_model
from conekg.model.cone import Cone, ConeConfig
from conekg.model.interface import QueryModel, Region

NAMES = ("cone", "gqe", "box", "beta", "emql")
NOBODY = np.empty(0, dtype=np.int32)


def one_hop(model: QueryModel, rows: int) -> Region:
    heads = torch.arange(rows) % model.num_entities
    relations = torch.arange(rows) % model.num_relations
    with torch.inference_mode():
        return model.project(model.anchor(heads), relations)


def check(model: QueryModel, region: Region, counts: list[int], skip: list[np.ndarray]) -> None:
    """Compare with scores of everything, sorted by falling score and rising id."""
    with torch.inference_mode():
        logits = model.logits_of_all(region).double().numpy()
    rankings = EntityIndex(model).top(region, counts, skip)
    for scores, count, skipped, ranking in zip(logits, counts, skip, rankings, strict=True):
        allowed = np.setdiff1d(np.arange(model.num_entities), skipped)
        wanted = np.sort(scores[allowed])[::-1][:count]
        np.testing.assert_allclose(ranking.scores, wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(scores[ranking.entity_ids], wanted, rtol=1e-4, atol=1e-4)
        assert len(set(ranking.entity_ids.tolist())) == len(wanted)
        assert not set(ranking.entity_ids.tolist()) & set(skipped.tolist())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_model_is_searched(name: str, dtype: torch.dtype) -> None:
    model = small_models.small_model(name).to(dtype)
    skip = [NOBODY, np.array([0, 3], dtype=np.int32), np.arange(8, dtype=np.int32), NOBODY]
    check(model, one_hop(model, 4), [1, 3, 5, 20], skip)


@pytest.mark.parametrize("shortlist", [None, True])
@pytest.mark.parametrize("name", ["cone", "gqe", "box", "beta"])
def test_a_derived_model_is_searched_by_its_own_distance(name: str, shortlist: bool | None) -> None:
    model = small_models.small_model(name).float()
    kind = type(model)

    def opposite(self, region, points):
        return 9.0 - kind.distance_to_points(self, region, points)

    model.__class__ = type("Derived", (kind,), {"distance_to_points": opposite})
    assert EntityIndex(model, shortlist=shortlist).recall == 1.0
    check(model, one_hop(model, 3), [1, 3, 5], [NOBODY] * 3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["cone", "gqe", "box", "beta"])
@pytest.mark.parametrize("rows", [1, 9, 70])
def test_a_gpu_finds_what_a_cpu_finds(name: str, rows: int) -> None:
    model = build_model(name, 3000, 6, small_models.SMALL_OPTIONS[name] | {"dim": 96}, 0).eval()
    region = one_hop(model, rows)
    counts = [row % 12 for row in range(rows)]
    skip = [np.arange(row, dtype=np.int32) for row in range(rows)]
    expected = EntityIndex(model).top(region, counts, skip)
    on_gpu = EntityIndex(model.cuda())
    found = on_gpu.top(tuple(part.cuda() for part in region), counts, skip)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4, atol=1e-4)


def test_many_rows_are_taken_in_chunks() -> None:
    model = build_model("cone", 50, 6, ConeConfig(dim=8, hidden=8), 0).eval()
    counts = [row % 11 for row in range(70)]
    skip = [np.arange(row % 13, dtype=np.int32) for row in range(70)]
    check(model, one_hop(model, 70), counts, skip)


@given(data=st.data())
def test_tensor_blocks_hold_the_nearest(data: st.DataObject) -> None:
    num_entities = data.draw(st.integers(1, 30))
    dim = data.draw(st.sampled_from([1, 64, 150]))
    model = build_model("cone", num_entities, 2, ConeConfig(dim=dim, hidden=4), 1).double().eval()
    copies = data.draw(st.lists(st.integers(0, num_entities - 1), max_size=10))
    points = all_points(model)
    points = torch.cat([points, points[copies]])
    count = data.draw(st.integers(1, len(points)))
    skip = np.array(sorted(data.draw(st.sets(st.integers(0, len(points) - 1)))), dtype=np.int32)
    with torch.inference_mode():
        region = model.anchor(torch.tensor([0]))  # which an entity and its copies are no way from
        if data.draw(st.booleans(), label="projected"):
            region = model.project(region, torch.tensor([1]))
        ids = nearest_by_blocks(model, points, region, count, skip).numpy()
        distances = model.distance_to_points(region, points[None])[0].numpy()
    assert (np.diff(ids) > 0).all()
    assert not set(ids.tolist()) & set(skip.tolist())
    allowed = np.setdiff1d(np.arange(len(points)), skip)
    wanted = np.sort(distances[allowed])[:count]
    np.testing.assert_allclose(np.sort(distances[ids])[: len(wanted)], wanted, rtol=1e-12)


def test_tensor_blocks_lose_nobody_to_rounding() -> None:
    """Sums by blocks differ in the last bits from whole ones, which say how far is too far."""
    model = build_model("cone", 3, 2, ConeConfig(dim=150, hidden=4), 1).double().eval()
    points, heads = all_points(model), torch.arange(6) % 3
    with torch.inference_mode():
        regions = model.project(model.anchor(heads), torch.arange(6) // 3)
        distances = model.distance_to_points(regions, points[None])
        for row, by_distance in enumerate(distances.argsort(dim=1).tolist()):
            region = tuple(part[row : row + 1] for part in regions)
            for count in (1, 2):
                ids = nearest_by_blocks(model, points, region, count, NOBODY).tolist()
                assert set(by_distance[:count]) <= set(ids)


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
    parts = [best(torch.tensor(row), count + more, NOBODY) for row in rows]
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


def test_a_negative_scale_turns_the_order_around() -> None:
    model = build_model("cone", 30, 2, ConeConfig(dim=140, hidden=4), 0).eval()
    assert isinstance(model, Cone)
    with torch.no_grad():
        model.scale.fill_(-0.1)
    check(model, one_hop(model, 2), [3, 3], [NOBODY] * 2)


def test_where_no_distance_counts_all_rank_by_id() -> None:
    model = build_model("cone", 30, 2, ConeConfig(dim=140, hidden=4), 0).eval()
    assert isinstance(model, Cone)
    with torch.no_grad():
        model.scale.fill_(0.0)
    skip = [NOBODY, np.array([1], dtype=np.int32)]
    found = EntityIndex(model).top(one_hop(model, 2), [3, 3], skip)
    assert [ranking.entity_ids.tolist() for ranking in found] == [[0, 1, 2], [0, 2, 3]]
    assert all(ranking.scores.tolist() == [model.gamma] * 3 for ranking in found)


def test_a_large_table_is_searched_by_shortlist_and_its_recall_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of sixteen links spread over entities and relations: which of their ten best it holds."""
    model = build_model("cone", 60, 4, ConeConfig(dim=32, hidden=16), 0).eval()
    assert isinstance(model, Cone)
    monkeypatch.setattr(index_module, "SHORTLIST_SIZE", 10)
    held = 0
    for i in range(16):
        head, relation = torch.tensor([59 * i // 15]), torch.tensor([3 * i // 15])
        with torch.inference_mode():
            region = model.project(model.anchor(head), relation)
            logits = model.logits_of_all(region)[0].tolist()
            listed = HarmonicShortlist(model).candidates(region, 10)[0].tolist()
        held += len(set(sorted(range(60), key=lambda e: -logits[e])[:10]) & set(listed))
    assert held < 160
    for least, shortlist, recall in (
        (60, None, held / 160),
        (61, None, 1.0),
        (60, False, 1.0),
        (61, True, held / 160),
    ):
        monkeypatch.setattr(index_module, "SHORTLIST_FROM", least)
        assert EntityIndex(model, shortlist=shortlist).recall == recall


def test_a_shortlist_is_rescored_and_its_recall_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model("cone", 3000, 4, ConeConfig(dim=32, hidden=16), 0).eval()
    assert isinstance(model, Cone)
    index = EntityIndex(model, shortlist=True)
    assert 0.95 <= index.recall <= 1.0
    assert index.recall == measure_recall(model, HarmonicShortlist(model))
    region = one_hop(model, 4)
    full = EntityIndex(model, shortlist=False)
    nearest = full.top(region, [3] * 4, [NOBODY] * 4)
    skip = [np.sort(ranking.entity_ids).astype(np.int32) for ranking in nearest]
    counts = [10, 2, 12, 10]
    exact = full.top(region, counts, skip)
    found = usual = index.top(region, counts, skip)
    for one, other, count, skipped in zip(found, exact, counts, skip, strict=True):
        assert len(one.entity_ids) == count
        assert len(np.intersect1d(one.entity_ids, other.entity_ids)) >= count - 1
        assert len(np.intersect1d(one.entity_ids, skipped)) == 0
    assert EntityIndex(model).recall == 1.0
    # One row that leaves few to choose from costs the others nothing, and is searched exactly.
    sizes: list[tuple[int, ...]] = []
    logits = model.logits

    def remember(rows: Region, ids: torch.Tensor) -> torch.Tensor:
        sizes.append(tuple(ids.shape))
        return logits(rows, ids)

    monkeypatch.setattr(model, "logits", remember)
    nearly_all = np.delete(np.arange(3000, dtype=np.int32), [7, 1200, 2999])
    mixed = [skip[0], nearly_all, skip[2], np.arange(3000, dtype=np.int32)]
    found = index.top(region, counts, mixed)
    assert sorted(sizes) == [(1, 0), (1, 3), (2, 2003)]
    assert found[0].entity_ids.tolist() == usual[0].entity_ids.tolist()
    assert found[2].entity_ids.tolist() == usual[2].entity_ids.tolist()
    expected = full.top(region, counts, mixed)
    assert found[1].entity_ids.tolist() == expected[1].entity_ids.tolist()
    assert found[1].scores == pytest.approx(expected[1].scores, abs=1e-4)
    assert len(found[3].entity_ids) == 0
    # A long list is not cut off where the shortlist of a usual one ends.
    (long,) = index.top(one_hop(model, 1), [2500], [NOBODY])
    assert len(set(long.entity_ids.tolist())) == 2500
    # For each one asked for, twenty are looked at.
    index.top(one_hop(model, 1), [140], [NOBODY])
    assert sizes[-1] == (1, 2800)


def test_all_scores_are_made_ready_once() -> None:
    index = EntityIndex(small_models.small_model("cone"))
    assert index.table is index.table


def test_the_background_is_a_mean_over_spread_entities() -> None:
    model = build_model("cone", 100, 6, ConeConfig(dim=8, hidden=8), 0).eval()
    region = one_hop(model, 70)
    with torch.inference_mode():
        expected = model.logits_of_all(region)[:, ::3].mean(dim=1)
    np.testing.assert_allclose(EntityIndex(model).background(region), expected, rtol=1e-5)
