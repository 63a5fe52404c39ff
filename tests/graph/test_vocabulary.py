from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import DataError, UnknownNameError
from conekg.graph import vocabulary as module
from conekg.graph.vocabulary import NameIndex, NameTable, Vocabulary

texts = st.text(st.characters(exclude_categories=["Cs"], codec="utf-8"), min_size=1, max_size=6)
name_lists = st.lists(texts, unique=True, min_size=1, max_size=12)


@given(name_lists)
def test_every_name_is_found_at_its_place(names: list[str]) -> None:
    table = NameTable("entity", names)
    assert len(table) == len(names)
    assert list(table) == names
    for index, name in enumerate(names):
        assert table.name(index) == table.label(index) == name
        assert table.id_of(name) == table.find(name) == index


def test_only_so_many_recent_names_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT_NAMES", 3)
    names = [f"name {number}" for number in range(8)]
    table = NameTable("entity", names)
    for index, name in enumerate([*names, *names]):
        assert table.name(index % 8) == name
        assert table.id_of(name) == index % 8
        assert max(len(table._recent_names), len(table._recent_ids)) <= 3


@given(name_lists, st.data())
def test_names_win_over_labels_and_labels_must_be_unique(
    names: list[str], data: st.DataObject
) -> None:
    label = st.none() | st.sampled_from(["", "x", "y", *names])
    labels = data.draw(st.lists(label, min_size=len(names), max_size=len(names)))
    table = NameTable("entity", names, labels)
    for text in {*names, "x", "y"}:
        bearers = [i for i in range(len(names)) if (labels[i] or names[i]) == text]
        if text in names:
            assert table.id_of(text) == names.index(text)
        elif len(bearers) == 1:
            assert table.id_of(text) == bearers[0]
        else:
            with pytest.raises(UnknownNameError) as caught:
                table.id_of(text)
            if bearers:
                assert caught.value.suggestions == tuple(names[i] for i in bearers[:5])


def test_tables_are_equal_where_kind_names_and_labels_are() -> None:
    table = NameTable("entity", ["a", "b"], ["A", None])
    assert table == NameTable("entity", ["a", "b"], ["A", "b"])
    assert hash(table) == hash(NameTable("entity", ["a", "b"], ["A", "b"]))
    for other in (
        NameTable("relation", ["a", "b"], ["A", None]),
        NameTable("entity", ["a", "c"], ["A", None]),
        NameTable("entity", ["a", "b"], ["B", None]),
        NameTable("entity", ["a", "b"]),
        ["a", "b"],
    ):
        assert table != other


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u2003\u00a0"])
def test_a_blank_label_counts_as_no_label(blank: str) -> None:
    table = NameTable("entity", ["a", "b"], [blank, "Bee"])
    assert [table.label(0), table.label(1)] == ["a", "Bee"]
    assert table.own_labels.to_pylist() == [None, "Bee"]
    assert len(table.index.texts) == 3


@given(name_lists, st.text("abc", max_size=2))
def test_prefixes_find_names_in_any_case(names: list[str], prefix: str) -> None:
    table = NameTable("entity", names)
    found = table.with_prefix(prefix, limit=100)
    ascii_matches = {i for i, n in enumerate(names) if n.isascii() and n.lower().startswith(prefix)}
    assert ascii_matches <= set(found)
    assert len(found) == len(set(found))
    assert all(names[i].lower().startswith(prefix) for i in found if names[i].isascii())


def test_remembering_names_does_not_change_look_ups() -> None:
    names, labels = ["a", "b", "c", "d"], ["b", "x", "x", "only"]
    plain, remembering = (NameTable("entity", names, labels) for _ in range(2))
    remembering.remember_names()
    for table in (plain, remembering):
        assert [table.id_of(name) for name in names] == [0, 1, 2, 3]
        assert [table.name(index) for index in range(4)] == names
        assert table.id_of("only") == 3
        for unknown in ("x", "e"):
            with pytest.raises(UnknownNameError):
                table.id_of(unknown)


def test_prefixes_are_alphabetical_cover_labels_and_stop_at_the_limit() -> None:
    table = NameTable("entity", ["q3", "q1", "q2"], ["France", "Finland", "Fiji"])
    assert [table.label(i) for i in table.with_prefix("f")] == ["Fiji", "Finland", "France"]
    assert table.with_prefix("Q", limit=2) == (1, 2)
    assert table.with_prefix("Q", limit=0) == ()
    assert table.with_prefix("fra") == (0,)
    assert table.with_prefix("z") == ()


def test_containing_searches_names_and_labels() -> None:
    table = NameTable("entity", ["q3", "q1"], ["New France", "Finland"])
    assert table.containing("FRANCE") == (0,)
    assert table.containing("q") == (0, 1)


