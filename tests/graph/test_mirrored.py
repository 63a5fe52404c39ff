from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.mirrored import mirrored_note
from conekg.graph.source import read_source

Triples = list[tuple[int, int, int]]

triples = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), unique=True, max_size=30
)


def note_of(**parts: Triples) -> str | None:
    arrays = {split: np.array(part, dtype=np.int32).reshape(-1, 3) for split, part in parts.items()}
    return mirrored_note(arrays, pa.array(["r", "s", "t"]))  # type: ignore[arg-type]


@given(facts=triples, first=st.integers(0, 30), second=st.integers(0, 30))
def test_the_note_counts_only_mirrored_facts(facts: Triples, first: int, second: int) -> None:
    train, valid, test = facts[:first], facts[first : first + second], facts[first + second :]
    held_out = valid + test
    mirrored = [
        (h, r, t)
        for h, r, t in held_out
        if h != t and any((t, other, h) in train for other in range(3))
    ]
    note = note_of(train=train, valid=valid, test=test)
    if note is not None:
        number, out_of = map(int, re.findall(r"^(\d+) of (\d+) held-out facts", note)[0])
        assert out_of == len(held_out)
        assert 0.1 * out_of <= number <= len(mirrored)
    for relation in range(3):
        ours = [fact for fact in held_out if fact[1] == relation]
        if len(ours) == len(held_out) >= 5 and all(  # of one relation, mirrored by one throughout
            h != t and [other for other in range(3) if (t, other, h) in train] == [relation]
            for h, _, t in ours
        ):
            assert note is not None
            assert f"{'rst'[relation]!r} holds both ways" in note
    if not mirrored:
        assert note is None


def test_inverses_and_relations_that_hold_both_ways_are_named() -> None:
    backwards = [(20 + n, 1, n) for n in range(7)]
    both_ways = [(20 + n, 2, 30 + n) for n in range(5)]
    other_way = [(b, relation, a) for a, relation, b in both_ways]
    note = note_of(
        train=[*backwards, *both_ways, (0, 0, 9)],
        valid=[(n, 0, 20 + n) for n in range(4)],
        test=[*((n, 0, 20 + n) for n in range(4, 7)), *other_way, (8, 0, 9)],
    )
    assert note == (
        "12 of 13 held-out facts are training facts told backwards, which makes evaluation "
        "too easy: 'r' is 's' backwards, 't' holds both ways; for a fair one leave one direction "
        "out, or hold both out together"
    )


def test_of_many_relations_those_with_most_mirrored_facts_are_named() -> None:
    train = [(100 * k + n, k, 100 * k + 50 + n) for k in range(5) for n in range(5 + k)]
    parts = {"train": train, "test": [(b, k, a) for a, k, b in train]}
    arrays = {split: np.array(part, dtype=np.int32) for split, part in parts.items()}
    note = mirrored_note(arrays, pa.array(list("abcde")))  # type: ignore[arg-type]
    assert note is not None
    named = "'e' holds both ways, 'd' holds both ways, 'c' holds both ways, and 2 more; for a fair"
    assert named in note


def test_coincidences_and_few_mirrored_facts_give_no_note() -> None:
    train: Triples = [(20 + n, 1, n) for n in range(5)]
    valid: Triples = [(n, 0, 20 + n) for n in range(5)]
    assert note_of(train=train, valid=valid) is not None
    assert note_of(train=train) is None
    assert note_of(train=train[:4], valid=valid) is None, "so few may be by chance"
    others: Triples = [(n, 0, 40) for n in range(6)]
    assert note_of(train=train, valid=[*valid, *others]) is None, "others of the relation are not"
    many: Triples = [(10, 2, 41 + n) for n in range(46)]
    assert note_of(train=train, valid=[*valid, *many]) is None, "most of what is measured is not"
    assert note_of(train=train, valid=[*valid, *many[1:]]) is not None


def test_the_note_on_mirrored_facts_is_among_the_notes_of_read_files(tmp_path: Path) -> None:
    films = tmp_path / "films.tsv"
    directed = [(f"f{n}", f"d{n % 9}") for n in range(60)]
    films.write_text(
        "".join(f"{film}\tdirector\t{d}\n{d}\tdirected\t{film}\n" for film, d in directed)
    )
    (note,) = read_source(str(films)).notes
    assert note.startswith(f"{films}: ")
    assert "'director' is 'directed' backwards" in note
    folder = tmp_path / "films"
    folder.mkdir()
    pairs = [(f"a{n}", f"b{n}") for n in range(6)]
    for split, facts in (("train", pairs), ("test", [(b, a) for a, b in pairs])):
        text = "".join(f"{one}\tmarried\t{other}\n" for one, other in facts)
        folder.joinpath(f"{split}.tsv").write_text(text)
    (note,) = read_source(str(folder)).notes
    assert note.startswith(f"{folder / 'train.tsv'}: 6 of 6 held-out facts")
