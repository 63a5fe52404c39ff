"""What is understood of relation names; how that is worded is tested with `relation_phrase`."""

from __future__ import annotations

import pytest
from hypothesis import given

import strategies
from conekg.answering.relation_name import (
    RelationName,
    head_type,
    repeats_path,
    understand_name,
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("borders", RelationName("verb", "borders")),
        ("uses_currency", RelationName("verb", "uses", "", "currency")),
        ("playsFor", RelationName("verb", "plays", "for")),
        ("has_won_the_prize", RelationName("verb", "won", "", "prize")),
        ("is_located_in", RelationName("state", "located", "in")),
        ("/film/film/produced_by", RelationName("state", "produced", "by")),
        ("larger than", RelationName("state", "larger", "than")),
        ("member of political party", RelationName("role", "member", "of", "political party")),
        ("capital", RelationName("noun", "capital")),
        ("capital_of", RelationName("noun", "capital", reversed=True)),
        ("is_a", RelationName("noun", "instance", reversed=True)),
        ("hasCEO", RelationName("noun", "CEO")),
        ("support_group", RelationName("noun", "support group")),
        ("P57", RelationName("quoted", "P57")),
        ("does_not_like", RelationName("quoted", "does not like")),
        ("athleteplaysforteam", RelationName("quoted", "athleteplaysforteam")),
        ("work_for", RelationName("quoted", "work for")),
        ("導演", RelationName("quoted", "導演")),
    ],
)
def test_the_parts_of_a_name(name: str, expected: RelationName) -> None:
    assert understand_name(name) == expected


@given(strategies.names())
def test_any_name_is_understood_somehow(name: str) -> None:
    relation = understand_name(name)
    assert relation.words or relation.preposition


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/film/film/genre", "films"),
        ("/people/person/nationality", "people"),
        ("/tv/tv_program/genre", "tv programs"),
        ("/film/genre", "things"),
        ("http://example.org/film/genre", "things"),
        ("genre", "things"),
    ],
)
def test_paths_tell_what_their_heads_are(name: str, expected: str) -> None:
    assert head_type(name) == expected


def test_labels_that_repeat_a_path() -> None:
    assert repeats_path("film film genre", "/film/film/genre")
    assert not repeats_path("genre", "/film/film/genre")
    assert not repeats_path("film genre", "film_genre"), "no path"