def test_unknown_names_get_suggestions_and_a_place_to_look() -> None:
    table = NameTable("relation", ["born_in", "works_at"])
    with pytest.raises(UnknownNameError) as caught:
        table.id_of("bornin")
    assert caught.value.suggestions == ("born_in",)
    told = str(caught.value)
    assert "did you mean 'born_in'? `conekg graph relations GRAPH --search TEXT`" in told
    assert "searches all 2" in told


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("france", "France"),  # case alone
        ("Frnace", "France"),
        ("Unit", "United Kingdom"),  # a beginning
        ("kingdom", "United Kingdom"),  # a part
    ],
)
def test_suggestions_come_from_typos_beginnings_and_parts(typed: str, suggested: str) -> None:
    table = NameTable("entity", ["q1", "q2"], ["France", "United Kingdom"])
    assert table.suggest(typed)[0] == suggested


@pytest.mark.parametrize("text", ["\udcff", "Fr\ud800ance", "\ud83d\ude00"])
def test_lone_surrogates_match_no_name(text: str) -> None:
    table = NameTable("entity", ["France", "\U0001f600", "\ufffd"])
    assert table.find(text) is None
    assert table.with_prefix(f"F{text}") == table.containing(f"F{text}") == ()
    with pytest.raises(UnknownNameError) as caught:
        table.id_of(text)
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("Spielberg", ("Steven Spielberg", "Heidelberg")),  # a word before what is less alike
        ("Heidelbreg", ("Heidelberg",)),
        ("steven", ("Stevens", "Steven Spielberg")),  # a slip before a word
        ("French", ("French Language", "Old French Language")),
        ("USA", ("United States of America",)),
        ("US", ("UCLA School of Law", "United States of America", "University of Surrey")),
        ("usa", ()),  # an acronym is in capitals
        ("director", ("directed_by",)),
        ("direful", ()),  # less than five letters are alike
        ("directions", ()),  # less than two thirds are alike
        ("(", ()),
    ],
)
def test_words_acronyms_and_beginnings_are_suggested(
    typed: str, suggested: tuple[str, ...]
) -> None:
    names = ["Steven Spielberg", "Heidelberg", "Stevens", "French Language", "Old French Language"]
    names += ["UCLA School of Law", "United States of America", "University of Surrey"]
    names += ["Asus Corporation", "directed_by"]
    assert NameTable("entity", names).suggest(typed) == suggested


def test_nothing_is_suggested_when_nothing_is_alike() -> None:
    assert NameTable("entity", ["France"]).suggest("xyzzyx") == ()
    assert NameTable("entity", []).suggest("France") == ()


def test_an_ambiguous_label_is_suggested_by_its_names() -> None:
    table = NameTable("entity", ["q1", "q2"], ["Springfield", "Springfield"])
    assert set(table.suggest("Springfeld")) == {"q1", "q2"}
    with pytest.raises(UnknownNameError, match="'Springfield' is ambiguous: 2 entities have it"):
        table.id_of("Springfield")


def test_suggestions_among_sixty_thousand_names_are_quick() -> None:
    names = [f"concept_{kind}_{number}" for kind in ("city", "person") for number in range(32_000)]
    table = NameTable("entity", names)
    table.index  # noqa: B018 (made once, kept with the table)
    started = time.perf_counter()
    assert "concept_city_12345" in table.suggest("concept_ctiy_12345")
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a", "b", "a"], "entity name 'a' occurs twice"), (["a", ""], "empty entity name")],
)
def test_bad_names_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        NameTable("entity", names)


def test_labels_must_be_as_many_as_names() -> None:
    with pytest.raises(DataError, match="1 labels for 2 entity names"):
        NameTable("entity", ["a", "b"], ["A"])


def test_relations_have_inverses_by_name_label_and_id() -> None:
    relations = NameTable("relation", ["born_in", "won"], ["was born in", None])
    vocabulary = Vocabulary(NameTable("entity", ["a"]), relations)
    assert vocabulary.num_relations == 4
    assert vocabulary.relation_name(1) == "^born_in"
    assert vocabulary.relation_label(1) == "^was born in"
    assert vocabulary.relation_label(2) == "won"
    for index in range(4):
        assert vocabulary.relation_id(vocabulary.relation_name(index)) == index
        assert vocabulary.relation_id(vocabulary.relation_label(index)) == index


def test_the_title_of_a_relation_with_a_shared_label_has_its_name() -> None:
    relations = NameTable("relation", ["P1", "P2", "P3"], ["part of", "part of", "won"])
    vocabulary = Vocabulary(NameTable("entity", ["a"]), relations)
    assert [vocabulary.relation_title(index) for index in (0, 3, 5)] == [
        "part of (P1)",
        "^part of (P2)",
        "^won",
    ]


