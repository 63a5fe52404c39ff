import shutil
from dataclasses import replace

import numpy as np
import pytest

import conekg.experiments.mrr_table
from conekg.errors import DataError
from conekg.experiments.catalog import find_experiment
from conekg.experiments.main_results import main_epfo
from conekg.experiments.mrr_table import mrr_table, rank_row, ranking_notes
from conekg.experiments.published import published
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.sampling.query_set import save_query_set
from conekg.sampling.source import open_queries
from conekg.training.loop import train
from conekg.training.run import open_run
from plain_mrr import mrr_row
from tiny import tiny_queries, tiny_run


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


def test_other_queries_and_where_ours_are_from(trained, named, options):
    run = named(trained["cone"], "NELL")
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


@pytest.mark.parametrize("name", ["main-epfo", "dimensions", "union", "emql", "seeds"])
def test_without_queries_there_is_no_table_of_dashes(name, trained, options, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained["cone"].folder, folder)
    empty = replace(tiny_queries()["test"], blocks=())
    save_query_set(folder / "queries" / "test.arrow", empty)
    save_query_set(tmp_path / "empty.arrow", empty)
    measure, run = find_experiment(name).measure, open_run(folder)
    with pytest.raises(DataError, match="there are no test queries to rank") as caught:
        measure([run], options)
    assert caught.value.path == str(folder)
    assert "held-out facts, or other queries by --queries or --split" in str(caught.value.hint)
    with pytest.raises(DataError, match="there are no test queries to rank") as caught:
        measure([run], replace(options, queries=tmp_path / "empty.arrow"))
    assert caught.value.path == str(tmp_path / "empty.arrow")
    assert measure([run], replace(options, split="valid"))


@pytest.mark.parametrize("name", ["main-epfo", "dimensions", "union", "emql", "seeds"])
def test_given_queries_are_read_once(name, trained, options, monkeypatch):
    opened = []

    def opening(*arguments):
        opened.append(arguments)
        return open_queries(*arguments)

    monkeypatch.setattr(conekg.experiments.mrr_table, "open_queries", opening)
    runs = [trained["cone"], trained["cone-10"]]
    folder = runs[0].folder / "queries"
    find_experiment(name).measure(runs, replace(options, queries=folder))
    assert len(opened) == 1, "a benchmark's folder takes a while to read"


def test_runs_with_different_queries_are_noted(trained, options, tmp_path):
    """`conekg train` samples queries by the training seed, so runs of two seeds differ."""
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
