"""The eager updater: its loss, its random numbers, its state and its threads."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import ModuleSpec
from typing import Any

import pytest
import torch

from conekg.model.catalog import build_model
from conekg.model.embed import embed
from conekg.model.interface import QueryModel
from conekg.query.plan import plan_shapes
from conekg.query.shape import STRUCTURES
from conekg.training import updater as module
from conekg.training.batches import (
    BatchSampler,
    DeviceData,
    generator_at,
    load_training_data,
    move_to_device,
)
from conekg.training.recipe import IdleWeights, Pool, TrainingRecipe
from conekg.training.updater import WORTH_A_THREAD, EagerUpdater, make_updater, one_thread
from tiny import tiny_graph, tiny_queries, tiny_recipe


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"positives": 3},
        {"negatives": 9},
        {"negative_sampling": "uniform-published"},
        {"shared_negatives": True},
        {"near_misses": 0.5},
        {"adversarial_temperature": 2.0},
        {"answer_discount": 0.0},
        {"batch_size": 23},
        {"seed": 5},
    ],
    ids=str,
)
def test_an_update_minimises_the_loss_of_the_recipe(changes: dict[str, Any]) -> None:
    """The loss is that of the recipe's batch by the formula, followed by a step of Adam."""
    pool = Pool("mine", (("1p", 1.0), ("2i", 1.0), ("2in", 2.0)))
    recipe, graph = tiny_recipe("beta"), tiny_graph()
    plain = replace(
        recipe.training, pools=(pool,), cycle=("mine",), adversarial_temperature=0.0, near_misses=0
    )
    losses = []
    for training in (plain, replace(plain, **changes)):
        data = load_training_data(graph, tiny_queries()["train"], training, torch.device("cpu"))
        model = build_model("beta", graph.num_entities, graph.num_relations, recipe.config, seed=0)
        before = model.entity.detach().clone()
        losses.append(_loss_by_hand(model, data, training))
        updater = EagerUpdater(model, data, training)
        updater.step(1e-3)
        assert updater.take_loss()["mine"] == pytest.approx(losses[-1], rel=1e-5)
        # Adam's first step is as long as its learning rate wherever there is a gradient.
        moved = (model.entity.detach() - before).abs().max()
        assert float(moved) == pytest.approx(1e-3, rel=0.01)
    assert (losses[0] == losses[1]) == (not changes)


def _loss_by_hand(model: QueryModel, data: DeviceData, recipe: TrainingRecipe) -> float:
    """The loss of the first batch, one query after the other."""
    batch = BatchSampler(
        data,
        recipe.pools[0],
        recipe.batch_size,
        recipe.negatives,
        recipe.negative_sampling,
        positives=recipe.positives,
        near_misses=recipe.near_misses,
        shared_negatives=recipe.shared_negatives,
    ).draw(generator_at(recipe.seed, 0, 0, torch.device("cpu")))
    total = weights = 0.0
    row = 0
    for name, anchors, relations in zip(
        recipe.pools[0].shapes, batch.anchors, batch.relations, strict=True
    ):
        for query in range(len(anchors)):
            plan = plan_shapes([(STRUCTURES[name], 1)])
            ids = ([part[query : query + 1]] for part in (anchors, relations))
            with torch.no_grad():
                region = embed(model, plan, *ids)
                positive = model.logits(region, batch.positives[row : row + 1])[0].tolist()
                negative = model.logits(region, batch.negatives[row : row + 1])[0].tolist()
            shares = [math.exp(recipe.adversarial_temperature * logit) for logit in negative]
            weight = float(batch.weights[row])
            weights += weight
            total += weight * sum(math.log1p(math.exp(-x)) for x in positive) / len(positive)
            total += weight * sum(
                share * math.log1p(math.exp(x)) for share, x in zip(shares, negative, strict=True)
            ) / sum(shares)  # fmt: skip
            row += 1
    assert row == recipe.batch_size
    return total / (2 * weights)


