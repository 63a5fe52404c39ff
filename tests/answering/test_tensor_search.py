"""Searching by tensor operations: what blocks of dimensions leave, and that all is found."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.answering import tensor_search
from conekg.answering.search import all_points
from conekg.answering.tensor_search import BlockSearch, FullSearch, nearest_by_blocks
from conekg.model.catalog import build_model
from conekg.model.cone import ConeConfig

NOBODY = np.empty(0, dtype=np.int32)


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


@pytest.mark.parametrize("count", [0, 3, 60, 90])
def test_any_number_of_entities_can_be_asked_for(count: int) -> None:
    model = build_model("cone", 60, 3, ConeConfig(dim=150, hidden=4), 2).double().eval()
    with torch.inference_mode():
        region = model.anchor(torch.tensor([7]))
        (found,) = BlockSearch(model, all_points(model)).top(region, [count], [NOBODY])
        (expected,) = FullSearch(model).top(region, [count], [NOBODY])
    assert found.entity_ids.tolist() == expected.entity_ids.tolist()
    assert len(found.entity_ids) == min(count, 60)


@pytest.mark.parametrize("rows", [1, 4, 5])
def test_blocks_find_what_the_full_search_finds(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One region after the other, of many all at once."""
    model = build_model("cone", 60, 3, ConeConfig(dim=150, hidden=4), 2).double().eval()
    calls: list[int] = []

    def remember(*arguments) -> torch.Tensor:
        calls.append(1)
        return nearest_by_blocks(*arguments)

    monkeypatch.setattr(tensor_search, "nearest_by_blocks", remember)
    counts = [7 * row + 1 for row in range(rows)]
    skip = [np.arange(20 * row % 61, dtype=np.int32) for row in range(rows)]
    with torch.inference_mode():
        region = model.project(model.anchor(torch.arange(rows)), torch.arange(rows) % 3)
        by_blocks = BlockSearch(model, all_points(model)).top(region, counts, skip)
        in_full = FullSearch(model).top(region, counts, skip)
    assert len(calls) == (rows if rows <= 4 else 0)
    for one, other in zip(by_blocks, in_full, strict=True):
        assert one.entity_ids.tolist() == other.entity_ids.tolist()
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-12)
