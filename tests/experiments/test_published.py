import math

import pytest

from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.published import ANY, FIGURE_PLACES, labels, place_of, published
from conekg.training.recipes import DATA_SETS

MISPRINTED = {("table:epfo_results", "fb15k", "box")}
"""Rows whose average the paper prints otherwise than their numbers say: 40.1, and not 41.0."""

MRR_TABLES = [label for label in labels() if published(label, None).unit.startswith("MRR")]


@pytest.mark.parametrize("label", MRR_TABLES)
@pytest.mark.parametrize("data_set", DATA_SETS)
def test_averages_are_those_of_their_rows(label, data_set):
    """A digit wrongly copied shows: the printed average is that of the printed numbers."""
    for name, row in published(label, data_set).rows.items():
        if name == "deviation" or "AVG" not in row or len(row) == 1:
            continue
        structures = [value for column, value in row.items() if column != "AVG"]
        agrees = row["AVG"] == pytest.approx(sum(structures) / len(structures), abs=0.1001)
        assert agrees is ((label, data_set, name) not in MISPRINTED), name


@pytest.mark.parametrize("data_set", DATA_SETS)
def test_error_bars_are_around_the_main_results(data_set):
    for main, bars in (
        ("table:epfo_results", "table:errorbar_epfo"),
        ("table:negation_results", "table:errorbar_neg"),
    ):
        assert published(main, data_set).row("cone") == published(bars, data_set).row("mean")
        assert all(0 < bar < 0.5 for bar in published(bars, data_set).row("deviation").values())


def test_tables_that_repeat_a_row_agree():
    for data_set in DATA_SETS:
        main = published("table:epfo_results", data_set)
        wide = published("table:epfo_results_800", data_set)
        assert wide.row("beta-400") == main.row("beta")
        assert wide.row("cone") == main.row("cone")
        unions = published("table:dis", data_set)
        assert unions.row("cone")["2u-N"] == main.row("cone")["2u"]
        assert unions.row("beta")["up-N"] == main.row("beta")["up"]


def test_a_dash_is_absent_and_an_unknown_graph_has_nothing():
    assert "2in" not in published("table:spearman", "fb15k").row("box")
    assert published("table:spearman", "fb15k").row("box")["ip"] == 0.14
    assert published("table:epfo_results", None).rows == {}
    assert published("table:epfo_results", "geography").rows == {}
    assert published("tab:running_time", ANY).row("cone") == {"seconds": 21.0}
    for label in labels():
        for data_set in (*DATA_SETS, ANY):
            rows = published(label, data_set).rows.values()
            assert not any(math.isnan(value) for row in rows for value in row.values())


def test_numbers_of_the_running_text():
    assert published("sec:operators", "fb15k").row("cone") == {
        "projection": 0.8113,
        "intersection": 0.6134,
        "union": 0.4618,
    }
    assert published("sec:empty_intersection", "fb15k").row("cone")["ROC-AUC"] == 0.9632


def test_every_experiment_names_tables_that_exist():
    repeated = [label for experiment in EXPERIMENTS.values() for label in experiment.paper]
    assert set(repeated) == {*labels(), *FIGURE_PLACES}, "and every table has its experiment"
    assert [place_of(label) for label in ("table:dis", "fig:models")] == ["Table 8", "Figure 2"]