def test_every_update_of_a_step_multiplies_by_the_current_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Autocast keeps its copies of the weights until it is left; here that of the CPU stands in."""
    recipe, graph, cpu = tiny_recipe("cone"), tiny_graph(), torch.device("cpu")
    training = replace(recipe.training, cycle=("everything",) * 3, precision="bfloat16")
    model = build_model("cone", graph.num_entities, graph.num_relations, recipe.config, seed=0)
    data = load_training_data(graph, tiny_queries()["train"], training, cpu)
    monkeypatch.setattr(
        "conekg.training.updater.matrix_precision",
        lambda *_: torch.autocast("cpu", torch.bfloat16),
    )
    weights, products = list[torch.Tensor](), list[bool]()

    def compare(layer: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        parts = (part.detach().bfloat16() for part in (*inputs, layer.weight, layer.bias))
        weights.append(layer.weight.detach().clone())
        products.append(torch.equal(output, torch.nn.functional.linear(*parts)))

    projection = model.get_submodule("projection")
    assert isinstance(projection, torch.nn.Sequential)
    projection[0].register_forward_hook(compare)
    EagerUpdater(model, data, training).step(0.1)
    assert len(products) >= 3
    assert not torch.equal(weights[0], weights[-1])
    assert all(products)


@pytest.mark.parametrize("idle_weights", ["rest", "drift"])
def test_weights_that_a_batch_does_not_use_rest_or_drift_by_their_momentum(
    idle_weights: IdleWeights,
) -> None:
    """The networks of intersections during one update of 2i and two of 1p."""
    recipe, graph, cpu = tiny_recipe("cone"), tiny_graph(), torch.device("cpu")
    pools = (Pool("other", (("2i", 1.0),)), Pool("path", (("1p", 1.0),)))
    training = replace(
        recipe.training, pools=pools, cycle=("other", "path", "path"), idle_weights=idle_weights
    )
    model = build_model("cone", graph.num_entities, graph.num_relations, recipe.config, seed=0)
    data = load_training_data(graph, tiny_queries()["train"], training, cpu)
    updater = EagerUpdater(model, data, training)
    weights = model.get_parameter("attention.0.weight")
    before = weights.detach().clone()
    updater.step(1e-2)
    state = updater.state()
    decayed = 2 if idle_weights == "drift" else 0
    gradient = state["attention.0.weight:exp_avg"] / (0.1 * 0.9**decayed)
    assert int(state["attention.0.weight:step"]) == 1 + decayed
    assert gradient.abs().max() > 1e-6
    moved = torch.zeros_like(before)
    for update in range(1, 2 + decayed):
        first = 0.1 * 0.9 ** (update - 1) * gradient / (1 - 0.9**update)
        second = 0.001 * 0.999 ** (update - 1) * gradient**2 / (1 - 0.999**update)
        moved += 1e-2 * first / (second.sqrt() + 1e-8)
    torch.testing.assert_close(weights.detach(), before - moved, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("frozen", [None, "relation", "entity"])
@pytest.mark.parametrize("has_triton", [True, False])
def test_frozen_weights_are_not_changed(
    monkeypatch: pytest.MonkeyPatch, frozen: str | None, has_triton: bool
) -> None:
    """The fused updater is not used then: its kernels move every row of the entity table.

    Nor is it used without Triton, in which the kernels are written.
    """
    recipe, graph, cpu = tiny_recipe("gqe"), tiny_graph(), torch.device("cpu")
    model = build_model("gqe", graph.num_entities, graph.num_relations, recipe.config, seed=0)
    if frozen is not None:
        model.get_parameter(frozen).requires_grad_(False)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    data = load_training_data(graph, tiny_queries()["train"], recipe.training, cpu)
    fused = types.ModuleType("conekg.training.fused")
    fused.__dict__.update(can_fuse=lambda *_: True, FusedUpdater=lambda *_: None)
    monkeypatch.setitem(sys.modules, "conekg.training.fused", fused)
    monkeypatch.setattr(
        module, "find_spec", lambda _: ModuleSpec("triton", None) if has_triton else None
    )
    monkeypatch.setattr(model, "to", lambda device: model)
    updater = make_updater(model, data, recipe.training, torch.device("cuda"))
    assert (updater is None) == (frozen is None and has_triton)
    updater = make_updater(model, data, recipe.training, cpu)
    updater.step(1e-3)
    moved = [name for name, value in model.named_parameters() if not value.equal(before[name])]
    assert set(before) - set(moved) == ({frozen} if frozen else set())


def test_losses_are_reported_once_and_only_for_trained_pools() -> None:
    recipe, graph = tiny_recipe(), tiny_graph()
    data = load_training_data(graph, tiny_queries()["train"], recipe.training, torch.device("cpu"))
    model = build_model(
        recipe.model, graph.num_entities, graph.num_relations, recipe.config, seed=0
    )
    updater = EagerUpdater(model, data, recipe.training)
    assert updater.take_loss() == {}
    updater.step(1e-3)
    alone = updater.take_loss()
    assert alone.keys() == set(recipe.training.cycle)
    assert updater.take_loss() == {}
    again = EagerUpdater(
        build_model(recipe.model, graph.num_entities, graph.num_relations, recipe.config, seed=0),
        data,
        recipe.training,
    )
    updater.step(1e-3)
    second = updater.take_loss()
    for _ in range(2):
        again.step(1e-3)
    both = again.take_loss()
    assert both == pytest.approx({pool: (alone[pool] + second[pool]) / 2 for pool in alone})


def test_a_loaded_state_is_not_modified() -> None:
    """Two updaters that continue from one state do not change each other's moments."""
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
    assert [int(each.state()["steps"]) for each in (first, second)] == [1, 2]


def test_every_update_has_random_numbers_of_its_own_and_a_repeat_has_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A random number is drawn where each update begins to embed, as dropout would draw it."""
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
    torch.rand(())  # numbers drawn by others in between make no difference
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
