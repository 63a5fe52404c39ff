"""The search with a GPU's kernels against a full scan; interpreted without a GPU."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from hypothesis import given
from hypothesis import strategies as st

from conekg.answering import device_search
from conekg.answering.device_search import DeviceSearch, nearest_on_device
from conekg.model.catalog import build_model
from conekg.model.cone import Cone
from conekg.model.interface import QueryModel, Region
from conekg.model.scoring import DeviceTable

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_ENTITIES = 40
CONFIGS = {
    "cone": {"dim": 6, "hidden": 4},
    "box": {"dim": 6},
    "gqe": {"dim": 6},
}


def model_with_twins(name: str) -> QueryModel:
    """A random model in which every other entity is a copy of the one before: ties everywhere."""
    model = build_model(name, NUM_ENTITIES, 4, CONFIGS[name], seed=1).eval()
    with torch.no_grad():
        model.entity[1::2] = model.entity[0::2]
    return model.to(DEVICE)


MODELS = {name: model_with_twins(name) for name in CONFIGS}
TABLES = {name: DeviceTable(model) for name, model in MODELS.items()}


def regions(model: QueryModel, rows: int) -> Region:
    heads = torch.arange(rows, device=DEVICE) * 7 % NUM_ENTITIES
    with torch.inference_mode():
        return model.project(model.anchor(heads), heads % 4)


def expected(logits: np.ndarray, count: int, skip: list[int]) -> list[int]:
    """The best ids by falling logit and rising id, by sorting all of them."""
    left = [entity for entity in range(len(logits)) if entity not in skip]
    return sorted(left, key=lambda entity: (-logits[entity], entity))[:count]


@given(
    st.sampled_from(sorted(CONFIGS)),
    st.booleans(),
    st.lists(
        st.tuples(
            st.integers(0, NUM_ENTITIES + 2),
            st.sets(st.integers(0, NUM_ENTITIES - 1), max_size=NUM_ENTITIES),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1, 64]),
)
def test_the_same_as_a_full_scan(
    name: str, abandon: bool, wishes: list[tuple[int, set[int]]], seed_dims: int
) -> None:
    """Also if seeds are chosen by a single dimension, and so are not the nearest."""
    model, table = MODELS[name], TABLES[name]
    region = regions(model, len(wishes))
    counts = [count for count, _ in wishes]
    skip = [np.array(sorted(ids), dtype=np.int32) for _, ids in wishes]
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(device_search, "_SEED_DIMS", seed_dims)
        found = nearest_on_device(model, table, region, counts, skip, abandon=abandon)
        logits = table.logits(region).cpu().double().numpy()
    for row, (ranking, count) in enumerate(zip(found, counts, strict=True)):
        ids = ranking.entity_ids
        assert ids.tolist() == expected(logits[row], count, skip[row].tolist())
        assert ranking.scores.tolist() == logits[row][ids].tolist()


@pytest.mark.parametrize("name", CONFIGS)
def test_regions_without_extent_are_nearest_to_their_own_entity(name: str) -> None:
    """A distance of zero is not zero in the kernel, whose angles are rounded in another way."""
    model, table = MODELS[name], TABLES[name]
    entities = torch.arange(0, NUM_ENTITIES, 2, device=DEVICE)
    nothing = [np.empty(0, dtype=np.int32)] * len(entities)
    with torch.inference_mode():
        region = model.anchor(entities)
        ones = [1] * len(entities)
        found = nearest_on_device(model, table, region, ones, nothing, abandon=True)
    assert [ranking.entity_ids.tolist() for ranking in found] == [[e] for e in entities.tolist()]
    assert all(np.isfinite(ranking.scores).all() for ranking in found)


def test_the_number_of_entities_decides_on_abandoning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, table = MODELS["cone"], TABLES["cone"]
    region, counts = regions(model, 2), [3, 50]
    skip = [np.array([0], dtype=np.int32), np.arange(7, dtype=np.int32)]
    bounded: list[int] = []
    within = table.logits_within

    def remember(part: Region, bounds: torch.Tensor) -> torch.Tensor:
        bounded.append(len(bounds))
        return within(part, bounds)

    monkeypatch.setattr(table, "logits_within", remember)
    for least, calls in ((NUM_ENTITIES + 1, []), (NUM_ENTITIES, [2])):
        monkeypatch.setattr(device_search, "ABANDON_FROM", least)
        with torch.inference_mode():
            found = DeviceSearch(model, table).top(region, counts, skip)
            logits = table.logits(region).cpu().double().numpy()
        assert bounded == calls
        for row, (ranking, count) in enumerate(zip(found, counts, strict=True)):
            wanted = expected(logits[row], count, skip[row].tolist())
            assert ranking.entity_ids.tolist() == wanted
            assert ranking.scores.tolist() == logits[row][wanted].tolist()


def test_the_memory_for_seeds_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed takes a number per dimension; those of all seeds of many answers would be too many."""
    model, table = MODELS["cone"], TABLES["cone"]
    region, rows, count = regions(model, 3), 3, 20
    skip = [np.array([row], dtype=np.int32) for row in range(rows)]
    sizes: list[int] = []
    points = model.points

    def remember(entity_ids: torch.Tensor) -> torch.Tensor:
        found = points(entity_ids)
        sizes.append(found.numel())
        return found

    monkeypatch.setattr(model, "points", remember)
    monkeypatch.setattr(Cone, "distance", QueryModel.distance)  # not by the loops of a CPU
    with torch.inference_mode():
        whole = nearest_on_device(model, table, region, [count] * rows, skip, abandon=True)
        assert sizes == [rows * count * model.dim]
        sizes.clear()
        monkeypatch.setattr(device_search, "_NUMBERS_AT_ONCE", 7 * rows * model.dim)
        parts = nearest_on_device(model, table, region, [count] * rows, skip, abandon=True)
    assert sizes == [size * rows * model.dim for size in (7, 7, 6)]
    for ours, theirs in zip(parts, whole, strict=True):
        assert ours.entity_ids.tolist() == theirs.entity_ids.tolist()
        assert ours.scores.tolist() == theirs.scores.tolist()


def test_entities_beyond_the_bound_score_minus_infinity() -> None:
    model, table = MODELS["cone"], TABLES["cone"]
    region = regions(model, 2)
    with torch.inference_mode():
        full = table.distances(region)
        bounds = full.kthvalue(6, dim=1).values
        logits = table.logits_within(region, bounds)
    assert torch.equal(logits.isfinite(), full <= bounds[:, None])
    assert (full <= bounds[:, None]).sum() < full.numel()
