"""Which search is chosen for a model."""

from __future__ import annotations

import pytest
import torch

from conekg.answering import search
from conekg.answering.abandon import ScanSearch
from conekg.answering.device_search import DeviceSearch
from conekg.answering.search import FullSearch, all_points, choose_search
from conekg.answering.shortlist import ShortlistSearch
from conekg.model.interface import QueryModel
from conekg.model.scoring import ScoringTable, scoring_table
from small_models import NUM_ENTITIES, rough_model, small_model

SUMS = ("cone", "cone-rotation", "box", "gqe")


def no_table() -> ScoringTable:
    raise AssertionError("no scores of all entities are needed")


def chosen(model: QueryModel, shortlist: bool | None = None) -> type:
    return type(choose_search(model, no_table, shortlist=shortlist))


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_over_dimensions_is_abandoned_early(name: str) -> None:
    assert chosen(rough_model(name)) is ScanSearch
    assert chosen(small_model(name)) is FullSearch, "at double precision"


@pytest.mark.parametrize("name", ["beta", "emql"])
@pytest.mark.parametrize("shortlist", [None, True])
def test_other_distances_take_a_full_scan(name: str, shortlist: bool | None) -> None:
    assert chosen(rough_model(name), shortlist) is FullSearch


@pytest.mark.parametrize("name", SUMS)
def test_a_derived_model_with_its_own_distance_takes_a_full_scan(name: str) -> None:
    model = rough_model(name)
    kind = type(model)

    def twice(self, region, points):
        return 2.0 * kind.distance_to_points(self, region, points)

    model.__class__ = type("Derived", (kind,), {})
    assert chosen(model) is ScanSearch
    model.__class__ = type("Derived", (kind,), {"distance_to_points": twice})
    assert chosen(model) is FullSearch


@pytest.mark.parametrize("scale", [0.0, -0.1])
@pytest.mark.parametrize("shortlist", [None, True])
def test_a_scale_that_is_not_positive_takes_a_full_scan(
    scale: float, shortlist: bool | None
) -> None:
    model = rough_model("cone")
    with torch.no_grad():
        model.scale.fill_(scale)
    assert chosen(model, shortlist) is FullSearch


def test_cones_are_shortlisted_on_request_or_if_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = rough_model("cone").eval()
    assert chosen(model, shortlist=True) is ShortlistSearch
    monkeypatch.setattr(search, "SHORTLIST_FROM", NUM_ENTITIES)
    assert chosen(model) is ShortlistSearch
    assert chosen(model, shortlist=False) is ScanSearch
    assert chosen(rough_model("box"), shortlist=True) is ScanSearch
    monkeypatch.setattr(search, "SHORTLIST_FROM", NUM_ENTITIES + 1)
    assert chosen(model) is ScanSearch


@pytest.mark.gpu
@pytest.mark.parametrize("name", SUMS)
def test_a_gpu_searches_with_its_table(name: str) -> None:
    pytest.importorskip("triton")
    model = rough_model(name).cuda()
    assert type(choose_search(model, lambda: scoring_table(model))) is DeviceSearch


@pytest.mark.parametrize("name", [*SUMS, "beta", "emql"])
def test_every_search_but_the_shortlist_is_exact(name: str) -> None:
    assert choose_search(rough_model(name), no_table).recall == 1.0
    assert choose_search(small_model(name), no_table).recall == 1.0


def test_all_points_are_those_of_all_entities_in_order() -> None:
    model = small_model("cone")
    points = all_points(model)
    assert points.shape == (NUM_ENTITIES, model.dim)
    for entity in range(NUM_ENTITIES):
        torch.testing.assert_close(points[entity], model.points(torch.tensor(entity)))
