from dataclasses import replace

import pytest

from conekg.errors import ConfigError
from conekg.experiments import speed as experiment
from conekg.experiments.speed import equal_recipes, speed
from conekg.query.parse import parse_shape
from conekg.sampling.sample import sample_query_set
from conekg.training import timing
from conekg.training.recipe import PATH_POOL
from conekg.training.run import open_run
from conekg.training.updater import EagerUpdater
from tiny import FEW


def test_every_model_is_timed_at_equal_size(trained, reproduce, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock) * 0.25)
    (table,) = reproduce("speed", trained["cone"].folder, "--steps", 2)
    ours = [row for row in table["rows"] if row["kind"] == "ours"]
    assert [row["label"] for row in ours] == [
        "GQE, d = 32", "Query2Box, d = 32", "BetaE, d = 16", "EmQL, d = 32", "ConE, d = 32",
    ]  # fmt: skip
    # The clock advances by a quarter of a second from one reading to the next, over two steps.
    assert [row["values"]["seconds"] for row in ours] == [12.5] * 5
    assert {row["values"]["entity parameters"] for row in ours} == {31 * 32}
    assert all(row["values"]["all parameters"] > 31 * 32 for row in ours)
    papers = {row["label"]: row["values"] for row in table["rows"] if row["kind"] == "paper"}
    assert papers["BetaE, Table 20"] == {"seconds": 28.0}
    assert (
        "What is timed is what `conekg train` does on a CPU: GQE, Query2Box, BetaE, EmQL, ConE "
        "by PyTorch, operation by operation (EagerUpdater), ConE's distance as a compiled loop."
    ) in table["notes"]


def test_the_updaters_are_those_that_training_picks(trained, options, monkeypatch):
    class FusedUpdater(EagerUpdater):
        """Stands in for the GPU's updater."""

    def pick(model, data, recipe, device):
        kind = FusedUpdater if model.name in ("cone", "box", "gqe") else EagerUpdater
        return kind(model, data, recipe)

    monkeypatch.setattr(experiment, "make_updater", pick)
    (table,) = speed([trained["cone"]], replace(options, steps=1))
    assert table.drawn == ("seconds",), "a million parameters beside them would hide all seconds"
    (note,) = [note for note in table.notes if note.startswith("What is timed")]
    assert "GQE, Query2Box, ConE by fused kernels in a captured graph (FusedUpdater)" in note
    assert "BetaE, EmQL by PyTorch, operation by operation (EagerUpdater)" in note


def test_recipes_are_the_runs_where_they_can_be(trained, monkeypatch):
    run = open_run(trained["cone"].folder)
    training = replace(run.recipe.training, negatives=5, precision="tf32", seed=7)
    recipe = replace(run.recipe, training=replace(training, compile_operators=False))
    monkeypatch.setitem(run.__dict__, "recipe", recipe)  # cached there
    recipes = equal_recipes(run, 32)
    box, beta = recipes["box"], recipes["beta"]
    assert box.training.batch_size == run.recipe.training.batch_size == 16
    assert (box.training.negatives, box.training.precision, box.training.seed) == (5, "tf32", 7)
    assert not box.training.compile_operators
    assert not any("n" in shape for shape in box.training.trained_shapes())
    assert "2in" in beta.training.trained_shapes()
    assert (beta.config.dim, beta.config.hidden) == (16, 48)


def test_a_batch_holds_every_shape_of_a_pool(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    shapes = len(equal_recipes(run, 32)["cone"].training.pool("other").shares)
    assert shapes > 4
    training = replace(run.recipe.training, batch_size=4, pools=(PATH_POOL,), cycle=("path",))
    monkeypatch.setitem(run.__dict__, "recipe", replace(run.recipe, training=training))  # cached
    sizes = {recipe.training.batch_size for recipe in equal_recipes(run, 32).values()}
    assert sizes == {shapes}, "all models alike, or their times could not be compared"
    monkeypatch.setattr(experiment, "seconds_per_step", lambda *_: 1.0)
    (table,) = speed([run], options)
    assert f"with batches of {shapes} queries, as the run's of 4 cannot hold" in table.notes[0]


def test_shapes_without_queries_are_noted(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    monkeypatch.setattr(experiment, "seconds_per_step", lambda *_: 1.0)
    (whole,) = speed([run], options)
    assert not any("batches are without them" in note for note in whole.notes)
    only_shape(run, "1p", monkeypatch)
    (table,) = speed([run], options)
    (note,) = [note for note in table.notes if "batches are without them" in note]
    assert note == (
        "The run has no training queries of 2p, 3p, 2i, 3i, 2in, 3in, inp, pin, pni: batches are "
        "without them, and a step has 2 updates instead of 3."
    )


def test_a_run_without_any_timed_shape_is_refused(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    only_shape(run, "e.r.r.r.r", monkeypatch)
    with pytest.raises(ConfigError, match=r"batches of 1p, .* queries of e\.r\.r\.r\.r only"):
        speed([run], options)


def only_shape(run, shape, monkeypatch):
    """Let the run have training queries of one shape alone."""
    shapes = [parse_shape(shape)]
    sampled = sample_query_set(run.graph, "train", FEW, 0, shapes=shapes, count=20)
    monkeypatch.setitem(run.__dict__, "_held", {"train": sampled.query_set})  # cached there


def test_an_odd_width_is_noted(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    recipe = replace(run.recipe, config=replace(run.recipe.config, dim=7))
    monkeypatch.setitem(run.__dict__, "recipe", recipe)  # cached there
    monkeypatch.setattr(experiment, "seconds_per_step", lambda *_: 1.0)
    (table,) = speed([run], options)
    widths = {row.label: row.values["entity parameters"] // 31 for row in table.rows[:5]}
    assert widths.pop("BetaE, d = 3") == 6
    assert set(widths.values()) == {7}
    (note,) = [note for note in table.notes if note.startswith("All entity tables")]
    assert "are 7 wide (BetaE has two numbers a dimension, so that its is 6 wide)." in note


def test_a_table_of_one_number_is_too_narrow_for_betae(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    recipe = replace(run.recipe, config=replace(run.recipe.config, dim=1))
    monkeypatch.setitem(run.__dict__, "recipe", recipe)  # cached there
    with pytest.raises(ConfigError, match=r"1 wide is too narrow for beta.*wider") as caught:
        speed([run], options)
    assert caught.value.key == "dim"


def test_one_run_at_a_time(trained, options):
    with pytest.raises(ConfigError, match="one RUN"):
        speed([trained["cone"], trained["box"]], options)
