import shutil
from dataclasses import replace

import pytest

from conekg.experiments.beside_paper import of_release, release_note
from conekg.experiments.catalog import find_experiment
from conekg.experiments.main_results import main_epfo
from conekg.experiments.published import published
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.sampling.betae_files import write_betae
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.query_set import QuerySet, save_query_set
from conekg.sampling.source import open_queries
from conekg.training.recipes import data_set_of
from conekg.training.run import open_run
from tiny import tiny_queries


@pytest.mark.parametrize("name", ["main-epfo", "dimensions", "union", "seeds"])
def test_the_papers_rows_do_not_stand_beside_another_release(
    name, trained, named, options, tmp_path
):
    run = named(trained["cone"], "NELL")
    positive = [b for b in tiny_queries()["test"] if b.shape.name in POSITIVE_STRUCTURES]
    queries = QuerySet("test", tuple(positive))
    write_betae(tmp_path / "betae", replace(queries, release="BetaE"))
    write_query2box(tmp_path / "query2box", replace(queries, release="Query2Box"))
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
def test_a_run_remembers_the_release_it_was_trained_on(name, trained, named, options, tmp_path):
    """The paper's rows are of the BetaE release: beside a run on Query2Box's folder there are none.

    The run has its own copy of the queries, and nothing else says where they came from.
    """
    positive = [b for b in tiny_queries()["test"] if b.shape.name in POSITIVE_STRUCTURES]
    for release, write in (("BetaE", write_betae), ("Query2Box", write_query2box)):
        folder = tmp_path / release
        shutil.copytree(trained["cone"].folder, folder)
        run = open_run(folder)
        write(tmp_path / "files" / release, QuerySet("test", tuple(positive), release=release))
        read = open_queries(tmp_path / "files" / release, "test", run.graph)
        (folder / "queries" / "valid.arrow").unlink()
        save_query_set(folder / "queries" / "test.arrow", read)
        run = named(open_run(folder), "NELL")
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


def test_the_note_says_whether_all_or_some_queries_are_of_another_release(random_graph):
    edges = {split: random_graph.edges(split) for split in SPLITS}
    nell = KnowledgeGraph("NELL", random_graph.vocabulary, edges)
    paper = published("table:epfo_results", data_set_of("NELL"))
    own, other = (QuerySet("test", (), release=name) for name in ("BetaE", "Query2Box"))
    for sets, these in (([other, other], "These are"), ([own, other], "Some are")):
        (note,) = release_note(of_release(paper, sets), nell, sets)
        assert note.startswith(f"{these} queries in the form of the Query2Box release. ")
    elsewhere = published("table:epfo_results", data_set_of("random"))
    (note,) = release_note(of_release(elsewhere, [other]), random_graph, [other])
    assert note.startswith("The paper has no numbers for the graph 'random' here, only for ")


def test_the_origin_of_queries_is_noted_only_beside_the_papers_numbers(trained, named, options):
    for run, stands in ((named(trained["cone"], "NELL"), True), (trained["cone"], False)):
        (table,) = main_epfo([run], options)
        assert any(row.kind == "paper" for row in table.rows) is stands
        assert any("were sampled here" in note for note in table.notes) is stands


@pytest.mark.parametrize(
    ("name", "taken_by"),
    [("main-epfo", "--queries"), ("cardinality", "`conekg train --queries`")],
)
def test_queries_of_no_known_release_are_noted_beside_the_papers_numbers(
    name, taken_by, trained, named, options, tmp_path
):
    """Such as those that earlier versions imported, or that were given without an origin."""
    folder = tmp_path / "cone"
    shutil.copytree(trained["cone"].folder, folder)
    of_release = replace(tiny_queries()["test"], protocol=None, seed=None, release="BetaE")
    for release, is_noted in (("BetaE", False), (None, True)):
        save_query_set(folder / "queries" / "test.arrow", replace(of_release, release=release))
        run = named(open_run(folder), "NELL")
        table = find_experiment(name).measure([run], replace(options, max_queries=2))[0]
        told = "ConE (cone): these queries do not say of which release they are; the paper's are "
        told += f"those of the BetaE release, which {taken_by} takes."
        assert any(row.kind == "paper" for row in table.rows)
        assert (told in table.notes) is is_noted
    table = find_experiment(name).measure([open_run(folder)], replace(options, max_queries=2))[0]
    assert not any("of which release" in note for note in table.notes), "no numbers to compare with"


def test_exported_queries_do_not_pass_for_the_releases_when_they_are_read_again(
    trained, named, options, tmp_path
):
    run = named(trained["cone"], "NELL")
    write_betae(tmp_path, run.queries("test"))
    (own,) = main_epfo([run], options)
    (given,) = main_epfo([run], replace(options, queries=tmp_path))
    notes = [[n for n in table.notes if "were sampled here" in n] for table in (own, given)]
    assert notes[0] == notes[1] != []


def test_other_splits_than_the_papers_are_noted(trained, named, options):
    run = named(trained["cone"], "NELL")
    file = run.folder / "queries" / "valid.arrow"
    for chosen in ({"split": "valid"}, {"queries": file}):
        (table,) = main_epfo([run], replace(options, **chosen))
        (note,) = [note for note in table.notes if "of test queries" in note]
        assert note.startswith("The paper's numbers are of test queries, these of valid queries:")
    for ours, chosen in ((run, options), (trained["cone"], replace(options, split="valid"))):
        (table,) = main_epfo([ours], chosen)
        assert not any("of test queries" in note for note in table.notes)


@pytest.mark.parametrize(
    "name",
    [
        "main-epfo",
        "main-negation",
        "cardinality",
        "operators",
        "empty-intersection",
        "dimensions",
        "union",
        "emql",
        "seeds",
        "variability",
        "membership",
        "speed",
    ],
)
def test_another_graph_of_the_same_name_is_noted(
    name, trained, named, options, tmp_path, monkeypatch
):
    run = named(trained["cone"], "FB15k")
    few = replace(options, max_queries=2, pairs=20, steps=1)
    if name == "emql":  # the paper's row is for the Query2Box release
        positive = [b for b in tiny_queries()["test"] if b.shape.name in POSITIVE_STRUCTURES]
        write_query2box(tmp_path, QuerySet("test", tuple(positive), release="Query2Box"))
        few = replace(few, queries=tmp_path)

    def told():
        tables = find_experiment(name).measure([run], few)
        assert tables
        assert all(any(row.kind == "paper" for row in table.rows) for table in tables)
        return [[note for note in table.notes if "is called" in note] for table in tables]

    for notes in told():
        if name == "speed":
            assert notes == [], "its numbers are of no graph in particular"
            continue
        (note,) = notes
        assert note.startswith(
            "The graph is called 'FB15k' but has 31 entities and 3 relations, not 14,951 and "
            "1,345: the paper's numbers are of another graph, "
        )
    monkeypatch.setitem(BENCHMARKS, "fb15k", replace(BENCHMARKS["fb15k"], size=(31, 3)))
    assert all(notes == [] for notes in told())


def test_another_graph_is_not_noted_without_the_papers_numbers(trained, named, options):
    (table,) = find_experiment("emql").measure([named(trained["cone"], "FB15k")], options)
    assert all(row.kind == "ours" for row in table.rows)
    assert not any("is called" in note for note in table.notes)
