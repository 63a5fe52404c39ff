import statistics
from dataclasses import replace

import pytest

from conekg.errors import ConfigError
from conekg.experiments.seeds import mean_and_deviation, seeds
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.run import open_run
from plain_mrr import mrr_row
from tiny import tiny_queries


def test_mean_and_deviation_over_runs(trained, reproduce):
    runs = [trained["cone"], trained["cone-10"]]
    positive, negative = reproduce("seeds", *(run.folder for run in runs))
    for table, structures in ((positive, POSITIVE_STRUCTURES), (negative, NEGATION_STRUCTURES)):
        rows = {row["label"]: row["values"] for row in table["rows"]}
        each = [
            mrr_row(run.load_model("best"), tiny_queries()["test"], structures, rows[label])
            for run, label in zip(runs, ("ConE (cone)", "ConE (cone-10)"), strict=True)
        ]
        if table is positive:
            each = [row | {"AVG": statistics.mean(row.values())} for row in each]
        assert rows["ConE (cone)"] == pytest.approx(each[0])
        assert rows["ConE (cone-10)"] == pytest.approx(each[1])
        both = {name: [row[name] for row in each] for name in each[0]}
        mean = {name: statistics.mean(values) for name, values in both.items()}
        deviation = {name: statistics.stdev(values) for name, values in both.items()}
        assert rows["ConE, mean of 2"] == pytest.approx(mean)
        assert rows["ConE, standard deviation"] == pytest.approx(deviation)
        assert any(deviation.values())


def test_the_papers_error_bars_stand_beside(trained, options):
    runs = [open_run(trained[key].folder) for key in ("cone", "cone-10")]
    for run in runs:
        run.graph.name = "NELL"
    positive, negative = seeds(runs, options)
    assert positive.row("ConE, standard deviation, Table 15").values["AVG"] == 0.071
    assert negative.row("ConE, mean, Table 16").values["inp"] == 10.8
    ours = positive.row("ConE, mean of 2").values["AVG"]
    assert positive.row("ConE, mean − paper").values["AVG"] == pytest.approx(ours - 27.2)


def test_the_papers_error_bars_are_of_cones_alone(trained, options):
    run = open_run(trained["beta"].folder)
    run.graph.name = "NELL"
    for table in seeds([run], options):
        assert table.row("BetaE, mean of 1").values
        assert not [row for row in table.rows if row.kind == "comparison"]


def test_one_run_has_no_deviation():
    assert mean_and_deviation([{"1p": 3.0}]) == ({"1p": 3.0}, {})


def test_runs_must_differ_in_their_seed_alone(trained, options):
    with pytest.raises(ConfigError, match=r"more than their seed: model.name \(box, cone\), "):
        seeds([trained["cone"], trained["box"]], options)
    longer = open_run(trained["cone"].folder)
    training = replace(longer.recipe.training, steps=99, drops_at=(0.5,), seed=1)
    longer.__dict__["recipe"] = replace(longer.recipe, training=training)
    ours = trained["cone"].recipe.training.steps
    with pytest.raises(
        ConfigError, match=rf"training.steps \(99, {ours}\), training.drops_at; train"
    ):
        seeds([trained["cone"], longer], options)
    with pytest.raises(ConfigError, match="same seed: 0, 0"):
        seeds([trained["cone"], trained["cone"]], options)
