import shutil
from dataclasses import replace

import pytest

from conekg.experiments.emql import emql
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.sampling.betae_files import write_betae
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.query_set import QuerySet, save_query_set
from conekg.sampling.source import open_queries
from conekg.training.run import open_run
from plain_mrr import mrr_row
from tiny import tiny_queries


def expected(run, queries, reported):
    return mrr_row(run.load_model("best"), queries, POSITIVE_STRUCTURES, reported)


def test_the_runs_own_queries(trained, reproduce):
    (table,) = reproduce("emql", trained["emql"].folder, trained["cone"].folder)
    assert [row["label"] for row in table["rows"]] == ["EmQL (emql)", "ConE (cone)"]
    for key, row in zip(("emql", "cone"), table["rows"], strict=True):
        values = {name: value for name, value in row["values"].items() if name != "AVG"}
        assert values == pytest.approx(expected(trained[key], tiny_queries()["test"], values))
    assert any("no numbers for the graph 'tiny'" in note for note in table["notes"])
    assert not any("to compare with them" in note for note in table["notes"]), "it would not help"


def test_a_note_says_how_unions_of_emql_are_ranked(trained, reproduce):
    told = "Its own union, the sum of the branches' centroids, is part of its training alone"
    (table,) = reproduce("emql", trained["emql"].folder, trained["cone"].folder)
    assert sum(told in note for note in table["notes"]) == 1
    (table,) = reproduce("emql", trained["cone"].folder, trained["box"].folder)
    assert not any(told in note for note in table["notes"])


def test_a_query2box_folder_brings_the_papers_row(trained, options, tmp_path):
    positive = [b for b in tiny_queries()["valid"] if b.shape.name in POSITIVE_STRUCTURES]
    write_query2box(tmp_path, QuerySet("test", tuple(positive), release="Query2Box"))
    run = open_run(trained["cone"].folder)
    run.graph.name = "FB15k"
    (table,) = emql([run], replace(options, queries=tmp_path))
    values = {n: v for n, v in table.row("ConE (cone)").values.items() if n != "AVG"}
    assert values == pytest.approx(expected(run, QuerySet("test", tuple(positive)), values))
    assert table.row("EmQL, Table 14").values == {"AVG": 43.9}
    average = sum(values.values()) / len(POSITIVE_STRUCTURES)
    assert table.row("ConE (cone) − paper").values == pytest.approx({"AVG": average - 52.9})
    file = trained["cone"].folder / "queries" / "valid.arrow"
    (valid,) = emql([run], replace(options, queries=file))
    assert valid.title.endswith("queries of valid.arrow")
    assert any("these queries were sampled here" in note for note in valid.notes)
    assert not any("were sampled here" in note for note in table.notes), "a release says nothing"
    (own,) = emql([run], options)
    assert all(row.kind == "ours" for row in own.rows), "sampled here, no comparison"
    assert any("give its folder as --queries to compare" in note for note in own.notes)


def test_a_run_trained_on_the_release_has_the_papers_row(trained, options, tmp_path):
    positive = [b for b in tiny_queries()["valid"] if b.shape.name in POSITIVE_STRUCTURES]
    write_query2box(tmp_path / "files", QuerySet("test", tuple(positive), release="Query2Box"))
    shutil.copytree(trained["cone"].folder, tmp_path / "cone")
    run = open_run(tmp_path / "cone")
    read = open_queries(tmp_path / "files", "test", run.graph)
    save_query_set(tmp_path / "cone" / "queries" / "test.arrow", read)
    run = open_run(tmp_path / "cone")
    run.graph.name = "FB15k"
    (table,) = emql([run], options)
    assert table.row("ConE, Table 14").values == {"AVG": 52.9}
    assert not any("Query2Box release" in note for note in table.notes)
    other = open_run(trained["cone-10"].folder)
    other.graph.name = "FB15k"
    (mixed,) = emql([run, other], options)
    assert all(row.kind == "ours" for row in mixed.rows), "one of them is of other queries"
    assert any("to compare with them" in note for note in mixed.notes)


def test_the_papers_row_does_not_stand_beside_another_release(trained, options, tmp_path):
    run = open_run(trained["cone"].folder)
    run.graph.name = "FB15k"
    own = replace(run.queries("test"), release="BetaE", protocol=None, seed=None)
    write_betae(tmp_path / "release", own)
    (table,) = emql([run], replace(options, queries=tmp_path / "release"))
    assert [row.label for row in table.rows] == ["ConE (cone)"]
    (note,) = [note for note in table.notes if "in the form of the BetaE release" in note]
    assert "the paper's Table 14 are of the Query2Box release" in note
    assert not any("has no numbers for the graph" in note for note in table.notes)
    run.graph.name = "mine"
    (table,) = emql([run], replace(options, queries=tmp_path / "release"))
    assert any("has no numbers for the graph 'mine'" in note for note in table.notes)
    assert not any("in the form of" in note for note in table.notes), "none would be there"


def test_a_file_that_names_no_release_is_noted(trained, options, tmp_path):
    run = open_run(trained["cone"].folder)
    run.graph.name = "FB15k"
    imported = replace(run.queries("test"), protocol=None)
    file = tmp_path / "imported" / "test.arrow"
    save_query_set(file, imported)
    for given in (file, file.parent):
        (table,) = emql([run], replace(options, queries=given))
        assert any(row.kind == "paper" for row in table.rows)
        said = "ConE (cone): these queries do not say of which release they are; the paper's are "
        assert f"{said}those of the Query2Box release, which --queries takes." in table.notes
