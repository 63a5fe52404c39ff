from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import DataError
from conekg.graph.assemble import Labels, assemble_one, assemble_splits
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.split import HoldOut
from conekg.graph.triples import TripleTable, read_triples

Rows = list[tuple[str, str, str]]


def table(folder: Path, name: str, rows: Rows) -> TripleTable:
    path = folder / f"{name}.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return read_triples(path)


def told(graph: KnowledgeGraph, split: str) -> Rows:
    v = graph.vocabulary
    return [
        (v.entities.name(h), v.relation_name(r), v.entities.name(t))
        for h, r, t in graph.triples(split).tolist()  # type: ignore[arg-type]
    ]


name = st.sampled_from("abcdefg")
row_lists = st.lists(st.tuples(name, st.sampled_from("rs"), name), min_size=1, max_size=40)


@given(rows=row_lists, seed=st.integers(0, 3))
def test_each_distinct_fact_of_one_file_is_in_one_split(
    rows: Rows, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one = table(tmp_path_factory.mktemp("one"), "facts", rows)
    built = assemble_one("facts", one, HoldOut(0.2, 0.2, seed))
    facts = [fact for split in SPLITS for fact in told(built.graph, split)]
    assert sorted(facts) == sorted(set(rows))
    train = told(built.graph, "train")
    seen = {name for h, _, t in train for name in (h, t)}
    for split in ("valid", "test"):
        for h, r, t in told(built.graph, split):
            assert {h, t} <= seen
            assert r in {relation for _, relation, _ in train}
    repeated = len(rows) - len(set(rows))
    assert any("repeated" in note for note in built.notes) == bool(repeated)


def test_names_are_numbered_in_order_of_first_occurrence(tmp_path: Path) -> None:
    rows = [("x", "r", "y"), ("a", "s", "x")]
    graph = assemble_one("g", table(tmp_path, "g", rows), HoldOut(0, 0)).graph
    assert list(graph.vocabulary.entities) == ["x", "a", "y"]
    assert list(graph.vocabulary.relations) == ["r", "s"]


def test_a_note_says_when_fewer_triples_than_wanted_are_held_out(tmp_path: Path) -> None:
    built = assemble_one("g", table(tmp_path, "g", [("a", "r", "b")]), HoldOut(0.4, 0.4))
    assert len(built.graph.triples("train")) == 1
    built = assemble_one(
        "g", table(tmp_path, "g", [("a", "r", "b"), ("c", "r", "d")]), HoldOut(0.4, 0.4)
    )
    assert built.notes == (
        "0 triples held out instead of 2: the others are the only ones of their entity or relation",
    )


def test_there_is_no_note_when_as_many_triples_as_wanted_are_held_out(tmp_path: Path) -> None:
    rows = [(head, "r", tail) for head in "abcde" for tail in "vwxyz"]
    built = assemble_one("g", table(tmp_path, "g", rows), HoldOut(0.1, 0.2))
    assert [len(built.graph.triples(split)) for split in ("valid", "test")] == [2, 5]
    assert built.notes == ()


def test_labels_of_entities_are_taken_from_all_split_files(tmp_path: Path) -> None:
    """The lines of one RDF file are spread over three files, so labels may be in any of them."""
    edge = "<http://e/Q1> <http://e/P1> <http://e/Q2> .\n"
    label = '<http://e/{}> <http://www.w3.org/2000/01/rdf-schema#label> "{}" .\n'
    content = {
        "train": edge + label.format("Q2", "Deux"),
        "valid": edge.replace("Q1", "Q2") + label.format("Q1", "One") + label.format("Q2", "Two"),
        "test": edge.replace("Q2", "Q1") + label.format("P1", "first"),
    }
    for split, text in content.items():
        (tmp_path / f"{split}.nt").write_text(text)
    tables = {split: read_triples(tmp_path / f"{split}.nt") for split in SPLITS}
    vocabulary = assemble_splits("g", tables).graph.vocabulary
    assert [vocabulary.entities.label(i) for i in range(2)] == ["One", "Deux"]
    assert vocabulary.relation_label(0) == "first"
    given = Labels({"http://e/Q1": "Eins"}, {})
    assert assemble_splits("g", tables, given).graph.vocabulary.entities.label(0) == "Eins"


def test_labels_are_found_by_name(tmp_path: Path) -> None:
    labels = Labels({"a": "Ada", "zzz": "nobody"}, {"r": "related to"})
    graph = assemble_one("g", table(tmp_path, "g", [("a", "r", "b")]), HoldOut(0, 0), labels).graph
    assert graph.vocabulary.entities.label(0) == "Ada"
    assert graph.vocabulary.entities.label(1) == "b"
    assert graph.vocabulary.relation_label(1) == "^related to"


TRAIN: Rows = [("a", "r", "b"), ("b", "s", "c")]


def test_suspicious_names_and_labels_are_noted(tmp_path: Path) -> None:
    facts = table(tmp_path, "facts", [("a ", "r", "b"), ("a", "r", "c")])
    labels = Labels({"a": "Ada", "x": "nobody", "y": "nobody"}, {"q": "likes"})
    expected = (
        "1 entity name with a space at the beginning or end, such as 'a ': not the same as without "
        "it",
        "2 of 3 entity labels for names that the graph does not have, such as 'x'",
        "1 of 1 relation label for names that the graph does not have, such as 'q'",
    )
    assert assemble_one("g", facts, HoldOut(0, 0), labels).notes == expected
    assert assemble_splits("g", {"train": facts}, labels).notes == expected
    clean = table(tmp_path, "clean", [("a b", "r", "c")])
    assert assemble_one("g", clean, HoldOut(0, 0), Labels({"c": "Cy"}, {})).notes == ()


def test_three_files_become_three_splits(tmp_path: Path) -> None:
    parts = {
        "train": TRAIN,
        "valid": [("a", "s", "c"), ("a", "s", "c")],
        "test": [("c", "r", "a")],
    }
    built = assemble_splits("g", {s: table(tmp_path, s, rows) for s, rows in parts.items()})  # type: ignore[misc]
    assert told(built.graph, "train") == TRAIN
    assert told(built.graph, "valid") == [("a", "s", "c")]
    assert told(built.graph, "test") == [("c", "r", "a")]
    assert built.notes == (f"{tmp_path / 'valid.tsv'}: 1 repeated triple merged",)


@pytest.mark.parametrize(
    ("test", "line", "message"),
    [
        ([("a", "r", "c"), ("a", "likes", "b")], 2, "relation 'likes' does not occur in the train"),
        (
            [("a", "r", "d")],
            1,
            r"entity 'd' does not occur .* \(triples here that name something new: 1\)",
        ),
        ([("d", "r", "a")], 1, "entity 'd' does not occur"),
        ([("d", "likes", "e")], 1, "relation 'likes'"),
    ],
)
def test_names_that_training_lacks_are_refused_with_their_line(
    test: Rows, line: int, message: str, tmp_path: Path
) -> None:
    tables = {"train": table(tmp_path, "train", TRAIN), "test": table(tmp_path, "test", test)}
    with pytest.raises(DataError, match=message) as caught:
        assemble_splits("g", tables)  # type: ignore[arg-type]
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "test.tsv"), line)
    assert "--drop-unseen" in str(caught.value)