def test_relation_names_cannot_look_like_inverses() -> None:
    with pytest.raises(DataError, match=r"'\^won' starts with '\^'"):
        Vocabulary(NameTable("entity", ["a"]), NameTable("relation", ["^won"]))


@pytest.mark.parametrize("labels", [None, ["A", ""]])
@pytest.mark.parametrize("index", [2, -1])
def test_ids_outside_of_the_table_are_refused(index, labels):
    table = NameTable("entity", ["a", "b"], labels)
    for look_up in (table.name, table.label):
        with pytest.raises(UnknownNameError, match=f"unknown entity number '{index}'") as caught:
            look_up(index)
        assert "there are 2" in str(caught.value.hint)


def test_a_title_includes_the_name_if_another_name_equals_the_label() -> None:
    table = NameTable("entity", ["Q1", "Jane"], ["Jane", "Jane Doe"])
    assert table.title(0) == "Jane (Q1)"
    assert table.title(1) == "Jane Doe"


def test_the_shortest_of_the_names_that_contain_a_text_come_first() -> None:
    table = NameTable("entity", ["a large house by the lake", "the house of stairs", "zoo houses"])
    assert table.suggest("hous") == (
        "zoo houses",
        "the house of stairs",
        "a large house by the lake",
    )


COMPOSED, DECOMPOSED = "Jos\u00e9", "Jose\u0301"


@pytest.mark.parametrize("typed", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("written", [COMPOSED, DECOMPOSED])
def test_accents_are_found_however_they_are_written(written: str, typed: str) -> None:
    """Some systems write accents as combining characters in files, while keyboards do not."""
    by_name = NameTable("entity", ["a", written])
    by_label = NameTable("entity", ["a", "b"], [None, written])
    for table in (by_name, by_label):
        assert table.id_of(typed) == 1
        assert table.containing(typed.lower()) == table.with_prefix(typed) == (1,)
    with pytest.raises(UnknownNameError, match="is ambiguous"):
        NameTable("entity", ["a", "b"], [written, written]).id_of(typed)
    assert by_name.find(typed) == (1 if typed == written else None), "that is exact"


def test_names_that_look_the_same_are_found_by_their_exact_characters() -> None:
    table = NameTable("entity", [COMPOSED, DECOMPOSED])
    assert (table.id_of(COMPOSED), table.id_of(DECOMPOSED)) == (0, 1)
    assert table.containing(COMPOSED) == table.with_prefix(DECOMPOSED)[::-1] == (0, 1)
    assert table.with_prefix(COMPOSED, limit=1) == (0,)


def test_repr_names_the_kind_and_size_of_a_table() -> None:
    table = NameTable("entity", [f"e{number}" for number in range(1234)])
    assert repr(table) == "<NameTable of 1,234 entities>"


ACCENTED = NameTable(
    "entity",
    ["Q1", "Q2", "Q3", "Q4", "Q5", "cote"],
    ["Côte d'Ivoire", "Cote de Nuits", "COTÉ", "Ивано́в", "서울", None],
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cote", (0, 1, 2, 5)),
        ("COTE D", (0, 1)),
        ("côte", (0,)),
        ("CO\u0302TE", (0,)),
        ("coté", (2,)),
        ("Иванов", (3,)),
        ("서울", (4,)),
        ("ivoiré", ()),
        ("d.ivoire", ()),
    ],
)
def test_a_text_without_accents_finds_names_that_have_them(
    text: str, found: tuple[int, ...]
) -> None:
    assert ACCENTED.containing(text) == found


def test_a_prefix_without_accents_finds_plain_names_first() -> None:
    assert ACCENTED.with_prefix("Cote") == (5, 1, 2, 0)
    assert ACCENTED.with_prefix("Cote", limit=3) == (5, 1, 2)
    assert ACCENTED.with_prefix("côt") == (0,)
    assert ACCENTED.with_prefix("ivoire") == ()


def test_accented_names_are_not_searched_if_plain_ones_reach_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(NameIndex, "accented_like")
    assert NameTable("entity", ["Côte d'Ivoire", "Coteau"]).with_prefix("cot", limit=1) == (1,)


def test_names_with_accents_are_suggested_by_a_part_without() -> None:
    table = NameTable("entity", ["Q1", "Q2"], ["Élodie Rossi", "Zoë Élodie Müller"])
    assert table.suggest("Elodie") == ("Élodie Rossi", "Zoë Élodie Müller")
    assert table.suggest("oë élodié") == ()


@given(name_lists, texts)
def test_ignoring_accents_only_adds_matches(names: list[str], text: str) -> None:
    table = NameTable("entity", names)
    lower = text.lower()
    plain = [i for i, name in enumerate(names) if lower in name.lower()]
    if text.isascii():
        assert set(plain) <= set(table.containing(text))
