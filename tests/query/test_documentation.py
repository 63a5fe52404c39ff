"""Every example of docs/query-language.md is read, and every console shows what it would show."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.graph.geography import load_geography
from conekg.query import formula, parse, sparql
from conekg.query.parse import parse_query
from conekg.symbolic.engine import answer

PAGE = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
QUERIES = [
    query
    for language, body in BLOCKS
    if language in ("text", "sparql")
    for query in (body.splitlines() if language == "text" else [body])
]


@pytest.fixture(scope="module")
def graph():
    return load_geography()


@pytest.mark.parametrize("query", QUERIES)
def test_examples_have_answers(graph, query):
    found = answer(graph.adjacency("test"), parse_query(query, graph.vocabulary))
    assert 0 < len(found) < graph.num_entities


def test_the_opening_question_means_the_same_in_each_notation(graph):
    trees = [parse_query(query, graph.vocabulary) for query in QUERIES[:3]]
    answers = [answer(graph.adjacency("test"), tree).tolist() for tree in trees]
    assert answers[0] == answers[1] == answers[2]
    assert "Brasília" in {graph.vocabulary.entities.label(index) for index in answers[0]}


@pytest.mark.parametrize("session", [body for language, body in BLOCKS if language == "console"])
def test_consoles_show_what_is_printed(session):
    command, _, expected = session.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "conekg"
    result = CliRunner().invoke(app, arguments)
    assert result.output == expected


def test_grammars_are_those_of_the_modules():
    grammars = [body for language, body in BLOCKS if language == "ebnf"]
    for module, grammar in zip((parse, formula), grammars, strict=True):
        assert module.__doc__ is not None
        indented = "".join(f"    {line}\n" for line in grammar.splitlines())
        assert indented in module.__doc__


def test_limits_are_those_of_the_module():
    assert f"{parse.MAX_LENGTH:,} characters" in PAGE
    assert f"{parse.MAX_DEPTH} levels deep" in PAGE
    assert f"{parse.DEPTH_LIMIT} levels at most" in PAGE
    assert f"{sparql.SAFE_NESTING} levels of braces, brackets and parentheses" in PAGE