def test_a_misspelt_relation_gets_a_suggestion(tmp_path: Path) -> None:
    tables = {
        "train": table(tmp_path, "train", [("a", "born_in", "b"), ("b", "born_in", "a")]),
        "test": table(tmp_path, "test", [("a", "bornin", "a")]),
    }
    with pytest.raises(DataError, match=r"did you mean 'born_in'\?"):
        assemble_splits("g", tables)  # type: ignore[arg-type]


def test_names_that_training_lacks_can_be_dropped(tmp_path: Path) -> None:
    tables = {
        "train": table(tmp_path, "train", TRAIN),
        "test": table(tmp_path, "test", [("a", "r", "d"), ("a", "r", "c"), ("a", "likes", "b")]),
    }
    built = assemble_splits("g", tables, unseen="drop")  # type: ignore[arg-type]
    assert told(built.graph, "test") == [("a", "r", "c")]
    assert list(built.graph.vocabulary.entities) == ["a", "b", "c"]
    assert list(built.graph.vocabulary.relations) == ["r", "s"]
    assert built.notes == (
        f"{tmp_path / 'test.tsv'}: 2 triples dropped, training lacks names of theirs",
    )


@pytest.mark.parametrize(
    ("first", "second"), [("train", "test"), ("train", "valid"), ("valid", "test")]
)
def test_a_triple_in_two_splits_is_refused(first: str, second: str, tmp_path: Path) -> None:
    shared = ("a", "r", "c")
    parts: dict[str, Rows] = {
        "train": list(TRAIN),
        "valid": [("c", "r", "a")],
        "test": [("c", "s", "a")],
    }
    parts[first].append(shared)
    parts[second].append(shared)
    tables = {split: table(tmp_path, split, rows) for split, rows in parts.items()}
    with pytest.raises(DataError, match=f"triple 'a' 'r' 'c' is also a {first} triple") as caught:
        assemble_splits("g", tables)  # type: ignore[arg-type]
    assert caught.value.path == str(tmp_path / f"{second}.tsv")
    assert caught.value.line == len(parts[second])
    assert "; 1 triple is in both" in str(caught.value)
    assert "let conekg split it" in str(caught.value)


def test_given_labels_take_precedence_over_those_in_the_file(tmp_path: Path) -> None:
    labels = dict.fromkeys("abr", "own")
    one = replace(table(tmp_path, "facts", [("a", "r", "b")]), labels=labels)
    names = assemble_one("facts", one, HoldOut(), Labels({"a": "given"}, {"r": "given"})).graph
    assert names.vocabulary.entities.labels.to_pylist() == ["given", "own"]
    assert names.vocabulary.relations.labels.to_pylist() == ["given"]


def test_ids_that_are_also_written_as_decimals_are_noted(tmp_path: Path) -> None:
    rows = [("12", "5", "7.0"), ("7", "5.0", "-12.0"), ("-12", "5", "9.0"), ("7", "5", "12.00")]
    entities, relations = assemble_one("g", table(tmp_path, "facts", rows), HoldOut(0, 0)).notes
    told = "equal to another one but for a decimal, such as"
    assert entities.startswith(f"2 entity names {told} '7.0': not the same name")
    assert relations.startswith(f"1 relation name {told} '5.0': not the same name")
    versions = [("python 3.0", "runs", "3.0"), ("python 3", "runs", "3.1")]
    assert assemble_one("g", table(tmp_path, "versions", versions), HoldOut(0, 0)).notes == ()


def test_names_that_look_the_same_are_noted(tmp_path: Path) -> None:
    one, two = "Jos\u00e9", "Jose\u0301"
    facts = table(tmp_path, "facts", [(one, "r", "b"), (two, "r", "c"), (one, "r", "c")])
    (note,) = assemble_one("g", facts, HoldOut(0, 0)).notes
    assert note.startswith("1 entity name spelled as another one but with accents as signs ")
    assert "such as 'Jos\u00e9':" in note
    alone = table(tmp_path, "alone", [(two, "r", "b")])
    assert assemble_one("g", alone, HoldOut(0, 0)).notes == ()
