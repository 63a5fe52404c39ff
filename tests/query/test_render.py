import pytest
from hypothesis import given

import strategies
from conekg.errors import ConfigError, QueryError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.parse import parse_query
from conekg.query.render import name_of, render_formula, render_parts, render_query
from conekg.query.render_sparql import render_sparql
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, depth, subtrees

VOCABULARY = Vocabulary(
    NameTable("entity", ["a", "b c", "/m/1", "/m/2", "/m/3"], ["A", "", "Paris", "Paris", "a"]),
    NameTable("relation", ["r", "s t"], ["R", ""]),
)
A, B, M1, M2, M3 = map(Anchor, range(5))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (A, "a"),
        (Universe(), "*"),
        (Project(Project(B, 2), 1), '"b c"."s t".^r'),
        (Not(Project(A, 0)), "!a.r"),
        (Project(Not(A), 0), "(!a).r"),
        (Project(And((A, B)), 0), '(a & "b c").r'),
        (Not(And((A, M1))), "!(a & /m/1)"),
        (And((Or((A, M1)), Not(Not(M2)))), "(a | /m/1) & !!/m/2"),
        (Or((And((A, M1)), M2)), "a & /m/1 | /m/2"),
        (And((And((A, M1)), M2)), "(a & /m/1) & /m/2"),
        (Or((A, Or((M1, M2)))), "a | (/m/1 | /m/2)"),
    ],
)
def test_path_algebra(query, text):
    assert render_query(query, VOCABULARY) == text


@given(strategies.queries())
def test_parts_are_rendered_as_each_alone(query):
    vocabulary = strategies.plain_vocabulary()
    alone = [render_query(part, vocabulary) for part in subtrees(query)]
    assert render_parts(query, vocabulary) == alone


@pytest.mark.parametrize(
    "query", ["a.r", None, Not("a"), And((A, Project("b", 0))), Or((A, 3)), Not([A])]
)
@pytest.mark.parametrize("render", [render_query, render_formula, render_sparql])
def test_operands_that_are_not_nodes_are_refused(render, query):
    with pytest.raises(QueryError, match="in a query is no part of a tree") as caught:
        render(query, VOCABULARY)
    assert "parse_query" in caught.value.hint


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (Anchor("a"), "'a' in a query is no entity id"),
        (And((A, Anchor(0.5))), "0.5 in a query is no entity id"),
        (Project(A, "r"), "'r' in a query is no relation id"),
    ],
)
@pytest.mark.parametrize("render", [render_query, render_formula, render_sparql])
def test_ids_that_are_not_whole_numbers_are_refused(render, query, told):
    with pytest.raises(QueryError, match=told) as caught:
        render(query, VOCABULARY)
    assert "parse_query looks names up" in caught.value.hint


def test_a_graph_in_place_of_a_vocabulary_is_refused():
    graph = KnowledgeGraph("one", VOCABULARY, {})
    told = r"in a KnowledgeGraph; it must be a graph's vocabulary, as graph\.vocabulary"
    for use in (
        lambda: render_query(A, graph),
        lambda: render_formula(A, graph),
        lambda: render_sparql(A, graph),
        lambda: parse_query("a", graph),
    ):
        with pytest.raises(ConfigError, match=told):
            use()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (A, '?x: ?x = "a"'),
        (Universe(), "?x: *(?x)"),
        (Project(B, 2), '?x: "s t"("b c", ?x)'),
        (Project(A, 1), '?x: r(?x, "a")'),
        (Project(Universe(), 0), "?x: exists y. r(y, ?x)"),
        (
            Project(And((Project(A, 0), Not(Project(M1, 0)))), 1),
            '?x: exists y. r("a", y) & !r("/m/1", y) & r(?x, y)',
        ),
        (
            Project(Project(Project(A, 0), 0), 0),
            '?x: exists y, z. r("a", z) & r(z, y) & r(y, ?x)',
        ),
        (
            Or((Project(Project(A, 0), 0), Not(A))),
            '?x: (exists y. r("a", y) & r(y, ?x)) | !?x = "a"',
        ),
    ],
)
def test_formula(query, text):
    assert render_formula(query, VOCABULARY) == text


@given(strategies.queries(), strategies.vocabularies())
def test_both_notations_come_back_exactly(query, vocabulary):
    assert parse_query(render_query(query, vocabulary), vocabulary) == query
    assert parse_query(render_formula(query, vocabulary), vocabulary) == query


@given(strategies.queries(max_leaves=30))
def test_large_queries_come_back_exactly(query):
    vocabulary = strategies.plain_vocabulary()
    if depth(query) > 64:
        return
    for render in (render_query, render_formula):
        assert parse_query(render(query, vocabulary), vocabulary, max_length=10**6) == query


def test_labels_stand_in_only_where_they_can_be_read_back():
    entities = VOCABULARY.entities
    assert name_of(entities, 0, labels=True) == "A"
    assert name_of(entities, 2, labels=True) == "/m/1"  # two are called Paris
    assert name_of(entities, 4, labels=True) == "/m/3"  # its label is another's name
    assert name_of(entities, 0, labels=False) == "a"
    query = And((Project(A, 0), Project(M1, 1), M3))
    assert render_query(query, VOCABULARY, labels=True) == "A.r & /m/1.^r & /m/3"
    assert render_formula(query, VOCABULARY, labels=True) == (
        '?x: r("A", ?x) & r(?x, "/m/1") & ?x = "/m/3"'
    )
    assert parse_query(render_query(query, VOCABULARY, labels=True), VOCABULARY) == query


def test_relations_go_by_labels_that_are_written_shorter():
    relations = NameTable(
        "relation",
        ["http://a.org/p#livesIn", "capital", "http://a.org/p#knows", "http://b.org/p#knows"],
        ["livesIn", "has capital", "knows", "knows"],
    )
    vocabulary = Vocabulary(NameTable("entity", ["http://a.org/Bonn"], ["Bonn"]), relations)
    bonn = Anchor(0)
    query = And((Project(bonn, 1), Not(Project(bonn, 2)), Project(bonn, 4)))
    path = 'Bonn.^livesIn & !Bonn.capital & Bonn."http://a.org/p#knows"'
    assert render_query(query, vocabulary, labels=True) == path
    formula = '?x: livesIn(?x, "Bonn") & !capital("Bonn", ?x) & "http://a.org/p#knows"("Bonn", ?x)'
    assert render_formula(query, vocabulary, labels=True) == formula
    for text in (path, formula):
        assert parse_query(text, vocabulary) == query


@given(strategies.queries(), strategies.vocabularies(), strategies.vocabularies())
def test_both_notations_come_back_with_labels(query, named, called):
    entities = NameTable("entity", list(named.entities), list(called.entities))
    relations = NameTable("relation", list(named.relations), list(called.relations))
    vocabulary = Vocabulary(entities, relations)
    for render in (render_query, render_formula):
        assert parse_query(render(query, vocabulary, labels=True), vocabulary) == query


@pytest.mark.parametrize("render", [render_query, render_formula, render_sparql])
@pytest.mark.parametrize(
    "step",
    [lambda q: Project(q, 0), Not, lambda q: And((q, A)), lambda q: And((A, Project(q, 0)))],
)
def test_queries_of_any_depth_are_written(render, step):
    def deep(levels):
        query = Or((Project(A, 0), M1))
        for _ in range(levels):
            query = step(query)
        return render(query, VOCABULARY)

    assert len(deep(1_200)) > len(deep(1_199))
