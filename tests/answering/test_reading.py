"""Readings: cases written by hand, and properties that hold for any query and any names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.answering.reading import read_parts, read_query
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.parse import parse_query
from conekg.query.rewrite import push_negation, simplify
from conekg.query.tree import Anchor, And, Not, Query, fold, subtrees

WORLD = Vocabulary(
    NameTable("entity", ["France", "Spain", "Euro", "Oscar", "Miramax", "Paris", "Italy"]),
    NameTable(
        "relation",
        [
            "borders",
            "uses_currency",
            "capital",
            "has_province",
            "directed",
            "won",
            "produced_by",
            "/people/person/place_of_birth",
            "/people/person/place_of_death",
        ],
    ),
)

CASES = {
    "France": "France",
    "*": "anything",
    "France.borders": "things that France borders",
    "France.^borders": "things that border France",
    "!France.borders": "things that France does not border",
    "Paris.^capital": "things whose capital is Paris",
    "France.borders.capital": "capitals of things that France borders",
    "France.borders.borders": "things bordered by things that France borders",
    "France.borders & Spain.borders": "things that France borders and that Spain borders",
    "France.borders & !Spain": "things that France borders, except Spain",
    "France.borders & !Spain & !Italy": "things that France borders, except Spain and Italy",
    "France.borders & !(Spain | Italy | Paris)": (
        "things that France borders, except Spain, Italy and Paris"
    ),
    "France.borders & !Spain & !Euro.^uses_currency": (
        "things that France borders, but that are not Spain and that do not use the currency Euro"
    ),
    "!Spain & !Italy": "things that are not Spain and that are not Italy",
    "(France.borders & !Spain).capital & !Paris": (
        "capitals of (things that France borders, except Spain), except Paris"
    ),
    "France.borders & Italy": "Italy, if France borders it",
    "Italy & !France.borders": "Italy, if France does not border it",
    "Italy & France.borders & !Euro.^uses_currency": (
        "Italy, if France borders it and it does not use the currency Euro"
    ),
    "Paris & France.capital": "Paris, if it is among the capitals of France",
    "France & !Paris.^capital": "France, if its capital is not Paris",
    "Italy & !France.borders.borders": (
        "Italy, if it is not bordered by things that France borders"
    ),
    "(Italy & !France.borders).capital": "capitals of (Italy, if France does not border it)",
    "(Italy | Spain) & !France.borders": "Italy or Spain, if France does not border it",
    "France.borders & (Italy | Spain)": "Italy or Spain, if France borders it",
    "(Italy | Spain) & (France | Italy) & !France.borders": (
        "Italy or Spain, if (it is France or Italy) and France does not border it"
    ),
    "((Italy | Spain) & !France.borders).capital": (
        "capitals of (Italy or Spain, if France does not border it)"
    ),
    "Italy & (France.borders | Spain.borders)": ("Italy, if France borders it or Spain borders it"),
    "Italy & !(France.borders & Spain.borders)": (
        "Italy, if France does not border it or Spain does not border it"
    ),
    "Italy & (France.borders | Spain.borders) & Euro.^uses_currency": (
        "Italy, if (France borders it or Spain borders it) and it uses the currency Euro"
    ),
    "Italy & (France.borders & !Spain.borders | Spain)": (
        "Italy, if (France borders it and Spain does not border it) or it is Spain"
    ),
    "Italy & Spain": "Italy, if it is Spain",
    "Italy & (Spain | France)": "Italy, if it is Spain or France",
    "(Spain | France) & Italy": "Italy, if it is Spain or France",
    "Italy & !Spain & !France": "Italy, if it is not Spain and it is not France",
    "Italy & *": "Italy, if it is anything",
    "Italy & !*": "Italy, if it is nothing",
    "Italy | France.borders": "Italy or things that France borders",
    "Italy & France.borders | Spain.borders": (
        "(Italy, if France borders it) or things that Spain borders"
    ),
    "France.borders & !Spain | Italy.borders": (
        "(things that France borders, except Spain) or things that Italy borders"
    ),
    "France.borders & Spain.borders | Italy.borders": (
        "(things that France borders and that Spain borders) or things that Italy borders"
    ),
    "France.capital & Paris.^borders | Italy": ("(capitals of France that border Paris) or Italy"),
    "(Italy | France.borders) & Euro.^uses_currency": (
        "things that use the currency Euro and that are (Italy or things that France borders)"
    ),
    "France.borders | Spain.borders": "things that France borders or that Spain borders",
    "France.capital | Spain.borders": "capitals of France or things that Spain borders",
    "!France.borders & !Spain.borders": (
        "things that France does not border and that Spain does not border"
    ),
    "!(!France.borders & !Spain.borders)": "things that France borders or that Spain borders",
    "!!France.borders": "things that France borders",
    "(France.borders & !Euro.^uses_currency).has_province": (
        "provinces of (things that France borders, but that do not use the currency Euro)"
    ),
    "(Oscar.^won & !Miramax.^produced_by).^directed": (
        "things that directed (things that won Oscar, but that are not produced by Miramax)"
    ),
    "Euro.^uses_currency & France.capital": "capitals of France that use the currency Euro",
    "(France.borders | Spain.borders) & Euro.^uses_currency": (
        "things that use the currency Euro and that are "
        "(things that France borders or that Spain borders)"
    ),
    "*.capital & France.borders": "(capitals of anything) that France borders",
    "(France | Spain).borders": "things bordered by (France or Spain)",
    "(France | Spain).borders & !Euro.^uses_currency": (
        "things bordered by (France or Spain), but that do not use the currency Euro"
    ),
    "*.borders & Euro.^uses_currency": (
        "things that use the currency Euro and that are bordered by anything"
    ),
    "France.borders.borders & !Spain": "(things bordered by things that France borders), "
    "except Spain",
    "!*": "nothing",
    "Spain.^/people/person/place_of_birth & Paris.^/people/person/place_of_death": (
        "people whose place of birth is Spain and whose place of death is Paris"
    ),
    "France.capital & Paris.^borders": "capitals of France that border Paris",
}


@pytest.mark.parametrize(("text", "words"), CASES.items(), ids=CASES)
def test_cases(text: str, words: str) -> None:
    assert read_query(parse_query(text, WORLD), WORLD) == words


@given(vocabulary=strategies.vocabularies(), query=strategies.queries(max_leaves=8))
def test_every_entity_is_named(vocabulary: Vocabulary, query: Query) -> None:
    words = read_query(query, vocabulary)
    assert words.strip()
    plain = strategies.plain_vocabulary()
    words = read_query(query, plain)

    def entities(node: Query, below: tuple[set[int], ...]) -> set[int]:
        own = {node.entity_id} if isinstance(node, Anchor) else set()
        return own.union(*below)

    for entity_id in fold(query, entities):
        assert plain.entities.label(entity_id) in words
    assert words.count("(") == words.count(")")


@given(strategies.queries())
def test_parts_read_like_whole_queries(query: Query) -> None:
    simple, vocabulary = simplify(push_negation(query)), strategies.plain_vocabulary()
    alone = [read_query(part, vocabulary) for part in subtrees(simple)]
    assert read_parts(simple, vocabulary) == alone


@given(
    first=strategies.queries(max_leaves=3), second=strategies.queries(max_leaves=3), data=st.data()
)
def test_a_negation_reads_differently(first: Query, second: Query, data: st.DataObject) -> None:
    relation_id = data.draw(st.integers(0, 5))
    vocabulary = strategies.plain_vocabulary()
    wanted = first.project(relation_id) & second.project(0)
    denied = first.project(relation_id) & ~second.project(0)
    assert read_query(wanted, vocabulary) != read_query(denied, vocabulary)


@given(query=strategies.queries(max_leaves=4), data=st.data())
def test_of_an_entity_a_question_asks_whether_it_is_an_answer(
    query: Query, data: st.DataObject
) -> None:
    """Whatever is asked of it, the entity comes first, and what must hold of it is in sentences."""
    vocabulary = strategies.plain_vocabulary()
    asked = Anchor(data.draw(st.integers(0, 3))) & query.project(data.draw(st.integers(0, 5)))
    words = read_query(asked, vocabulary)
    assert words.startswith(f"{vocabulary.entities.label(asked.operands[0].entity_id)}, if ")
    denied = read_query(And((asked.operands[0], Not(asked.operands[1]))), vocabulary)
    assert denied.startswith(words[: words.index(" if ")])
    assert denied != words


def test_deep_queries_are_read() -> None:
    query: Query = Anchor(0)
    for _ in range(100):
        query = query.project(4)
    assert read_query(query, WORLD).endswith("capitals of France")
