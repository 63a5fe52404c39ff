import statistics

import pytest

from conekg.errors import ConfigError
from conekg.experiments.main_results import main_epfo
from conekg.experiments.seeds import mean_and_deviation, seeds


def test_mean_and_deviation_over_runs(trained, reproduce, options):
    runs = [trained["cone"], trained["cone-10"]]
    positive, negative = reproduce("seeds", *(run.folder for run in runs))
    each = [dict(main_epfo([run], options)[0].rows[0].values) for run in runs]
    rows = {row["label"]: row["values"] for row in positive["rows"]}
    for name in each[0]:
        both = [row[name] for row in each]
        assert rows["ConE, mean of 2"][name] == pytest.approx(statistics.mean(both))
        assert rows["ConE, standard deviation"][name] == pytest.approx(statistics.stdev(both))
    assert any(rows["ConE, standard deviation"].values())
    assert "2in" in negative["columns"]


def test_one_run_has_no_deviation():
    assert mean_and_deviation([{"1p": 3.0}]) == ({"1p": 3.0}, {})


def test_runs_must_differ_in_their_seed_alone(trained, options):
    with pytest.raises(ConfigError, match="more than their seed"):
        seeds([trained["cone"], trained["box"]], options)
    with pytest.raises(ConfigError, match="same seed: 0, 0"):
        seeds([trained["cone"], trained["cone"]], options)
