"""Which threads an update uses; what it does to parameters is tested with the loop and the loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from conekg.model.catalog import build_model
from conekg.training.batches import move_to_device
from conekg.training.updater import WORTH_A_THREAD, EagerUpdater, one_thread
from tiny import tiny_graph, tiny_queries, tiny_recipe


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_state_that_was_loaded_stays_what_it_is() -> None:
    """Two updaters that continue from one state do not move each other's moments."""
    recipe, graph = tiny_recipe(), tiny_graph()
    shapes = recipe.training.trained_shapes()
    data = move_to_device(tiny_queries()["train"], graph.num_entities, shapes, torch.device("cpu"))

    def new_updater() -> EagerUpdater:
        model = build_model(
            recipe.model, graph.num_entities, graph.num_relations, recipe.config, seed=0
        )
        return EagerUpdater(model, data, recipe.training)

    first, second = new_updater(), new_updater()
    first.step(1e-3)
    state = first.state()
    kept = {key: value.clone() for key, value in state.items()}
    second.load_state(state)
    second.step(1e-3)
    assert all(torch.equal(state[key], value) for key, value in kept.items())
    assert not torch.equal(second.state()["entity:exp_avg"], kept["entity:exp_avg"])


def test_every_update_has_random_numbers_of_its_own_and_a_repeat_has_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What dropout draws is asked for where an update begins to embed its queries."""
    recipe, graph = tiny_recipe(), tiny_graph()
    shapes = recipe.training.trained_shapes()
    data = move_to_device(tiny_queries()["train"], graph.num_entities, shapes, torch.device("cpu"))

    def drawn() -> list[float]:
        model = build_model(
            recipe.model, graph.num_entities, graph.num_relations, recipe.config, seed=0
        )
        seen: list[float] = []
        anchor = model.anchor
        monkeypatch.setattr(
            model, "anchor", lambda ids: seen.append(float(torch.rand(()))) or anchor(ids)
        )
        updater = EagerUpdater(model, data, recipe.training)
        for _ in range(3):
            updater.step(1e-3)
        return seen

    first = drawn()
    assert len(set(first)) == len(first) >= 3 * len(recipe.training.cycle)
    torch.rand(())  # what others draw in between plays no part
    assert drawn() == first


def test_one_thread_inside_and_as_many_as_before_outside() -> None:
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("is_small", [True, False])
def test_a_second_thread_only_where_there_is_work_for_it(
    monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    recipe = tiny_recipe()
    size = recipe.training.batch_size * recipe.config.dim
    assert size < WORTH_A_THREAD
    if not is_small:
        monkeypatch.setattr("conekg.training.updater.WORTH_A_THREAD", size)
    graph = tiny_graph()
    model = build_model(
        recipe.model, graph.num_entities, graph.num_relations, recipe.config, seed=0
    )
    seen: list[int] = []
    anchor = model.anchor
    monkeypatch.setattr(
        model, "anchor", lambda ids: seen.append(torch.get_num_threads()) or anchor(ids)
    )
    training = replace(recipe.training, steps=1)
    data = move_to_device(
        tiny_queries()["train"],
        graph.num_entities,
        training.trained_shapes(),
        torch.device("cpu"),
    )
    EagerUpdater(model, data, training).step(1e-3)
    assert set(seen) == {1 if is_small else 2}
    assert torch.get_num_threads() == 2
