"""The fused updater against plain autograd: the same batch must change every parameter equally.

Without a GPU the kernels run under Triton's interpreter (`conftest.py` says so); on one, the
same tests run the compiled kernels.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from conekg.graph.ragged import Ragged
from conekg.model.catalog import build_model
from conekg.model.interface import QueryModel
from conekg.query.shape import STRUCTURES, Shape
from conekg.query.tree import Project, Universe, has_negation
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.training.batches import Batch, DeviceData, move_to_device
from conekg.training.precision import ReducedWeights, matrix_precision
from conekg.training.recipe import IdleWeights, NegativeSampling, Pool, TrainingRecipe
from conekg.training.updater import EagerUpdater, batch_loss

pytest.importorskip("triton")
fused = pytest.importorskip("conekg.training.fused")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PAST_CAPTURE = 5 if DEVICE.type == "cuda" else 1
"""Enough steps to include a replay of the captured graph on a GPU."""
NUM_ENTITIES, NUM_RELATIONS, DIM = 13, 4, 5
MODELS = {
    "cone": {"dim": DIM, "hidden": 10, "dropout": 0.0, "gamma": 4.0},
    "cone-rotation": {
        "dim": DIM,
        "hidden": 10,
        "dropout": 0.0,
        "gamma": 4.0,
        "projection": "rotation",
        "turned_share": 0.6,
    },
    "box": {"dim": DIM, "gamma": 4.0},
    "gqe": {"dim": DIM, "gamma": 4.0},
    "beta": {"dim": DIM, "hidden": 10, "gamma": 4.0},
}
POSITIVE = Pool("path", (("1p", 1.0), ("2p", 1.0), ("2i", 1.0)))
WITH_NEGATION = Pool("path", (("1p", 1.0), ("3p", 1.0), ("3in", 1.0), ("inp", 1.0)))


def random_queries(shapes: tuple[str, ...], rng: np.random.Generator) -> QuerySet:
    blocks = []
    for name in shapes:
        shape, count = STRUCTURES[name], 9
        rows = [np.sort(rng.choice(NUM_ENTITIES, size=rng.integers(1, 6), replace=False))] * count
        blocks.append(
            QueryBlock(
                shape,
                rng.integers(NUM_ENTITIES, size=(count, shape.num_anchors), dtype=np.int32),
                rng.integers(NUM_RELATIONS, size=(count, shape.num_relations), dtype=np.int32),
                Ragged.from_rows([[]] * count),
                Ragged.from_rows(rows),
            )
        )
    return QuerySet("train", tuple(blocks))


def near_misses(block: QueryBlock) -> Ragged:
    """Some entities that do not answer, for the queries that have a negation."""
    has_some = has_negation(block.shape.template)
    everyone = np.arange(NUM_ENTITIES)
    return Ragged.from_rows(
        [
            np.setdiff1d(everyone, block.hard[row])[row : row + 3] if has_some else []
            for row in range(len(block))
        ]
    )


def prepare(name: str) -> tuple[QueryModel, DeviceData, TrainingRecipe]:
    catalog_name, _, _ = name.partition("-")
    pool = WITH_NEGATION if catalog_name in ("cone", "beta") else POSITIVE
    recipe = TrainingRecipe(
        steps=10, batch_size=5, negatives=3, pools=(pool,), cycle=("path",), learning_rate=1e-2
    )
    queries = random_queries(pool.shapes, np.random.default_rng(0))
    data = move_to_device(queries, NUM_ENTITIES, pool.shapes, DEVICE, near_misses, 0.3)
    model = build_model(catalog_name, NUM_ENTITIES, NUM_RELATIONS, MODELS[name], seed=3)
    with torch.no_grad():  # parameters that start at zero would hide gradients before them
        for parameter in model.parameters():
            if not parameter.any():
                parameter.uniform_(-0.3, 0.3, generator=torch.Generator().manual_seed(3))
    return model.to(DEVICE), data, recipe


def draw_next(
    updater: "fused.FusedUpdater", recipe: TrainingRecipe, pool: str = "path", ahead: int = 0
) -> Batch:
    """The batch that the updater will use after `ahead` more updates."""
    plan = updater._plans[pool]
    drawn = fused.draw(
        updater._pools[pool],
        updater._counters + ahead,
        recipe.seed,
        num_entities=NUM_ENTITIES,
        positives=recipe.positives,
        negatives=recipe.negatives,
        filtered=recipe.negative_sampling == "uniform-filtered",
        near=updater._near,
        shared=recipe.shared_negatives,
    )
    widths = [STRUCTURES[shape] for shape in recipe.pool(pool).shapes]
    anchors = fused.slice_groups(drawn.anchors.long(), plan)
    relations = fused.slice_groups(drawn.relations.long(), plan)
    return Batch(
        tuple(ids[:, : s.num_anchors] for ids, s in zip(anchors, widths, strict=True)),
        tuple(ids[:, : s.num_relations] for ids, s in zip(relations, widths, strict=True)),
        drawn.candidates[:, : recipe.positives].long(),
        drawn.candidates[:, recipe.positives :].long(),
        drawn.weights,
    )


def test_packed_queries_have_the_weights_of_their_block() -> None:
    _, data, recipe = prepare("cone")
    pool = recipe.pool("path")
    packed = fused.pack_pool(data, pool.composition(recipe.batch_size))
    expected = (4.0 + packed.answer_offsets.diff().cpu().double()) ** -0.3
    torch.testing.assert_close(packed.weights.cpu().double(), expected, atol=1e-6, rtol=0.0)
    assert packed.weights.unique().numel() > 1


@pytest.mark.parametrize(
    ("temperature", "negatives", "positives", "near_misses", "shared"),
    [
        (0.0, "uniform-published", 1, 0.0, False),
        (0.5, "uniform-filtered", 1, 0.0, True),
        (0.5, "uniform-filtered", 3, 0.7, False),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_moves_every_parameter_by_the_plain_gradient(
    name: str,
    temperature: float,
    negatives: NegativeSampling,
    positives: int,
    near_misses: float,
    shared: bool,
) -> None:
    """Adam restated in float64 on gradients from autograd must explain every change."""
    model, data, recipe = prepare(name)
    recipe = replace(
        recipe,
        adversarial_temperature=temperature,
        negative_sampling=negatives,
        positives=positives,
        near_misses=near_misses,
        shared_negatives=shared,
    )
    plain, _, _ = prepare(name)
    updater = fused.FusedUpdater(model, data, recipe)
    before = updater.state()
    for count in (1, 2):
        plain.load_state_dict(model.state_dict())
        batch = draw_next(updater, recipe)
        loss = batch_loss(plain, updater._plans["path"], batch, temperature)
        plain.zero_grad()
        loss.backward()
        loss = loss.detach()  # nodes of the plain backward pass must not stay alive on its stream
        updater.step(recipe.learning_rate)
        assert updater.take_loss()["path"] == pytest.approx(float(loss), rel=1e-5)
        after = updater.state()
        largest = max(float(p.grad.abs().max()) for p in plain.parameters())
        for key, old in plain.named_parameters():
            first = after[f"{key}:exp_avg"].double()
            second = after[f"{key}:exp_avg_sq"].double()
            previous = before.get(f"{key}:exp_avg", torch.zeros_like(old)).double()
            assert old.grad is not None
            expected = 0.9 * previous + 0.1 * old.grad.double()
            torch.testing.assert_close(first, expected, atol=1e-6 * largest, rtol=1e-4, msg=key)
            step = recipe.learning_rate / (1 - 0.9**count) * first
            move = step / ((second / (1 - 0.999**count)).sqrt() + 1e-8)
            # Detached, since a node that stays alive on this stream would break the next step.
            new = model.get_parameter(key).detach().double()
            torch.testing.assert_close(new, old.double() - move, atol=1e-6, rtol=1e-5, msg=key)
            # A softmax does not depend on a constant that is added to all its arguments.
            assert key == "attention.2.bias" or move.abs().max() > 1e-3, f"{key} did not move"
        before = after


def test_near_misses_are_those_of_the_query_that_was_drawn() -> None:
    paths = Pool("path", (("2in", 1.0), ("1p", 1.0)))
    others = Pool("other", (("2i", 1.0), ("pni", 1.0), ("3in", 1.0)))
    model, _, recipe = prepare("cone")
    recipe = replace(
        recipe, batch_size=12, pools=(paths, others), cycle=("path", "other"), near_misses=0.6
    )
    shapes = recipe.trained_shapes()
    queries = random_queries(shapes, np.random.default_rng(1))
    data = move_to_device(queries, NUM_ENTITIES, shapes, DEVICE, near_misses)
    updater = fused.FusedUpdater(model, data, recipe)
    for ahead in range(10):
        for pool in (paths, others):
            batch = draw_next(updater, recipe, pool.name, ahead)
            start = 0
            for name, anchors in zip(pool.shapes, batch.anchors, strict=True):
                block = queries.block(name)
                near = near_misses(block)
                for row, ids in enumerate(anchors.tolist(), start=start):
                    same = np.flatnonzero((block.anchors == ids).all(axis=1))
                    allowed = {entity for query in same for entity in near[query].tolist()}
                    drawn = batch.negatives[row].tolist()
                    assert (set(drawn[:2]) <= allowed) == bool(allowed), "two of three"
                start += len(anchors)


@pytest.mark.parametrize(("idle_weights", "updates"), [("rest", {2, 6}), ("drift", {6})])
def test_a_cycle_of_pools_equals_separate_updates(
    idle_weights: IdleWeights, updates: set[int]
) -> None:
    """Each update has the batch of its own number. Weights that a pool does not use rest, or drift
    as with a gradient of zero."""
    paths, others = Pool("path", (("1p", 1.0), ("2p", 1.0))), Pool("other", (("2i", 1.0),))
    model, _, recipe = prepare("cone")
    plain, _, _ = prepare("cone")
    cycle = ("path", "other", "path")
    recipe = replace(recipe, pools=(paths, others), cycle=cycle, idle_weights=idle_weights)
    shapes = recipe.trained_shapes()
    queries = random_queries(shapes, np.random.default_rng(1))
    updater = fused.FusedUpdater(
        model, move_to_device(queries, NUM_ENTITIES, shapes, DEVICE), recipe
    )
    adam = torch.optim.Adam(plain.parameters(), lr=recipe.learning_rate)
    least = {name: torch.full_like(each, torch.inf) for name, each in plain.named_parameters()}
    for _ in range(2):
        losses: dict[str, list[float]] = {"path": [], "other": []}
        for ahead, pool in enumerate(recipe.cycle):
            batch = draw_next(updater, recipe, pool, ahead)
            loss = batch_loss(plain, updater._plans[pool], batch)
            adam.zero_grad(set_to_none=True)
            loss.backward()
            for name, parameter in plain.named_parameters():
                if parameter.grad is not None:
                    size = parameter.grad.abs()
                    least[name] = least[name].minimum(size.where(size > 0, torch.inf))
                elif idle_weights == "drift":
                    parameter.grad = torch.zeros_like(parameter)
            adam.step()
            losses[pool].append(float(loss.detach()))
        updater.step(recipe.learning_rate)
        taken = updater.take_loss()
        for pool, values in losses.items():
            assert taken[pool] == pytest.approx(sum(values) / len(values), rel=1e-4)
    state = updater.state()
    counts = {int(state[f"{name}:step"]) for name, _ in plain.named_parameters()}
    assert counts == updates, "the networks of intersections are used once per step"
    assert torch.cat([each.flatten() > 1e-6 for each in least.values()]).float().mean() > 0.9
    for name, expected in plain.named_parameters():
        moment, actual = adam.state[expected]["exp_avg"], model.get_parameter(name).detach()
        torch.testing.assert_close(state[f"{name}:exp_avg"], moment, atol=2e-6, rtol=1e-3, msg=name)
        if name == "attention.2.bias":
            continue  # a softmax ignores it, so its gradient is rounding, of any size on a GPU
        clear = least[name] > 1e-6  # smaller gradients are rounding errors, which Adam amplifies
        torch.testing.assert_close(
            actual[clear], expected.detach()[clear], atol=1e-4, rtol=1e-3, msg=name
        )


def test_only_the_compilers_warning_about_its_reductions_is_suppressed() -> None:
    with fused._compiling_quietly():
        warnings.warn(
            "\nOnline softmax is disabled on the fly since ...", UserWarning, stacklevel=1
        )
        with pytest.raises(UserWarning, match="else"):
            warnings.warn("something else", UserWarning, stacklevel=1)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_state_continues_exactly(monkeypatch: pytest.MonkeyPatch, dropout: float) -> None:
    name = "cone"
    monkeypatch.setitem(MODELS, name, MODELS[name] | {"dropout": dropout})
    model, data, recipe = prepare(name)
    updater = fused.FusedUpdater(model, data, recipe)
    for _ in range(PAST_CAPTURE):
        updater.step(1e-2)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    state = updater.state()
    for _ in range(PAST_CAPTURE):
        updater.step(1e-2)

    resumed_model, _, _ = prepare(name)
    resumed_model.load_state_dict(weights)
    resumed = fused.FusedUpdater(resumed_model, data, recipe)
    resumed.load_state(state)
    for _ in range(PAST_CAPTURE):
        resumed.step(1e-2)
    for key, value in model.state_dict().items():
        torch.testing.assert_close(resumed_model.state_dict()[key], value, msg=key)


def test_continues_from_a_plain_run() -> None:
    model, data, recipe = prepare("cone")
    plain = EagerUpdater(model, data, recipe)
    plain.step(1e-2)
    updater = fused.FusedUpdater(model, data, recipe)
    updater.load_state(plain.state())
    assert updater.state()["entity:exp_avg"].abs().max() > 0
    assert int(updater.state()["entity:step"]) == 1
    updater.step(1e-2)
    assert int(updater.state()["steps"]) == 2


def test_a_plain_run_continues_from_a_fused_one() -> None:
    model, data, recipe = prepare("cone")
    updater = fused.FusedUpdater(model, data, recipe)
    updater.step(1e-2)
    state = updater.state()
    plain = EagerUpdater(model, data, recipe)
    plain.load_state(state)
    plain.step(1e-2)
    after = plain.state()
    assert int(after["steps"]) == 2
    assert {int(after[f"{name}:step"]) for name, _ in model.named_parameters()} == {2}
    assert not torch.equal(after["entity:exp_avg"], state["entity:exp_avg"])


def test_a_loaded_state_replaces_the_old_one_and_is_not_modified() -> None:
    model, data, recipe = prepare("cone")
    updater = fused.FusedUpdater(model, data, recipe)
    untouched = updater.state()
    updater.step(1e-2)
    state = updater.state()
    kept = {key: value.clone() for key, value in state.items()}
    updater.load_state(state)
    updater.step(1e-2)
    assert all(torch.equal(state[key], value) for key, value in kept.items())
    updater.load_state(untouched)
    assert updater.state().keys() == untouched.keys(), "no moments where there were none"


def test_fusing_needs_kernels_and_an_anchor_in_every_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, recipe = prepare("cone")
    assert fused.can_fuse(model, data, recipe)
    everywhere = {
        name: replace(block, shape=Shape(Project(Universe(), 0)))
        for name, block in data.blocks.items()
    }
    assert not fused.can_fuse(model, replace(data, blocks=everywhere), recipe)
    monkeypatch.setattr(fused, "kernels_of", lambda _: None)
    assert not fused.can_fuse(model, data, recipe)


def test_fresh_moments_forget_everything() -> None:
    model, data, recipe = prepare("cone")
    updater = fused.FusedUpdater(model, data, recipe)
    updater.step(1e-2)
    assert updater.state()["entity:exp_avg"].abs().max() > 0
    updater.reset_moments()
    state = updater.state()
    moments = [value for key, value in state.items() if ":" in key]
    assert moments
    assert all(value.abs().max() == 0 for value in moments)


def run_steps(name: str, recipe_changes: dict[str, object], *, captured: bool) -> QueryModel:
    """A model after six steps; with `captured`, the last three are replays of a graph."""
    model, data, recipe = prepare(name)
    updater = fused.FusedUpdater(model, data, replace(recipe, **recipe_changes))
    if not captured:
        updater._uncaptured = -1000  # stays in its warm-up
    for _ in range(6):
        updater.step(1e-3)
    assert (updater._graph is not None) == captured
    assert updater.take_loss()["path"] > 0
    return model


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:torch")
@pytest.mark.parametrize("name", MODELS)
def test_operators_can_be_compiled_as_a_whole(name: str) -> None:
    """As one graph and not in pieces: PyTorch 2.11 took `anchor or model.anchor` for a branch."""
    model, data, recipe = prepare(name)
    updater = fused.FusedUpdater(model, data, recipe)
    updater._reduced = ReducedWeights(model, torch.float32)  # copies of weights, as with bfloat16
    plain = updater._embedding_function(updater._plans["path"])
    whole = torch.compile(plain, backend="eager", dynamic=False, fullgraph=True)
    drawn, anchor_ids = updater._draw("path", 0)
    found = []
    for function in (plain, whole):
        rows = model.entity.detach()[anchor_ids].requires_grad_()
        region = function(rows, drawn.anchors, drawn.relations)
        weights = [rows, model.get_parameter("attention.0.weight")]
        found.append([*region, *torch.autograd.grad(sum(part.sum() for part in region), weights)])
    torch._dynamo.reset()
    for expected, compiled in zip(*found, strict=True):
        assert expected.abs().max() > 0
        torch.testing.assert_close(compiled, expected)


COMPILED = {"compile_operators": True, "precision": "bfloat16"}


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:torch")
@pytest.mark.parametrize(
    ("name", "changes"),
    [*((name, {}) for name in MODELS), ("cone", COMPILED), ("cone-rotation", COMPILED)],
)
def test_a_replayed_graph_moves_as_uncaptured_steps_do(
    name: str, changes: dict[str, object]
) -> None:
    """Steps from the fourth on are replays; an updater that never captures must agree."""
    replayed = run_steps(name, changes, captured=True).state_dict()
    for key, value in run_steps(name, changes, captured=False).state_dict().items():
        torch.testing.assert_close(replayed[key], value, msg=key)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:torch")
@pytest.mark.parametrize("changes", [{}, pytest.param(COMPILED, marks=pytest.mark.gpu)])
def test_every_step_has_dropout_masks_of_its_own(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
) -> None:
    """With a fixed batch and fixed weights, only the masks make two gradients different."""
    monkeypatch.setitem(MODELS, "cone", MODELS["cone"] | {"dropout": 0.3})

    def two_gradients() -> list[torch.Tensor]:
        """The entities' gradients in the last two steps, which are replays on a GPU."""
        model, data, recipe = prepare("cone")
        updater = fused.FusedUpdater(model, data, replace(recipe, batch_size=8, **changes))
        found = []
        for _ in range(PAST_CAPTURE + 1):
            updater.reset_moments()
            updater._counters.zero_()
            updater.step(0.0)
            found.append(10.0 * updater.state()["entity:exp_avg"])
        assert (updater._graph is not None) == (DEVICE.type == "cuda")
        return found[-2:]

    before, after = two_gradients()
    largest = float(before.abs().max())
    assert float((after - before).abs().max()) > 1e-3 * largest
    for own, again in zip((before, after), two_gradients(), strict=True):
        torch.testing.assert_close(again, own, atol=1e-4 * largest, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:torch")
@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        *((name, False) for name in MODELS),
        ("cone", True),
        ("cone-rotation", True),
        ("beta", True),
    ],
)
def test_products_in_bfloat16_are_those_of_autocast(name: str, compiled: bool) -> None:
    """Compiled or not, gradients equal those of autocast to the precision of bfloat16."""
    model, data, recipe = prepare(name)
    plain, _, _ = prepare(name)
    changes = replace(recipe, precision="bfloat16", compile_operators=compiled)
    updater = fused.FusedUpdater(model, data, changes)
    with matrix_precision("bfloat16", DEVICE):
        loss = batch_loss(plain, updater._plans["path"], draw_next(updater, recipe))
    loss.backward()
    updater.step(1e-3)
    moments = updater.state()
    for key, parameter in plain.named_parameters():
        assert parameter.grad is not None
        if key == "attention.2.bias":
            continue  # a softmax ignores it, so its gradient is only rounding error
        largest = float(parameter.grad.abs().max())
        gradient = 10.0 * moments[f"{key}:exp_avg"]
        torch.testing.assert_close(
            gradient, parameter.grad, atol=0.03 * largest, rtol=0.03, msg=key
        )
    assert updater._reduced is not None
    for key, copy in updater._reduced._copies.items():
        assert torch.equal(copy, model.get_parameter(key).bfloat16()), key


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_reduced_precision_learns_as_float32_does(precision: str) -> None:
    after = {}
    for name in ("float32", precision):
        model, data, recipe = prepare("cone")
        updater = fused.FusedUpdater(model, data, replace(recipe, precision=name))
        updater.step(3e-3)
        updater.take_loss()
        for _ in range(300):
            updater.step(3e-3)
        after[name] = updater.take_loss()["path"]
    assert after["float32"] < 0.9
    assert after[precision] == pytest.approx(after["float32"], rel=0.1)


@pytest.mark.parametrize("name", ["cone", "box", "gqe", "beta"])
def test_kernels_are_only_for_models_with_their_distance(name):
    model, data, recipe = prepare(name)
    kind = type(model)

    def derived(**changes):
        model.__class__ = type("Derived", (kind,), changes)
        return model

    assert fused.can_fuse(derived(negate=lambda self, region: region), data, recipe)
    assert not fused.can_fuse(derived(has_own_loss=True), data, recipe)
    for method in ("anchor", "points", "distance", "distance_to_points", "logits"):

        def own(self, *arguments, method=method):
            return getattr(kind, method)(self, *arguments)

        assert not fused.can_fuse(derived(**{method: own}), data, recipe), method
