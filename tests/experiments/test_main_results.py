import shutil
from dataclasses import replace

import numpy as np
import pytest

from conekg.errors import ConfigError
from conekg.experiments import main_results
from conekg.experiments.catalog import find_experiment
from conekg.experiments.experiment import common_data_set, notes_of_each
from conekg.experiments.main_results import (
    MAIN_EPFO,
    is_within,
    main_epfo,
    main_negation,
    mrr_table,
    rank_row,
    ranking_notes,
)
from conekg.experiments.published import published
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.sampling.benchmark_files import write_betae, write_query2box
from conekg.sampling.query_set import QuerySet, save_query_set
from conekg.sampling.source import open_queries
from conekg.training.loop import train
from conekg.training.run import open_run
from plain_mrr import mrr, mrr_row
from tiny import tiny_queries, tiny_run


def named(run, name, tmp_path):
    """The run with its graph called `name`, which is how the paper's data sets are known."""
    renamed = open_run(run.folder)
    renamed.graph.name = name
    return renamed


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


def test_the_papers_rows_and_differences_stand_beside_ours(trained, options, tmp_path):
    run = named(trained["cone"], "NELL", tmp_path)
    (table,) = main_epfo([run], options)
    ours = dict(table.row("ConE (cone)").values)
    assert table.row("ConE, Table 1").values["1p"] == 53.1
    assert table.row("GQE, Table 1").values["2u"] == 8.5
    apart = table.row("ConE (cone) − paper").values
    assert apart["1p"] == pytest.approx(ours["1p"] - 53.1)
    assert table.paper == "table:epfo_results", "also where a row of comparisons has a label too"
    within = table.row("ConE (cone) within the error bar").values
    assert within["1p"] is (abs(ours["1p"] - 53.1) <= 0.117 + 0.05)
    (other,) = main_epfo([named(trained["box"], "NELL", tmp_path)], options)
    assert other.rows[-1].label == "Query2Box (box) − paper", "whose error bar the paper has not"
    assert other.rows[-1].values["1p"] == pytest.approx(other.rows[0].values["1p"] - 42.7)
    assert "within the error bar" in table.to_markdown()
    assert " no " in table.to_markdown()


def test_a_table_has_its_own_columns_and_ends_where_they_are_given(trained, options):
    run, paper = trained["cone"], published("table:epfo_results", "nell995")
    own = rank_row(
        run, run.queries("test"), options, ("2i",), paper, label="mine", theirs={"2i": 1}
    )
    plain = mrr_table("Some", [own], options, ("2i", "2in"), paper)
    assert plain.title == "Some, tiny, test queries"
    assert plain.columns == ("2i", "2in", "AVG")
    labels = ["mine", *(f"{name}, Table 1" for name in ("GQE", "Query2Box", "BetaE", "ConE"))]
    assert [row.label for row in plain.rows] == [*labels, "mine − paper"]
    assert plain.rows[-1].values == {"2i": pytest.approx(plain.rows[0].values["2i"] - 1)}
    (ranked, counted), about = ranking_notes([own]), own.notes
    assert plain.notes == (*about, ranked, counted)
    told = {"opening": ["first", counted], "closing": ["last"]}
    other = mrr_table("Some", [own], options, ("2i",), paper, columns=("2i",), **told)
    assert other.columns == ("2i",)
    assert other.notes == ("first", counted, *about, ranked, "last"), "each note is told once"


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
    values = {n: v for n, v in given.row("ConE (cone)").values.items() if n != "AVG"}
    model = run.load_model("best")
    assert values == pytest.approx(
        mrr_row(model, tiny_queries()["valid"], POSITIVE_STRUCTURES, values)
    )
    assert own.row("ConE (cone)").values != given.row("ConE (cone)").values
    folder = run.folder / "queries"
    (valid,) = main_epfo([run], replace(options, queries=folder, split="valid"))
    assert valid.title == "Queries without negation, NELL, valid queries of queries"
    assert valid.row("ConE (cone)").values == given.row("ConE (cone)").values


