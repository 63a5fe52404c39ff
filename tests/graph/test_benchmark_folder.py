from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from conekg.errors import DataError
from conekg.graph.benchmark_folder import is_benchmark_folder, read_benchmark_folder
from conekg.graph.knowledge_graph import SPLITS
from toy_release import EDGES, ENTITIES, REVERSED, write_folder


@pytest.mark.parametrize("style", ["pkl", "tsv", "inverted", "inverted tsv"])
def test_a_folder_is_taken_exactly_as_it_is(style: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy", style=style)
    assert is_benchmark_folder(folder)
    graph = read_benchmark_folder(folder)
    assert graph.name == "toy"
    assert list(graph.vocabulary.entities) == list(ENTITIES.values())
    assert list(graph.vocabulary.relations) == ["/film/director", "/won"]
    for split in SPLITS:
        assert [tuple(edge) for edge in graph.edges(split).tolist()] == EDGES[split]
    assert graph.vocabulary.relation_name(3) == "^/won"


def test_a_graph_read_from_the_current_folder_has_the_folders_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_folder(tmp_path / "toy"))
    assert read_benchmark_folder(Path()).name == "toy"


def test_relations_marked_by_a_suffix(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy", REVERSED)
    for split in SPLITS:
        (folder / f"{split}.txt").write_text("0\t0\t1\n1\t1\t0\n")
    assert list(read_benchmark_folder(folder).vocabulary.relations) == ["film:director"]


def test_packed_triples_are_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    packed = gzip.compress((folder / "train.txt").read_bytes())
    (folder / "train.txt.gz").write_bytes(packed)
    (folder / "train.txt").unlink()
    assert is_benchmark_folder(folder)
    assert len(read_benchmark_folder(folder).edges("train")) == 4


def test_labels_lie_beside_the_triples(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / "entity_names.tsv").write_text("/m/a\tAlien\n/m/c\tOscar\n")
    (folder / "relation_text.tsv").write_text("0\t+/film/director\tdirected by\n")
    vocabulary = read_benchmark_folder(folder).vocabulary
    assert [vocabulary.entities.label(i) for i in range(3)] == ["Alien", "/m/b", "Oscar"]
    assert vocabulary.relation_label(0) == "directed by"
    assert vocabulary.relation_label(2) == "/won"


@pytest.mark.parametrize(
    ("train", "line", "message"),
    [
        ("0\t0\t1\n", 1, "edge 0 0 1 lacks its inverse 1 1 0"),
        ("0\t0\t1\n1\t1\t0\n\n2\t3\t1\n", 4, "edge 2 3 1 lacks its inverse 1 2 2"),
        ("0\t0\n", 1, "2 columns found.*\na line is three integer ids"),
        ("0\t0\t1\t0.5\n", 1, "4 columns found.*\na line is three integer ids"),
        ("0\t\t1\n", 1, "field 2 is empty; a line is three integer ids"),
        ("", None, "the file is empty; a line is three integer ids"),
        ("0\t0\t1\n1\tr\t0\n", 2, "three integer ids expected, found"),
        ("0\t0\t3\n3\t1\t0\n", 1, "has an id without a name; there are 3 entities"),
        ("0\t4\t1\n1\t5\t0\n", 1, "has an id without a name"),
        ("-1\t0\t1\n1\t1\t-1\n", 1, "has an id without a name"),
    ],
)
def test_bad_triples_are_refused_with_their_line(
    train: str, line: int | None, message: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / "train.txt").write_text(train)
    with pytest.raises(DataError, match=message) as caught:
        read_benchmark_folder(folder)
    assert (caught.value.path, caught.value.line) == (str(folder / "train.txt"), line)


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ({0: "+a", 1: "-b"}, "'\\+a' and 1 '-b' are no inverse pair"),
        ({0: "a", 1: "b_reverse"}, "are no inverse pair"),
        ({0: "+a"}, "every relation needs its inverse"),
        ({0: "+a", 2: "-a"}, "id 1 has no name"),
        ({"0": "+a", "1": "-a"}, "between integer ids and names"),
        (["+a", "-a"], "between integer ids and names"),
        ({0: b"+a", 1: b"-a"}, "between integer ids and names"),
    ],
)
def test_bad_names_are_refused(relations: object, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / "id2rel.pkl").write_bytes(pickle.dumps(relations))
    with pytest.raises(DataError, match=message):
        read_benchmark_folder(folder)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("valid.txt", "the folder has no valid.txt"),
        ("id2rel.pkl", r"the folder has no id2rel.pkl or .* \(or .tsv\)"),
    ],
)
def test_a_file_that_is_missing_is_named(name: str, told: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / name).unlink()
    with pytest.raises(DataError, match=told) as caught:
        read_benchmark_folder(folder)
    assert caught.value.path == str(folder)
    assert caught.value.hint is not None
    assert "train.txt" in caught.value.hint


