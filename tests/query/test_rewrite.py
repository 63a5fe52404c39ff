"""Simplification: case files say what each rule does, properties say that answers never change."""

import pytest
from hypothesis import given

import strategies
from conekg.query import rewrite
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.rewrite import RULES, settle, simplify
from conekg.query.tree import Anchor, And, Not, Project, Universe, subtrees
from rewrite_cases import LETTERS, known_answers, read_cases


@pytest.mark.parametrize(("function", "text", "expected"), read_cases("rewrite"))
def test_case_files(function, text, expected):
    result = getattr(rewrite, function)(parse_query(text, LETTERS))
    assert [render_query(result, LETTERS)] == expected


@given(strategies.graphs_with_queries())
def test_no_rule_changes_the_answers(pair):
    graph, query = pair
    expected = known_answers(graph, query)
    for name, rule in RULES:
        assert known_answers(graph, rule(query)) == expected, name
    assert known_answers(graph, simplify(query)) == expected
    assert known_answers(graph, settle(query)) == expected


@given(strategies.queries())
def test_simplify_is_idempotent_and_never_grows(query):
    simple = simplify(query)
    assert simplify(simple) == simple
    assert len(subtrees(simple)) <= len(subtrees(query))


def test_rewriting_is_not_bounded_by_the_stack():
    query = path = Anchor(0)
    for _ in range(500):
        query = Project(And((Not(Not(query)), Universe())), 0)
        path = Project(path, 0)
    assert settle(query) == path
