"""Questions are parsed as they are written, or refused before any work."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import small_models
import strategies
from conekg.answering.answer import Question
from conekg.answering.understand import (
    Understood,
    Words,
    grounded,
    shortened,
    understand,
    understand_part,
)
from conekg.errors import (
    ConeKGError,
    ConfigError,
    QuerySyntaxError,
    QueryTooLargeError,
    UnknownNameError,
    UnsupportedOperatorError,
)
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.model.catalog import build_model
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.rewrite import push_negation, settle, simplify
from conekg.query.tree import Anchor, Not, Query, Universe, subtrees


def understood(
    graph: KnowledgeGraph, question: Question, model: str = "cone", max_branches: int = 3
) -> Understood:
    options = small_models.SMALL_OPTIONS[model]
    built = build_model(model, graph.num_entities, graph.num_relations, options, 0)
    return understand(question, graph, built, max_branches)


def test_a_text_becomes_a_tree_ids_and_words(film_graph: KnowledgeGraph) -> None:
    question = Question("( a1 . won_by )&!c1.produced", exclude=("f2", 0, "f2"))
    found = understood(film_graph, question)
    assert found.question is question
    assert found.query == Anchor(0).project(0) & ~Anchor(6).project(4)  # produced is the third
    assert found.text == render_query(found.query, film_graph.vocabulary)
    assert "Academy Award" in found.reading
    assert found.grounded.shape.name == "2in"
    np.testing.assert_array_equal(found.exclude, [0, 2])


@pytest.mark.parametrize(
    ("query", "error", "told"),
    [
        ("a1.won_bye", UnknownNameError, "unknown relation 'won_bye' at column 4"),
        ("a1.", QuerySyntaxError, "expected a relation, found the end of the query at column 4"),
        (
            "(a1|f1).won_by & (a1|f2).won_by & (a1|f3).won_by",
            QueryTooLargeError,
            "8 union-free branches; at most 3 are allowed",
        ),
        (Anchor(8), UnknownNameError, "unknown entity id '8'\nthe graph has entity ids 0 to 7"),
        (Anchor(-1), UnknownNameError, "unknown entity id '-1'"),
        (
            Anchor(0).project(6),
            UnknownNameError,
            "unknown relation id '6'\nthe graph has relation ids 0 to 5",
        ),
    ],
)
def test_bad_queries_are_refused(
    film_graph: KnowledgeGraph, query: Query | str, error: type[ConeKGError], told: str
) -> None:
    with pytest.raises(error, match=told):
        understood(film_graph, Question(query))


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 0},
        {"top_k": "3"},
        {"top_k": 2.0},
        {"top_k": True},
        {"only": "some"},
        {"known_graph": "all"},
        {"keep_contradicted": "no"},
        {"union": "cnf"},
        {"exclude": "Alien"},
        {"exclude": 5},
    ],
)
def test_bad_options_are_refused_by_name(
    film_graph: KnowledgeGraph, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigError) as caught:
        understood(film_graph, Question("a1.won_by", **options))  # type: ignore[arg-type]
    (key,) = options
    assert caught.value.key == key
    assert repr(options[key]) in caught.value.message


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (3, "the query is 3; it must be text or a tree"),
        (None, "the query is None"),
        (["a1.won_by"], "the query is ['a1.won_by']"),
        (Anchor("a1"), "'a1' is no entity id; ids are whole numbers"),  # type: ignore[arg-type]
        (Anchor(0).project("won_by"), "'won_by' is no relation id"),  # type: ignore[arg-type]
    ],
)
def test_values_that_are_not_queries_are_refused(
    film_graph: KnowledgeGraph, query: Query, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        understood(film_graph, Question(query))
    assert told in caught.value.message


def test_values_that_are_not_questions_are_refused(film_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match="'a1' is asked; it must be a Question"):
        understood(film_graph, "a1")  # type: ignore[arg-type]


def test_ids_to_exclude_are_whole_numbers(film_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"1\.5 is no entity id"):
        understood(film_graph, Question("a1.won_by", exclude=(1.5,)))  # type: ignore[arg-type]
    found = understood(film_graph, Question("a1.won_by", exclude=(np.int64(1),)))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.exclude, [1])


@pytest.mark.parametrize(
    ("excluded", "told"),
    [("Nobody", "entity 'Nobody'"), (8, "entity id '8'"), (-1, "entity id '-1'")],
)
def test_excluded_entities_must_exist(
    film_graph: KnowledgeGraph, excluded: str | int, told: str
) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown {told}"):
        understood(film_graph, Question("a1.won_by", exclude=(excluded,)))


@pytest.mark.parametrize(
    "question",
    [
        Question("a1.won_by & !c1.produced"),
        Question("a1.won_by | c1.produced", union="demorgan"),
    ],
)
def test_operators_that_a_model_lacks_are_refused(
    film_graph: KnowledgeGraph, question: Question
) -> None:
    understood(film_graph, question)
    with pytest.raises(UnsupportedOperatorError, match="model 'gqe' lacks negation"):
        understood(film_graph, question, "gqe")


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("(a1.won_by | c1.produced) & (a1.won_by | c1.produced)", "a1.won_by | c1.produced"),
        (
            "?x: (won_by(a1, ?x) | produced(c1, ?x)) & (won_by(a1, ?x) | produced(c1, ?x))",
            "a1.won_by | c1.produced",
        ),
        ("(a1 | f1).won_by & (a1 | f1).won_by & (a1 | f1).won_by", "(a1 | f1).won_by"),
        ("(a1 | f1).won_by & (f2 | *).won_by & (f3 | *)", "(a1 | f1).won_by & *.won_by"),
        ("(a1 | f1) & (f2 | f3) & (d1 | d2) & !*", "!*"),
        (" | ".join(["a1.won_by"] * 9), "a1.won_by"),
    ],
)
def test_branches_are_those_of_the_settled_query(
    film_graph: KnowledgeGraph, text: str, shorter: str
) -> None:
    found = understood(film_graph, Question(text), max_branches=2)
    assert found.query == parse_query(text, film_graph.vocabulary)
    expected = understood(film_graph, Question(shorter), max_branches=2)
    assert found.grounded == expected.grounded
    assert found.ranked_by == expected.ranked_by


def test_too_many_branches_are_counted_after_settling(film_graph: KnowledgeGraph) -> None:
    text = "(a1 | f1).won_by & (a1 | f2).won_by & (a1 | f1).won_by"
    with pytest.raises(QueryTooLargeError, match="this query has 4 union-free branches"):
        understood(film_graph, Question(text))


def test_redundant_operators_need_no_support(film_graph: KnowledgeGraph) -> None:
    for text in ("!!a1.won_by", "a1.won_by & (c1.produced | !c1.produced)", "a1.won_by & *"):
        found = understood(film_graph, Question(text), "gqe")
        assert found.ranked_by.grounded.shape.name == "1p"
    with pytest.raises(UnsupportedOperatorError, match="the set of all entities"):
        understood(film_graph, Question("a1.won_by | *"), "gqe")


def test_a_query_is_ranked_as_asked_if_the_model_lacks_what_it_settles_to(
    film_graph: KnowledgeGraph,
) -> None:
    everything = Question("a1.won_by | !a1.won_by")
    assert understood(film_graph, everything).ranked_by.grounded == grounded(Universe())
    found = understood(film_graph, everything, "beta")
    asked = parse_query("a1.won_by | !a1.won_by", film_graph.vocabulary)
    assert found.ranked_by.grounded == grounded(asked)
    assert found.grounded == grounded(Universe())


@given(given_graph=strategies.graphs_with_queries(), union=st.sampled_from(["dnf", "demorgan"]))
def test_parts_are_understood_like_whole_queries(
    given_graph: tuple[KnowledgeGraph, Query], union: Literal["dnf", "demorgan"]
) -> None:
    graph, query = given_graph
    query = simplify(push_negation(query))
    options = small_models.SMALL_OPTIONS["cone"]
    model = build_model("cone", graph.num_entities, graph.num_relations, options, 0)
    for part in subtrees(query):
        question = Question(part, union=union)
        alone = understand(question, graph, model, 10_000)
        words = Words(alone.text, alone.reading)
        is_settled = settle(query) == query
        found = understand_part(question, part, words, model, 10_000, is_settled=is_settled)
        assert found.grounded == alone.grounded
        assert found.ranked_by == alone.ranked_by
        assert (found.query, found.text, found.reading) == (part, *words)
        assert found.exclude.tolist() == []


@pytest.mark.parametrize(
    ("model", "shorter", "is_ranked_by_it"),
    [
        ("cone", Anchor(0).project(0), True),
        ("cone", Universe(), True),
        ("cone", Not(Universe()), False),
        ("beta", Universe(), False),
    ],
)
def test_a_shortened_question_is_ranked_by_what_is_left_if_that_can_be(
    film_graph: KnowledgeGraph, model: str, shorter: Query, is_ranked_by_it: bool
) -> None:
    whole = understood(film_graph, Question("a1.won_by | (f1 & !a1.won_by).directed_by"), model)
    options = small_models.SMALL_OPTIONS[model]
    built = build_model(model, film_graph.num_entities, film_graph.num_relations, options, 0)
    assert shortened(whole, whole.grounded, built, 3) is whole
    found = shortened(whole, grounded(shorter), built, 3)
    assert found.grounded == grounded(shorter)
    form = grounded(shorter) if is_ranked_by_it else whole.ranked_by.grounded
    assert found.ranked_by.grounded == form
    assert found.query == (shorter if is_ranked_by_it else whole.query)
    assert (found.text, found.reading, found.question) == (
        whole.text,
        whole.reading,
        whole.question,
    )
