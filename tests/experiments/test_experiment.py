import shutil
from dataclasses import replace

import numpy as np
import pytest

from conekg.errors import ConfigError, UnsupportedOperatorError
from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.experiment import common_data_set, describe, notes_of_each
from conekg.experiments.main_results import MAIN_EPFO, main_epfo
from conekg.sampling.query_set import QuerySet
from conekg.training.loop import train
from conekg.training.recipe_change import change_recipe
from conekg.training.recipes import find_recipe
from conekg.training.run import Run, create_run, open_run
from plain_mrr import mrr
from tiny import tiny_queries, tiny_run
from untrained_run import untrained_run


@pytest.mark.parametrize(
    "name", ["cardinality", "empty-intersection", "membership", "operators", "variability"]
)
def test_a_run_of_the_wrong_model_is_refused_before_others_are_measured(
    trained, options, monkeypatch, name
):
    def measured(*_):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Run, "load_model", measured)
    with pytest.raises(UnsupportedOperatorError, match="gqe: gqe ") as error:
        EXPERIMENTS[name].measure([trained["cone"], trained["gqe"]], options)
    assert "cone" in error.value.hint


def test_a_note_on_one_run_alone_names_it():
    assert notes_of_each({"a": ["x", "y"], "b": ["z", "x"]}) == ["x", "a: y", "b: z"]
    assert notes_of_each({"a": ["x", "y"]}) == ["x", "y"]


def test_fewer_queries_are_ranked_when_asked(trained, options):
    (few,) = MAIN_EPFO.measure([trained["cone"]], replace(options, max_queries=1))
    assert few.notes[-1] == "Of each structure at most 1 of its queries, evenly spaced."
    assert "Queries measured: 1 of each structure." in few.notes
    model = trained["cone"].load_model("best")
    for name in ("1p", "2i", "up"):
        block = tiny_queries()["test"].block(name)
        first = block.take(np.flatnonzero(block.hard.lengths > 0)[:1])
        reported = few.row("ConE (cone)").values[name]
        assert reported == pytest.approx(mrr(model, first, reported))


def test_runs_of_one_name_are_told_apart(trained, reproduce, options, tmp_path):
    folders = [tmp_path / seed / "run" for seed in ("zero", "ten")]
    for folder, key in zip(folders, ("cone", "cone-10"), strict=True):
        shutil.copytree(trained[key].folder, folder)
    (table,) = reproduce("main-epfo", *folders)
    assert [row["label"] for row in table["rows"]] == ["ConE (zero/run)", "ConE (ten/run)"]
    for row, key in zip(table["rows"], ("cone", "cone-10"), strict=True):
        model, links = trained[key].load_model("best"), tiny_queries()["test"].block("1p")
        reported = row["values"]["1p"]
        assert reported == pytest.approx(mrr(model, links, reported))
    again = [open_run(folder) for folder in (folders[0], folders[1].parent / "." / "run")]
    with pytest.raises(ConfigError, match="is given twice"):
        MAIN_EPFO.measure([*again, open_run(folders[1])], options)


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if "checkpoint" in e.options])
def test_the_checkpoint_that_is_asked_for_is_measured(trained, options, tmp_path, name):
    """The run's best weights are those of another run, so that its two checkpoints differ."""
    folder = tmp_path / "cone"
    shutil.copytree(trained["cone"].folder, folder)
    best, other = (open_run(folder).checkpoint_folder("best"), trained["cone-10"])
    shutil.rmtree(best, ignore_errors=True)
    shutil.copytree(other.checkpoint_folder("last"), best)

    def measured(run, checkpoint):
        few = replace(options, checkpoint=checkpoint, max_queries=4, pairs=8)
        tables = EXPERIMENTS[name].measure([run], few)
        numbers = [list(row.values.values()) for table in tables for row in table.rows]
        curves = [s.y for table in tables for plot in table.plots for s in plot.series]
        return numbers, curves

    expected = {"best": measured(other, "last"), "last": measured(trained["cone"], "last")}
    assert expected["best"] != expected["last"]
    for checkpoint, values in expected.items():
        assert measured(open_run(folder), checkpoint) == values


def test_weights_of_an_earlier_step_are_noted(options, tmp_path):
    run = tiny_run(tmp_path / "run", "cone")
    train(run, device=options.device, max_minutes=0.0)
    (table,) = main_epfo([open_run(run.folder)], options)
    (described,) = [note for note in table.notes if note.startswith("ConE (run): ")]
    assert described.startswith("ConE (run): cone with d = 32 on tiny, recipe 'small'")
    assert described.endswith(", weights of step 1 of 12, seed 0.")


def test_settings_that_are_not_the_recipes_are_named(film_graph, tmp_path):
    """But not those that the sentence gives anyway, or that do not affect what is learnt."""

    def described(name, *settings):
        recipe = change_recipe(find_recipe("small", "cone"), {}, settings)
        run = create_run(tmp_path / name, film_graph, recipe, {"train": QuerySet("train", ())})
        return describe(run).partition("recipe ")[2]

    untold = ["training.steps=3", "training.seed=5", "model.dim=8", "training.log_every=2"]
    plain = described("a", *untold)
    assert plain == "'small', 3 steps, seed 5."
    one = described("b", "model.gamma=7", "training.steps=3")
    assert one == "'small' (changed: model.gamma), 3 steps, seed 0."
    many = ["model.gamma=7", "model.hidden=9", "training.batch_size=16", "training.negatives=3"]
    all_of_them = "'small' (changed: model.gamma, model.hidden, training.batch_size, "
    assert described("c", *many).startswith(f"{all_of_them}training.negatives), ")
    more = described("d", *many, "training.learning_rate=0.5", "training.near_misses=0.5")
    assert more.startswith(f"{all_of_them}training.negatives and 2 more), ")


def test_runs_of_different_graphs_are_refused(trained, film_graph, tmp_path):
    other = open_run(untrained_run(tmp_path / "films", film_graph))
    with pytest.raises(ConfigError, match="different graphs"):
        common_data_set([trained["cone"], other])