def test_bad_name_tables_in_text_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy", style="tsv")
    (folder / "id2ent.tsv").write_text("0\ta\nx\tb\n")
    with pytest.raises(DataError, match="'x' is not an id") as caught:
        read_benchmark_folder(folder)
    assert caught.value.line == 2
    (folder / "id2ent.tsv").write_text("0\ta\n0\tb\n")
    with pytest.raises(DataError, match="id 0 occurs twice, for 'a' and for 'b'"):
        read_benchmark_folder(folder)
    (folder / "id2ent.tsv").write_text("0\ta\tA\n")
    with pytest.raises(DataError, match=r"3 columns found.*\na line is an id and a name$"):
        read_benchmark_folder(folder)
    (folder / "id2ent.tsv").write_text("0\t\n")
    with pytest.raises(DataError, match=r"field 2 is empty; a line is an id and a name$"):
        read_benchmark_folder(folder)


def test_names_that_are_numbers_are_not_taken_for_ids(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy", style="inverted tsv")
    (folder / "ent2id.tsv").write_text("2\t0\n0\t1\n1\t2\n")
    assert list(read_benchmark_folder(folder).vocabulary.entities) == ["2", "0", "1"]
    (folder / "ent2id.tsv").write_text("0\ta\tA\n")
    with pytest.raises(DataError, match="a line is a name and an id"):
        read_benchmark_folder(folder)
    (folder / "ent2id.tsv").write_text("2\t0\n0\tx\n")
    with pytest.raises(DataError, match="'x' is not an id"):
        read_benchmark_folder(folder)


def test_a_sign_that_only_looks_like_a_digit_is_no_id(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy", style="tsv")
    (folder / "id2ent.tsv").write_text("0\ta\n²\tb\n")
    with pytest.raises(DataError, match="'²' is not an id"):
        read_benchmark_folder(folder)


@pytest.mark.parametrize("missing", ["valid.txt", "id2rel.pkl"])
def test_missing_files_are_named(missing: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / missing).unlink()
    with pytest.raises(DataError, match=f"has no {missing}"):
        read_benchmark_folder(folder)


@pytest.mark.parametrize(
    ("name", "entities", "relations", "lines"),
    [
        ("NELL", 63_361, 400, (228_426, 28_648, 28_534)),
        ("FB15k-237", 14_505, 474, (544_230, 35_052, 40_876)),
        ("FB15k", 14_951, 2_690, (966_284, 100_000, 118_142)),
    ],
)
def test_the_public_benchmarks_are_what_they_should_be(
    name: str, entities: int, relations: int, lines: tuple[int, ...], benchmark_data: Path
) -> None:
    graph = read_benchmark_folder(benchmark_data / name)
    assert (graph.num_entities, graph.num_relations) == (entities, relations)
    assert tuple(len(graph.edges(split)) for split in SPLITS) == lines
    first = np.loadtxt(benchmark_data / name / "train.txt", dtype=np.int32, max_rows=100)
    np.testing.assert_array_equal(graph.edges("train")[:100], first)
    assert graph.vocabulary.entities.own_labels is not None
