from dataclasses import replace

import pytest

from conekg.experiments.main_results import is_within, main_epfo, main_negation
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.sampling.query_set import save_query_set
from plain_mrr import mrr_row
from tiny import tiny_queries


def expected_mrr(run, structures, reported):
    return mrr_row(run.load_model("best"), tiny_queries()["test"], structures, reported)


def test_rows_are_the_runs_evaluation(trained, reproduce):
    (table,) = reproduce("main-epfo", trained["cone"].folder, trained["box"].folder)
    ours = [row for row in table["rows"] if row["kind"] == "ours"]
    assert [row["label"] for row in ours] == ["ConE (cone)", "Query2Box (box)"]
    assert len(table["rows"]) == 2, "the paper has no tiny graph"
    assert any("no numbers for the graph 'tiny'" in note for note in table["notes"])
    for row, key in zip(ours, ("cone", "box"), strict=True):
        expected = expected_mrr(trained[key], POSITIVE_STRUCTURES, row["values"])
        assert tuple(expected) == POSITIVE_STRUCTURES
        assert row["values"].pop("AVG") == pytest.approx(sum(expected.values()) / 9)
        assert row["values"] == pytest.approx(expected)


def test_rows_with_negation_are_the_runs_evaluation(trained, reproduce):
    (table,) = reproduce("main-negation", trained["beta"].folder)
    values = table["rows"][0]["values"]
    assert values == pytest.approx(expected_mrr(trained["beta"], NEGATION_STRUCTURES, values))
    assert table["columns"] == [*NEGATION_STRUCTURES, "AVG"]


def test_negation_says_what_a_box_cannot_do(trained, options):
    (table,) = main_negation([trained["cone"], trained["box"]], options)
    values = table.row("ConE (cone)").values
    expected = expected_mrr(trained["cone"], NEGATION_STRUCTURES, values)
    assert 3 <= len(expected) < 5, "the tiny graph has not all of them"
    assert values == pytest.approx(expected), "and so no average"
    assert "AVG is left out where a structure is missing." in table.notes
    assert not any("avg_n" in note for note in table.notes), "it is not in the table"
    assert table.row("Query2Box (box)").values == {}
    assert any("box has no negation" in note for note in table.notes)


def test_the_papers_rows_and_differences_stand_beside_ours(trained, named, options):
    run = named(trained["cone"], "NELL")
    (table,) = main_epfo([run], options)
    ours = dict(table.row("ConE (cone)").values)
    assert table.row("ConE, Table 1").values["1p"] == 53.1
    assert table.row("GQE, Table 1").values["2u"] == 8.5
    apart = table.row("ConE (cone) − paper").values
    assert apart["1p"] == pytest.approx(ours["1p"] - 53.1)
    assert table.paper == "table:epfo_results", "also where a row of comparisons has a label too"
    within = table.row("ConE (cone) within the error bar").values
    assert within["1p"] is (abs(ours["1p"] - 53.1) <= 0.117 + 0.05)
    (other,) = main_epfo([named(trained["box"], "NELL")], options)
    assert other.rows[-1].label == "Query2Box (box) − paper", "whose error bar the paper has not"
    assert other.rows[-1].values["1p"] == pytest.approx(other.rows[0].values["1p"] - 42.7)
    assert "within the error bar" in table.to_markdown()
    assert " no " in table.to_markdown()


def test_within_the_error_bar_allows_for_rounding():
    assert is_within({"1p": 53.26}, {"1p": 53.1}, {"1p": 0.117}) == {"1p": True}
    assert is_within({"1p": 53.28}, {"1p": 53.1}, {"1p": 0.117}) == {"1p": False}
    assert is_within({"1p": 52.9}, {"1p": 53.1}, {"1p": 0.117}) == {"1p": False}


def test_without_a_measured_structure_nothing_is_within_the_error_bar(
    trained, named, options, tmp_path
):
    run = named(trained["cone"], "NELL")
    links = tmp_path / "links.arrow"
    queries = run.queries("test")
    save_query_set(links, replace(queries, blocks=(queries.block("1p"),)))
    (table,) = main_negation([run], replace(options, queries=links))
    assert table.row("ConE (cone)").values == {}
    assert not [row for row in table.rows if row.kind == "comparison"]
    assert not any(note.startswith("Within the error bar") for note in table.notes)
