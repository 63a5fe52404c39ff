from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.geography import load_geography
from conekg.graph.misplaced import misplaced_note
from conekg.graph.source import ReadOptions, read_source
from conekg.graph.triples import read_triples

Rows = list[tuple[str, ...]]

FILMS: Rows = [(f"Film {i}", f"Director {i % 7}", str(1990 + i % 9)) for i in range(60)]
"""A table with a row for each film."""


def written(path: Path, rows: Rows) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def geography() -> Rows:
    graph = load_geography()
    names = graph.vocabulary.entities.name
    return [
        (names(head), graph.vocabulary.relation_name(relation), names(tail))
        for head, relation, tail in graph.triples("train").tolist()
    ]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_relation_that_is_not_in_the_middle_is_noted(
    order: tuple[int, ...], geography: Rows, tmp_path: Path
) -> None:
    rows: Rows = [tuple(row[place] for place in order) for row in geography]
    note = misplaced_note(read_triples(written(tmp_path / "a.tsv", rows)))
    where = order.index(1)
    if where == 1:
        assert note is None
        return
    names = len({row[1] for row in rows})
    place = "first" if where == 0 else "third"
    assert note is not None
    assert note.startswith(
        f"the second column, the relation, has {names:,} different names, and the {place} only 9;"
    )


def test_columns_that_the_file_names_are_not_judged(geography: Rows, tmp_path: Path) -> None:
    rows: Rows = [("relation", "head", "tail"), *((row[1], row[0], row[2]) for row in geography)]
    table = read_triples(written(tmp_path / "a.tsv", rows))
    assert set(table.columns[1].dictionary.to_pylist()) == {row[1] for row in geography}
    assert misplaced_note(table) is None
    table = read_triples(written(tmp_path / "b.tsv", [("subject", "verb", "object"), *FILMS]))
    assert misplaced_note(table) is not None, "a header that is not known names no columns"


def test_a_table_with_a_row_for_each_thing_is_noted(tmp_path: Path) -> None:
    path = written(tmp_path / "films.tsv", FILMS)
    assert misplaced_note(read_triples(path)) == (
        "60 lines begin with 60 different names and have 7 relations, as a table with a row for "
        "each thing has; if it is one, write each of its cells as a fact: the name of its row, the "
        "name of its column, the cell"
    )
    note = read_source(path).notes[0]
    assert note.startswith(f"{path}: 60 lines begin with 60 different names")


def test_its_cells_written_as_facts_are_not_noted(tmp_path: Path) -> None:
    facts: Rows = [
        (title, column, cell)
        for title, *cells in FILMS
        for column, cell in zip(("director", "year"), cells, strict=True)
    ]
    assert misplaced_note(read_triples(written(tmp_path / "a.tsv", facts))) is None


@pytest.mark.parametrize("relations", [1, 2, 4])
def test_a_few_relations_may_have_a_fact_of_each_head(relations: int, tmp_path: Path) -> None:
    facts: Rows = [
        (title, f"relation {number % relations}", director)
        for number, (title, director, _) in enumerate(FILMS)
    ]
    assert misplaced_note(read_triples(written(tmp_path / "a.tsv", facts))) is None


def test_only_training_facts_are_judged(tmp_path: Path) -> None:
    columns = [f"column {number}" for number in range(6)]
    facts: Rows = [(title, column, "yes") for title, *_ in FILMS for column in columns]
    held_out = [facts[6 * number + number % 6] for number in range(len(FILMS))]
    train = written(tmp_path / "train.tsv", [each for each in facts if each not in held_out])
    valid = written(tmp_path / "valid.tsv", held_out)
    assert misplaced_note(read_triples(valid)) is not None
    notes = read_source(train, ReadOptions(valid=valid)).notes
    assert not any("row for each thing" in note for note in notes)


@given(heads=st.integers(1, 12), relations=st.integers(1, 9), tails=st.integers(1, 12))
def test_graphs_of_few_relations_whose_heads_have_several_facts_are_not_noted(
    heads: int, relations: int, tails: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts: Rows = [
        (f"h{head}", f"r{relation}", f"t{tail}")
        for head in range(heads)
        for relation in range(relations)
        for tail in range(tails)
    ]
    if len(facts) < 2 * heads:  # each head has one fact
        return
    path = written(tmp_path_factory.mktemp("facts") / "a.tsv", facts)
    assert misplaced_note(read_triples(path)) is None