@pytest.mark.parametrize("name", ["main-epfo", "dimensions", "union", "seeds"])
def test_the_papers_rows_do_not_stand_beside_another_release(name, trained, options, tmp_path):
    run = named(trained["cone"], "NELL", tmp_path)
    positive = [b for b in tiny_queries()["test"] if b.shape.name in POSITIVE_STRUCTURES]
    queries = QuerySet("test", tuple(positive))
    write_betae(tmp_path / "betae", queries)
    write_query2box(tmp_path / "query2box", queries)
    experiment = find_experiment(name)
    table = experiment.measure([run], replace(options, queries=tmp_path / "betae"))[0]
    assert any(row.kind == "paper" for row in table.rows)
    assert not any("in the form of" in note for note in table.notes)
    table = experiment.measure([run], replace(options, queries=tmp_path / "query2box"))[0]
    assert all(row.kind == "ours" for row in table.rows)
    (note,) = [note for note in table.notes if "in the form of the Query2Box release" in note]
    assert "are of the BetaE release" in note


@pytest.mark.parametrize(
    "name", ["main-epfo", "dimensions", "union", "seeds", "cardinality", "membership"]
)
def test_a_run_remembers_the_release_it_was_trained_on(name, trained, options, tmp_path):
    """The paper's rows are of the BetaE release: beside a run on Query2Box's folder there are none.

    The run has its own copy of the queries, and nothing else says where they came from.
    """
    positive = [b for b in tiny_queries()["test"] if b.shape.name in POSITIVE_STRUCTURES]
    for release, write in (("BetaE", write_betae), ("Query2Box", write_query2box)):
        folder = tmp_path / release
        shutil.copytree(trained["cone"].folder, folder)
        run = open_run(folder)
        write(tmp_path / "files" / release, QuerySet("test", tuple(positive)))
        read = open_queries(tmp_path / "files" / release, "test", run.graph)
        (folder / "queries" / "valid.arrow").unlink()
        save_query_set(folder / "queries" / "test.arrow", read)
        run = named(open_run(folder), "NELL", tmp_path)
        table = find_experiment(name).measure([run], replace(options, max_queries=2))[0]
        told = [note for note in table.notes if "in the form of the Query2Box release" in note]
        if release == "BetaE":
            assert any(row.kind == "paper" for row in table.rows)
            assert told == []
        else:
            assert all(row.kind == "ours" for row in table.rows)
            assert len(told) == 1
            assert "are of the BetaE release, which has other queries" in told[0]
        assert not any("were sampled here" in note for note in table.notes)


def test_structures_without_queries_are_named_and_counts_told(trained, options, tmp_path):
    queries = tiny_queries()["test"]
    kept = [queries.block(name) for name in ("1p", "2i")]
    save_query_set(tmp_path / "some.arrow", replace(queries, blocks=tuple(kept)))
    (table,) = main_epfo([trained["cone"]], replace(options, queries=tmp_path / "some.arrow"))
    assert "There are no test queries of 2p, 3p, 3i, pi, ip, 2u, up." in table.notes
    counts = {b.shape.name: int((b.hard.lengths > 0).sum()) for b in kept}
    (told,) = [note for note in table.notes if note.startswith("Queries measured")]
    if counts["1p"] == counts["2i"]:
        assert told == f"Queries measured: {counts['1p']} of each structure."
    else:
        assert told == f"Queries measured: {counts['1p']} of 1p, {counts['2i']} of 2i."


def test_what_is_so_of_one_run_alone_is_told_of_that_run():
    assert notes_of_each({"a": ["x", "y"], "b": ["z", "x"]}) == ["x", "a: y", "b: z"]
    assert notes_of_each({"a": ["x", "y"]}) == ["x", "y"]


@pytest.mark.parametrize("name", ["main-epfo", "dimensions", "union", "emql", "seeds"])
def test_given_queries_are_read_once(name, trained, options, monkeypatch):
    opened = []

    def opening(*arguments):
        opened.append(arguments)
        return open_queries(*arguments)

    monkeypatch.setattr(main_results, "open_queries", opening)
    runs = [trained["cone"], trained["cone-10"]]
    folder = runs[0].folder / "queries"
    find_experiment(name).measure(runs, replace(options, queries=folder))
    assert len(opened) == 1, "a benchmark's folder takes a while to read"


