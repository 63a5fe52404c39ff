from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conekg.errors import ConeKGError, ConfigError, DataError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.rdf import RdfOptions
from conekg.graph.source import ReadOptions, open_graph, read_source
from conekg.graph.split import HoldOut
from conekg.graph.store import save_graph
from extras import need
from toy_release import write_folder

FACTS = "".join(f"a{i}\tr{i % 2}\ta{j}\n" for i in range(6) for j in range(6) if i != j)


def test_the_embedded_graph_has_a_name() -> None:
    assert open_graph("geography").name == "geography"


def test_a_store_is_opened(film_graph: KnowledgeGraph, tmp_path: Path) -> None:
    save_graph(film_graph, tmp_path / "films")
    for source in (tmp_path / "films", str(tmp_path / "films")):
        assert open_graph(source).fingerprint == film_graph.fingerprint


def test_a_run_folder_stands_for_its_graph(film_graph: KnowledgeGraph, tmp_path: Path) -> None:
    run = tmp_path / "run"
    save_graph(film_graph, run / "graph")
    (run / "run.json").write_text("{}", encoding="utf-8")
    assert open_graph(run).fingerprint == film_graph.fingerprint
    with pytest.raises(ConfigError, match="a run folder"):
        open_graph(run, ReadOptions(valid=tmp_path / "valid.tsv"))


def test_a_file_is_split_by_the_options(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS)
    graph = open_graph(path, ReadOptions(hold_out=HoldOut(0.1, 0.2, seed=1)))
    assert graph.name == "facts"
    assert [len(graph.triples(split)) for split in SPLITS] == [21, 3, 6]
    (tmp_path / "facts.tsv.gz").write_bytes(gzip.compress(FACTS.encode()))
    packed = open_graph(tmp_path / "facts.tsv.gz", ReadOptions(hold_out=HoldOut(0.1, 0.2, seed=1)))
    assert packed.fingerprint == graph.fingerprint


def test_three_files_and_a_folder_of_three_files_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(FACTS)
    (tmp_path / "valid.csv").write_text("a0,r1,a1\n")
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(b"a1\tr0\ta2\n"))
    (tmp_path / "entity_names.tsv").write_text("a0\tAda\n")
    folder = open_graph(tmp_path)
    files = open_graph(
        tmp_path / "train.tsv",
        ReadOptions(
            valid=tmp_path / "valid.csv",
            test=tmp_path / "test.tsv.gz",
            entity_labels=tmp_path / "entity_names.tsv",
        ),
    )
    assert folder.fingerprint == files.fingerprint
    assert folder.vocabulary.entities.label(0) == files.vocabulary.entities.label(0) == "Ada"
    assert [len(folder.triples(split)) for split in SPLITS] == [30, 1, 1]


def test_labels_that_are_given_take_the_place_of_a_folders_own(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(FACTS)
    (tmp_path / "entity_names.tsv").write_text("a0\tAda\n")
    (tmp_path / "relation_text.tsv").write_text("r0\trelated\n")
    (tmp_path / "other.tsv").write_text("a0\tAmy\nr0\trevered\n")
    own = open_graph(tmp_path).vocabulary
    assert (own.entities.label(0), own.relation_label(0)) == ("Ada", "related")
    given = ReadOptions(entity_labels=tmp_path / "other.tsv")
    entities = open_graph(tmp_path, given).vocabulary
    assert (entities.entities.label(0), entities.relation_label(0)) == ("Amy", "related")
    given = ReadOptions(relation_labels=tmp_path / "other.tsv")
    relations = open_graph(tmp_path, given).vocabulary
    assert (relations.entities.label(0), relations.relation_label(0)) == ("Ada", "revered")


def test_a_benchmark_folder_is_recognised(tmp_path: Path) -> None:
    assert open_graph(write_folder(tmp_path / "toy")).num_relations == 4


@pytest.mark.parametrize("packing", [".bz2", ".zst"])
def test_split_files_may_be_packed(packing: str, tmp_path: Path) -> None:
    for split, facts in (("train", FACTS), ("test", "a1\tr0\ta2\n")):
        with pa.output_stream(str(tmp_path / f"{split}.tsv{packing}")) as stream:
            stream.write(facts.encode())  # packed as the name says
    graph = open_graph(tmp_path)
    assert len(graph.triples("train")) == len(set(FACTS.splitlines()))
    assert len(graph.triples("test")) == 1


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (None, "is None; it must be a name or a path"),
        ([("a", "r", "b")], "is of type list; .* write facts that are in memory to a file first"),
    ],
)
def test_a_source_that_is_no_name_or_path_is_refused(source: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        open_graph(source)


def test_options_of_another_type_are_refused() -> None:
    with pytest.raises(ConfigError, match="options is 'x'; it must be ReadOptions"):
        open_graph("geography", "x")  # type: ignore[arg-type]


def test_a_graph_as_source_is_refused(film_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"is of type KnowledgeGraph; .* it is a graph already"):
        open_graph(film_graph)  # type: ignore[arg-type]


def test_merged_triples_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS + FACTS)
    assert read_source(path).notes == (f"{path}: 30 repeated triples merged",)


