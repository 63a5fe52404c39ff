import math

import pytest

from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.published import ANY, FIGURE_PLACES, labels, place_of, published
from conekg.training.recipes import DATA_SETS

MISPRINTED = {("table:epfo_results", "fb15k", "box")}
"""Rows whose printed average is not that of their numbers, which is 40.1, not 41.0."""

SUMS = {
    "table:epfo_results": (120, 3366.3),
    "table:negation_results": (36, 301.9),
    "table:spearman": (31, 15.67),
    "table:epfo_results_800": (90, 2732.2),
    "table:negation_results_800": (54, 441.6),
    "table:dis": (24, 454.5),
    "table:spearman_fb237": (31, 17.376),
    "table:spearman_nell": (31, 17.12),
    "table:pearson_fb": (31, 11.77),
    "table:pearson_fb237": (31, 13.28),
    "table:pearson_nell": (31, 13.12),
    "table:cmp_results": (5, 215.6),
    "table:errorbar_epfo": (60, 1007.798),
    "table:errorbar_neg": (36, 164.673),
    "table:variety": (24, 7.85),
    "tab:answer_epfo": (24, 13.565),
    "tab:answer_neg": (12, 6.975),
    "tab:running_time": (4, 81.0),
}
"""The count and the sum of the numbers in each table of the paper's source."""

MRR_TABLES = [label for label in labels() if published(label, None).unit.startswith("MRR")]


def test_every_table_has_the_numbers_of_the_papers_source():
    """Also tables without averages to check digits by: correlations, precision and recall."""
    for label in labels():
        values = [
            value
            for data_set in (*DATA_SETS, ANY)
            for row in published(label, data_set).rows.values()
            for value in row.values()
        ]
        if label.startswith("sec:"):
            continue  # a few numbers of the running text, each of which has its test below
        assert (len(values), round(sum(values), 3)) == SUMS[label], label
    assert set(SUMS) == {label for label in labels() if not label.startswith("sec:")}


@pytest.mark.parametrize("label", MRR_TABLES)
@pytest.mark.parametrize("data_set", DATA_SETS)
def test_averages_are_those_of_their_rows(label, data_set):
    """The printed averages are those of the printed numbers, so a wrongly copied digit shows."""
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
    assert published("sec:empty_intersection", "fb15k").row("cone") == {
        "more than five": 2.495,
        "none": 1.737,
        "ROC-AUC": 0.9632,
    }


def test_every_experiment_names_tables_that_exist():
    repeated = [label for experiment in EXPERIMENTS.values() for label in experiment.paper]
    assert set(repeated) == {*labels(), *FIGURE_PLACES}, "and every table has its experiment"
    assert [place_of(label) for label in ("table:dis", "fig:models")] == ["Table 8", "Figure 2"]


def test_published_rows_exist_for_all_data_sets():
    for data_set in ("fb15k", "fb15k-237", "nell995"):
        assert set(published("table:epfo_results", data_set).rows) == {"gqe", "box", "beta", "cone"}
