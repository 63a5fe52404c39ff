"""The index returns the best entities, whichever search it uses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import small_models
from conekg.answering import search, shortlist
from conekg.answering.index import EntityIndex
from conekg.answering.shortlist import HarmonicShortlist, measure_recall
from conekg.errors import ConeKGError
from conekg.model.catalog import build_model
from conekg.model.cone import Cone, ConeConfig
from conekg.model.interface import QueryModel, Region

NAMES = ("cone", "gqe", "box", "beta", "emql")
NO_IDS = np.empty(0, dtype=np.int32)


def one_hop(model: QueryModel, rows: int) -> Region:
    heads = torch.arange(rows) % model.num_entities
    relations = torch.arange(rows) % model.num_relations
    with torch.inference_mode():
        return model.project(model.anchor(heads), relations)


def check(model: QueryModel, region: Region, counts: list[int], skip: list[np.ndarray]) -> None:
    """Compare with the scores of all entities, sorted by falling score and rising id."""
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
    skip = [NO_IDS, np.array([0, 3], dtype=np.int32), np.arange(8, dtype=np.int32), NO_IDS]
    check(model, one_hop(model, 4), [1, 3, 5, 20], skip)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(name: str, value: float) -> None:
    model = small_models.small_model(name).float()
    model.entity[3, 0] = value
    with pytest.raises(ConeKGError, match="'entity' are not all finite"):
        EntityIndex(model)


@pytest.mark.parametrize("wanted", [None, True])
@pytest.mark.parametrize("name", ["cone", "gqe", "box", "beta"])
def test_a_derived_model_is_searched_by_its_own_distance(name: str, wanted: bool | None) -> None:
    model = small_models.small_model(name).float()
    kind = type(model)

    def opposite(self, region, points):
        return 9.0 - kind.distance_to_points(self, region, points)

    model.__class__ = type("Derived", (kind,), {"distance_to_points": opposite})
    assert EntityIndex(model, shortlist=wanted).recall == 1.0
    check(model, one_hop(model, 3), [1, 3, 5], [NO_IDS] * 3)


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


def test_a_negative_scale_reverses_the_order() -> None:
    model = build_model("cone", 30, 2, ConeConfig(dim=140, hidden=4), 0).eval()
    assert isinstance(model, Cone)
    with torch.no_grad():
        model.scale.fill_(-0.1)
    check(model, one_hop(model, 2), [3, 3], [NO_IDS] * 2)


def test_at_scale_zero_all_entities_rank_by_id() -> None:
    model = build_model("cone", 30, 2, ConeConfig(dim=140, hidden=4), 0).eval()
    assert isinstance(model, Cone)
    with torch.no_grad():
        model.scale.fill_(0.0)
    skip = [NO_IDS, np.array([1], dtype=np.int32)]
    found = EntityIndex(model).top(one_hop(model, 2), [3, 3], skip)
    assert [ranking.entity_ids.tolist() for ranking in found] == [[0, 1, 2], [0, 2, 3]]
    assert all(ranking.scores.tolist() == [model.gamma] * 3 for ranking in found)


def test_a_large_table_is_searched_by_shortlist_with_measured_recall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The recall is over the ten best of sixteen links spread over entities and relations."""
    model = build_model("cone", 60, 4, ConeConfig(dim=32, hidden=16), 0).eval()
    assert isinstance(model, Cone)
    monkeypatch.setattr(shortlist, "SHORTLIST_SIZE", 10)
    held = 0
    for i in range(16):
        head, relation = torch.tensor([59 * i // 15]), torch.tensor([3 * i // 15])
        with torch.inference_mode():
            region = model.project(model.anchor(head), relation)
            logits = model.logits_of_all(region)[0].tolist()
            listed = HarmonicShortlist(model).candidates(region, 10)[0].tolist()
        held += len(set(sorted(range(60), key=lambda e: -logits[e])[:10]) & set(listed))
    assert held < 160
    for least, wanted, recall in (
        (60, None, held / 160),
        (61, None, 1.0),
        (60, False, 1.0),
        (61, True, held / 160),
    ):
        monkeypatch.setattr(search, "SHORTLIST_FROM", least)
        assert EntityIndex(model, shortlist=wanted).recall == recall


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_shortlist_is_rescored_and_its_recall_measured(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build_model("cone", 3000, 4, ConeConfig(dim=32, hidden=16), 0).to(dtype).eval()
    assert isinstance(model, Cone)
    index = EntityIndex(model, shortlist=True)
    assert 0.95 <= index.recall <= 1.0
    assert index.recall == measure_recall(model, HarmonicShortlist(model))
    region = one_hop(model, 4)
    full = EntityIndex(model, shortlist=False)
    nearest = full.top(region, [3] * 4, [NO_IDS] * 4)
    skip = [np.sort(ranking.entity_ids).astype(np.int32) for ranking in nearest]
    counts = [10, 2, 12, 10]
    exact = full.top(region, counts, skip)
    found = usual = index.top(region, counts, skip)
    for one, other, count, skipped in zip(found, exact, counts, skip, strict=True):
        assert len(one.entity_ids) == count
        assert len(np.intersect1d(one.entity_ids, other.entity_ids)) >= count - 1
        assert len(np.intersect1d(one.entity_ids, skipped)) == 0
    assert EntityIndex(model).recall == 1.0
    # A row that leaves few entities is searched exactly, without changing the other rows.
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
    # A long list of answers gets a longer shortlist.
    (long,) = index.top(one_hop(model, 1), [2500], [NO_IDS])
    assert len(set(long.entity_ids.tolist())) == 2500
    # Twenty entities per answer wanted.
    index.top(one_hop(model, 1), [140], [NO_IDS])
    assert sizes[-1] == (1, 2800)


def test_the_scoring_table_is_made_once() -> None:
    index = EntityIndex(small_models.small_model("cone"))
    assert index.table is index.table


def test_the_background_is_a_mean_over_spread_entities() -> None:
    model = build_model("cone", 100, 6, ConeConfig(dim=8, hidden=8), 0).eval()
    region = one_hop(model, 70)
    with torch.inference_mode():
        expected = model.logits_of_all(region)[:, ::3].mean(dim=1)
    np.testing.assert_allclose(EntityIndex(model).background(region), expected, rtol=1e-5)