def test_open_graph_logs_the_notes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("from\tby 100%s\tto\n" + FACTS + FACTS)
    open_graph(path)
    header, merged = caplog.messages
    assert "the first line, 'from' 'by 100%s' 'to', is taken for a fact" in header
    assert merged == f"{path}: 30 repeated triples merged"
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    caplog.clear()
    save_graph(open_graph("geography"), tmp_path / "graph")
    open_graph(tmp_path / "graph")
    assert caplog.messages == []


def test_a_folder_with_the_name_of_a_known_graph_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_source("geography").notes == ()
    (tmp_path / "geography").mkdir()
    (tmp_path / "geography" / "train.tsv").write_text(FACTS)
    read = read_source("geography")
    assert read.notes == (
        "'geography' is the built-in graph; for the file or folder of that name here write "
        "'./geography'",
    )
    assert read.graph.num_entities > open_graph("./geography").num_entities == 6


def test_errors_for_unknown_sources_have_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean 'nell995'"):
        open_graph("nell-995")
    with pytest.raises(ConeKGError, match=r"accepted: geography, nell995"):
        open_graph(tmp_path / "absent")
    with pytest.raises(DataError, match="the folder holds no graph"):
        open_graph(tmp_path)
    with pytest.raises(DataError, match="pass 'geography' as text: a Path is a file or folder"):
        open_graph(Path("geography"))


def test_two_files_of_one_split_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text(FACTS)
    (tmp_path / "train.csv").write_text("a,r,b\n")
    with pytest.raises(DataError, match=r"2 files hold train triples: train.tsv, train.csv"):
        open_graph(tmp_path)


def test_options_that_would_change_nothing_are_refused(
    film_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS)
    store = save_graph(film_graph, tmp_path / "films")
    split = HoldOut(seed=3)
    cases: list[tuple[object, ReadOptions]] = [
        ("geography", ReadOptions(hold_out=split)),
        ("nell995", ReadOptions(valid=path)),
        (store, ReadOptions(entity_labels=path)),
        (path, ReadOptions(unseen="drop")),
        (path, ReadOptions(test=path, hold_out=split)),
    ]
    for source, options in cases:
        with pytest.raises(ConfigError, match="cannot be combined with"):
            open_graph(source, options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="goes with its name"):
        open_graph("geography", benchmark_folder=tmp_path)


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    with pytest.raises(DataError, match=r"pipe\.tsv: is neither a file nor a folder") as caught:
        open_graph(tmp_path / "pipe.tsv")
    assert "write the facts to a file" in str(caught.value.hint)


def test_an_empty_name_is_not_read_as_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.tsv").write_text("a\tr\tb\n")
    monkeypatch.chdir(tmp_path)
    assert open_graph(".").num_entities == 2
    with pytest.raises(DataError, match="the name of the graph is empty"):
        open_graph("")


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_training_file_may_have_one_other_file_beside_it(tmp_path: Path, split: str) -> None:
    for name, text in (("train", "a\tr\tb\nb\tr\ta\n"), ("other", "a\tr\ta\n")):
        (tmp_path / f"{name}.tsv").write_text(text)
    options = ReadOptions(**{split: tmp_path / "other.tsv"})
    graph = open_graph(tmp_path / "train.tsv", options)
    assert {each: len(graph.triples(each)) for each in SPLITS} == {
        "train": 2, "valid": 0, "test": 0, split: 1,
    }  # fmt: skip


def test_options_for_rdf_need_an_rdf_file(film_graph: KnowledgeGraph, tmp_path: Path) -> None:
    need("pyoxigraph")
    facts, rdf = tmp_path / "facts.tsv", tmp_path / "valid.nt"
    facts.write_text("http://a\thttp://r\thttp://b\nhttp://a\thttp://age\t7\n")
    rdf.write_text('<http://b> <http://age> "7" .\n')
    keeping = RdfOptions(literals=("age",))
    for options in (RdfOptions(language="de"), keeping):
        with pytest.raises(
            ConfigError, match=r"are for RDF, which ends in \.nt, .*facts\.tsv does"
        ):
            open_graph(facts, ReadOptions(rdf=options))
    graph = open_graph(facts, ReadOptions(valid=rdf, rdf=keeping))
    assert len(graph.triples("valid")) == 1
    with pytest.raises(DataError, match="no triples in the file"):
        open_graph(facts, ReadOptions(valid=rdf))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "train.nt").write_text('<http://b> <http://age> "7" .\n')
    assert len(open_graph(folder, ReadOptions(rdf=keeping)).triples("train")) == 1
    save_graph(film_graph, tmp_path / "films")
    for source in (tmp_path / "films", "geography"):
        with pytest.raises(ConfigError, match="literals to keep cannot be combined with"):
            open_graph(source, ReadOptions(rdf=keeping))
