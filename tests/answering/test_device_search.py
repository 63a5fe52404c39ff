"""The search with a GPU's kernel against sorting all scores; interpreted without a GPU."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from hypothesis import given
from hypothesis import strategies as st

from conekg.answering.device_search import DeviceSearch
from conekg.model.catalog import build_model
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
    st.lists(
        st.tuples(
            st.integers(0, NUM_ENTITIES + 2),
            st.sets(st.integers(0, NUM_ENTITIES - 1), max_size=NUM_ENTITIES),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_the_best_that_are_not_skipped_in_order(
    name: str, wishes: list[tuple[int, set[int]]]
) -> None:
    model, table = MODELS[name], TABLES[name]
    region = regions(model, len(wishes))
    counts = [count for count, _ in wishes]
    skip = [np.array(sorted(ids), dtype=np.int32) for _, ids in wishes]
    with torch.inference_mode():
        found = DeviceSearch(table).top(region, counts, skip)
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
        found = DeviceSearch(table).top(region, ones, nothing)
    assert [ranking.entity_ids.tolist() for ranking in found] == [[e] for e in entities.tolist()]
    assert all(np.isfinite(ranking.scores).all() for ranking in found)
