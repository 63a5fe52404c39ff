"""Forms of English words; their plain spellings are the oracle."""

from __future__ import annotations

import pytest

from conekg.answering.english import (
    INTRANSITIVE_VERBS,
    PAST_OF_ACTION,
    VERB_FORMS,
    VERBS,
    has_plural,
    is_active,
    is_past,
    is_plural,
    plural,
)


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("capital", "capitals"),
        ("city", "cities"),
        ("day", "days"),
        ("boss", "bosses"),
        ("branch", "branches"),
        ("woman", "women"),
        ("place of birth", "places of birth"),
        ("political party", "political parties"),
        ("alumni", "alumni"),
        ("actors", "actors"),
        ("貨幣", "貨幣"),
    ],
)
def test_plurals(noun: str, expected: str) -> None:
    assert plural(noun) == expected
    assert plural(expected) == expected, "a plural stays as it is"


@pytest.mark.parametrize("noun", ["actors", "alumni", "countries of origin", "film actors"])
def test_plural_nouns(noun: str) -> None:
    assert is_plural(noun)


@pytest.mark.parametrize("noun", ["actor", "status", "boss", "series", "axis", "author of books"])
def test_singular_nouns(noun: str) -> None:
    assert not is_plural(noun)


@pytest.mark.parametrize(
    ("base", "past", "participle"),
    [
        ("border", "bordered", "bordered"),
        ("marry", "married", "married"),
        ("play", "played", "played"),
        ("use", "used", "used"),
        ("write", "wrote", "written"),
        ("control", "controlled", "controlled"),
    ],
)
def test_forms_of_verbs(base: str, past: str, participle: str) -> None:
    assert VERBS[base] == (past, participle)
    assert VERB_FORMS[past] == (base, True)
    assert is_past(past)
    assert not is_past(base)


def test_third_persons_lead_to_their_verbs() -> None:
    for form in ("borders", "marries", "has", "teaches", "studies"):
        base, past = VERB_FORMS[form]
        assert not past
        assert base in VERBS
    assert VERB_FORMS["marries"][0] == "marry"
    assert "star" not in VERB_FORMS, "usually a noun"


def test_who_directed_a_film_follows_from_what_it_is_directed_by() -> None:
    assert PAST_OF_ACTION["directed"] == "directed"
    assert PAST_OF_ACTION["written"] == "wrote"
    assert "employed" not in PAST_OF_ACTION, "a state may last"


def test_past_forms_before_prepositions() -> None:
    assert is_active("acted", "in")
    assert not is_active("located", "in")
    assert not is_active("led", "by")
    assert all(is_active(VERBS[verb][0], "in") for verb in INTRANSITIVE_VERBS)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("capital", True), ("bound", True), ("speed", True), ("held", False), ("導演", False)],
)
def test_words_that_have_a_plural(word: str, expected: bool) -> None:
    assert has_plural(word) == expected
