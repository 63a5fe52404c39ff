from dataclasses import replace

import pytest

from conekg.experiments.emql import emql
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.sampling.benchmark_files import write_query2box
from conekg.sampling.query_set import QuerySet
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
    assert any("Query2Box release" in note for note in table["notes"])


def test_a_query2box_folder_brings_the_papers_row(trained, options, tmp_path):
    positive = [b for b in tiny_queries()["valid"] if b.shape.name in POSITIVE_STRUCTURES]
    write_query2box(tmp_path, QuerySet("test", tuple(positive)))
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
    assert all(row.kind == "ours" for row in own.rows), "another release, no comparison"