def test_other_splits_than_the_papers_are_said_to_be(trained, options, tmp_path):
    run = named(trained["cone"], "NELL", tmp_path)
    file = run.folder / "queries" / "valid.arrow"
    for chosen in ({"split": "valid"}, {"queries": file}):
        (table,) = main_epfo([run], replace(options, **chosen))
        (note,) = [note for note in table.notes if "of test queries" in note]
        assert note.startswith("The paper's numbers are of test queries, these of valid queries:")
    for ours, chosen in ((run, options), (trained["cone"], replace(options, split="valid"))):
        (table,) = main_epfo([ours], chosen)
        assert not any("of test queries" in note for note in table.notes)


def test_without_a_measured_structure_nothing_is_within_the_error_bar(trained, options, tmp_path):
    run = named(trained["cone"], "NELL", tmp_path)
    links = tmp_path / "links.arrow"
    queries = run.queries("test")
    save_query_set(links, replace(queries, blocks=(queries.block("1p"),)))
    (table,) = main_negation([run], replace(options, queries=links))
    assert table.row("ConE (cone)").values == {}
    assert not [row for row in table.rows if row.kind == "comparison"]
    assert not any(note.startswith("Within the error bar") for note in table.notes)


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


def test_runs_with_other_queries_are_told_apart(trained, options, tmp_path):
    """`conekg train` samples by the seed of the training: runs of two seeds differ in both."""
    same, other = trained["cone-10"], tiny_run(tmp_path / "other", "cone", steps=1)
    block = other.queries("test").block("2p")
    fewer = replace(other.queries("test"), blocks=(block.take(np.arange(len(block) - 1)),))
    save_query_set(other.folder / "queries" / "test.arrow", fewer)
    other = open_run(other.folder)
    train(other, device=options.device)
    (table,) = main_epfo([trained["cone"], same], options)
    assert not any("own test queries" in note for note in table.notes)
    (table,) = main_epfo([trained["cone"], same, other], options)
    (note,) = [note for note in table.notes if "own test queries" in note]
    assert note.startswith(
        "Each run is measured on its own test queries, and those of ConE (other) are not those of "
        "ConE (cone): a part of the differences comes from the queries."
    )
    given = replace(options, queries=trained["cone"].folder / "queries" / "test.arrow")
    (table,) = main_epfo([trained["cone"], other], given)
    assert not any("own test queries" in note for note in table.notes)


def test_runs_of_one_name_are_told_apart(trained, reproduce, options, tmp_path):
    folders = [tmp_path / seed / "run" for seed in ("zero", "ten")]
    for folder, key in zip(folders, ("cone", "cone-10"), strict=True):
        shutil.copytree(trained[key].folder, folder)
    (table,) = reproduce("main-epfo", *folders)
    assert [row["label"] for row in table["rows"]] == ["ConE (zero/run)", "ConE (ten/run)"]
    for row, key in zip(table["rows"], ("cone", "cone-10"), strict=True):
        expected = expected_mrr(trained[key], POSITIVE_STRUCTURES, row["values"])
        assert row["values"]["1p"] == pytest.approx(expected["1p"])
    again = [open_run(folder) for folder in (folders[0], folders[1].parent / "." / "run")]
    with pytest.raises(ConfigError, match="is given twice"):
        MAIN_EPFO.measure([*again, open_run(folders[1])], options)


def test_weights_from_before_the_end_are_called_so(options, tmp_path):
    run = tiny_run(tmp_path / "run", "cone")
    train(run, device=options.device, max_minutes=0.0)
    (table,) = main_epfo([open_run(run.folder)], options)
    described = "cone with d = 32 on tiny, recipe 'small', weights of step 1 of 12, seed 0."
    assert f"ConE (run): {described}" in table.notes


def test_runs_of_different_graphs_are_refused(trained, film_graph, tmp_path):
    from untrained_run import untrained_run

    other = open_run(untrained_run(tmp_path / "films", film_graph))
    with pytest.raises(ConfigError, match="different graphs"):
        common_data_set([trained["cone"], other])


def test_published_rows_exist_for_all_data_sets():
    for data_set in ("fb15k", "fb15k-237", "nell995"):
        assert set(published("table:epfo_results", data_set).rows) == {"gqe", "box", "beta", "cone"}
