from dataclasses import replace

import pytest

from conekg.errors import ConfigError
from conekg.evaluation.evaluate import evaluate
from conekg.experiments.experiment import common_data_set
from conekg.experiments.main_results import MAIN_EPFO, is_within, main_epfo, main_negation
from conekg.experiments.published import published
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.run import open_run
from tiny import tiny_queries


def named(run, name, tmp_path):
    """The run with its graph called `name`, which is how the paper's data sets are known."""
    renamed = open_run(run.folder)
    renamed.graph.name = name
    return renamed


def expected_mrr(run, structures):
    report = evaluate(
        run.load_model("best"), tiny_queries()["test"], num_entities=run.graph.num_entities
    )
    return {name: 100 * report.measured[name].mrr for name in structures if name in report.measured}


def test_rows_are_the_runs_evaluation(trained, reproduce):
    (table,) = reproduce("main-epfo", trained["cone"].folder, trained["box"].folder)
    ours = [row for row in table["rows"] if row["kind"] == "ours"]
    assert [row["label"] for row in ours] == ["ConE (cone)", "Query2Box (box)"]
    assert len(table["rows"]) == 2, "the paper has no tiny graph"
    assert any("no numbers for the graph 'tiny'" in note for note in table["notes"])
    for row, key in zip(ours, ("cone", "box"), strict=True):
        expected = expected_mrr(trained[key], POSITIVE_STRUCTURES)
        average = row["values"].pop("AVG", None)
        assert row["values"] == pytest.approx(expected)
        if len(expected) == len(POSITIVE_STRUCTURES):
            assert average == pytest.approx(sum(expected.values()) / len(expected))
        else:
            assert average is None


def test_negation_says_what_a_box_cannot_do(trained, options):
    (table,) = main_negation([trained["cone"], trained["box"]], options)
    expected = expected_mrr(trained["cone"], NEGATION_STRUCTURES)
    values = dict(table.row("ConE (cone)").values)
    values.pop("AVG", None)
    assert expected
    assert values == pytest.approx(expected)
    assert table.row("Query2Box (box)").values == {}
    assert any("box has no negation" in note for note in table.notes)


def test_the_papers_rows_and_differences_stand_beside_ours(trained, options, tmp_path):
    run = named(trained["cone"], "NELL", tmp_path)
    (table,) = main_epfo([run], options)
    ours = dict(table.row("ConE (cone)").values)
    assert table.row("ConE, Table 1").values["1p"] == 53.1
    assert table.row("GQE, Table 1").values["2u"] == 8.5
    apart = table.row("ConE (cone) − paper").values
    assert apart["1p"] == pytest.approx(ours["1p"] - 53.1)
    within = table.row("ConE (cone) within the error bar").values
    assert within["1p"] is (abs(ours["1p"] - 53.1) <= 0.117 + 0.05)
    assert "within the error bar" in table.to_markdown()
    assert " no " in table.to_markdown()


def test_within_the_error_bar_allows_for_rounding():
    assert is_within({"1p": 53.26}, {"1p": 53.1}, {"1p": 0.117}) == {"1p": True}
    assert is_within({"1p": 53.28}, {"1p": 53.1}, {"1p": 0.117}) == {"1p": False}
    assert is_within({"1p": 52.9}, {"1p": 53.1}, {"1p": 0.117}) == {"1p": False}


def test_other_queries_and_where_ours_are_from(trained, options, tmp_path):
    run = named(trained["cone"], "NELL", tmp_path)
    (own,) = main_epfo([run], options)
    assert own.title == "Queries without negation, NELL, test queries"
    assert any("these queries were sampled here (protocol " in note for note in own.notes)
    file = run.folder / "queries" / "valid.arrow"
    (given,) = main_epfo([run], replace(options, queries=file))
    assert given.title == "Queries without negation, NELL, queries of valid.arrow"
    report = evaluate(
        run.load_model("best"), tiny_queries()["valid"], num_entities=run.graph.num_entities
    )
    for name in POSITIVE_STRUCTURES:
        if name in report.measured:
            mrr = given.row("ConE (cone)").values[name]
            assert mrr == pytest.approx(100 * report.measured[name].mrr)
    assert own.row("ConE (cone)").values != given.row("ConE (cone)").values


def test_fewer_queries_are_ranked_when_asked(trained, options):
    (few,) = MAIN_EPFO.measure([trained["cone"]], replace(options, max_queries=1))
    assert few.notes[-1] == "At most 1 queries of each structure were used."
    (all_of,) = main_epfo([trained["cone"]], options)
    assert few.row("ConE (cone)").values != all_of.row("ConE (cone)").values


def test_runs_of_different_graphs_are_refused(trained, film_graph, tmp_path):
    from untrained_run import untrained_run

    other = open_run(untrained_run(tmp_path / "films", film_graph))
    with pytest.raises(ConfigError, match="different graphs"):
        common_data_set([trained["cone"], other])


def test_published_rows_exist_for_all_data_sets():
    for data_set in ("fb15k", "fb15k-237", "nell995"):
        assert set(published("table:epfo_results", data_set).rows) == {"gqe", "box", "beta", "cone"}
