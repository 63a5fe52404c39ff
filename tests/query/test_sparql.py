"""SPARQL: what is read, what is refused and where, and whether a real engine's answers agree."""

import os
import re
import subprocess
import sys
from collections import Counter

from extras import need

need("rdflib", "pyoxigraph")

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyparsing import Keyword, ParseBaseException
from rdflib.plugins.sparql.parser import Query as RdflibQuery
from rdflib.plugins.sparql.parserutils import prettify_parsetree

import strategies
from conekg.errors import QuerySyntaxError, QueryTooLargeError, UnknownNameError
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.iri import iri_of, name_of_iri
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.render_sparql import render_sparql
from conekg.query.sparql import SAFE_NESTING, _grammar
from conekg.query.sparql_source import SparqlSource
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe
from oracle import Oracle

VOCABULARY = Vocabulary(
    NameTable(
        "entity",
        ["a", "b", "c", "United States", "http://x/y#z", "SELECT", "base"],
        ["A", "B", "C", "USA", "zed", "", ""],
    ),
    NameTable("relation", ["r", "s", "t", "http://x/rel"]),
)


def meaning(text):
    """The path algebra of a SPARQL query, which is easier to read than a tree."""
    return render_query(parse_query(text, VOCABULARY), VOCABULARY)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (":a :r ?x", "a.r"),
        ("?x :r :a", "a.^r"),
        (":a :r ?y . ?y :s ?x", "a.r.s"),
        ("?x :r :a ; :s :b , :c .", "a.^r & b.^s & c.^s"),
        (":a :r [ :s ?x ; :t :b ]", "(a.r & b.^t).s"),
        ("[] :r ?x", "*.r"),
        # Property paths.
        (":a :r/:s/^:t ?x", "a.r.s.^t"),
        (":a ^(:r/:s) ?x", "a.^s.^r"),
        (":a :r|^:s ?x", "a.r | a.^s"),
        (":a (:r|:s)/:t ?x", "(a.r | a.s).t"),
        # Names: prefixed, percent-encoded, full IRIs, strings, labels.
        (":United%20States :r ?x", '"United States".r'),
        ("<http://x/y#z> <http://x/rel> ?x", "http://x/y#z.http://x/rel"),
        ('?x :r "USA"', '"United States".^r'),
        ('?c rdfs:label "B"@en . ?c :r ?x', "b.r"),
        # Unions.
        ("{ :a :r ?x } UNION { :b :s ?x }", "a.r | b.s"),
        ("{ ?x :r :a } UNION { ?x :r :b } UNION { ?x :r :c }", "a.^r | b.^r | c.^r"),
        ("{ :a :r ?y } UNION { :b :r ?y } ?y :s ?x", "(a.r | b.r).s"),
        ("VALUES ?y { :a :b } ?y :s ?x", "(a | b).s"),
        ("VALUES (?y) { (:a) (:b) } ?y :s ?x", "(a | b).s"),
        # Negation.
        (":a :r ?x FILTER NOT EXISTS { :b :s ?x }", "a.r & !b.s"),
        ("FILTER NOT EXISTS { :b :s ?x } :a :r ?x", "a.r & !b.s"),
        (":a :r ?x MINUS { :b :s ?x }", "a.r & !b.s"),
        (":a :r ?x MINUS { ?x :s ?z }", "a.r & !*.^s"),
        (":a :r ?x FILTER NOT EXISTS { ?x :s ?z . ?z :t :b }", "a.r & !b.^t.^s"),
        (":a :r ?x FILTER NOT EXISTS { ?x :s ?y FILTER NOT EXISTS { ?y :t :b } }",
         "a.r & !(!b.^t).^s"),
        # MINUS that shares nothing removes nothing; MINUS before the variable is bound, too.
        (":a :r ?x MINUS { :b :s ?z }", "a.r"),
        ("MINUS { :b :s ?x } :a :r ?x", "a.r"),
        # A variable inside a block differs from one of the same name elsewhere.
        (":a :r ?x MINUS { ?x :s ?y } ?x :t ?y", "a.r & !*.^s & *.^t"),
        (":a :r ?x { :b :s ?x MINUS { ?x :t ?z } }", "a.r & b.s & !*.^t"),
        # Within a negated block MINUS may use variables that the block itself binds.
        (":a :r ?x FILTER NOT EXISTS { ?x :s ?y MINUS { ?y :t :b } }", "a.r & !(!b.^t).^s"),
        (":a :r ?x { :b :t ?y FILTER NOT EXISTS { ?x :s ?y } } ?y :r ?x", "a.r & (b.t & !*.s).r"),
        # The other filters.
        (":a :r ?x FILTER EXISTS { ?x :s ?z }", "a.r & *.^s"),
        # A repeated triple changes nothing.
        (":a :r ?y . ?y :s ?x . ?y :s ?x", "a.r.s"),
        (":a :r ?y . ?y :s ?x . ?x ^:s ?y", "a.r.s"),
        (":a :r ?y . ?y :s ?x FILTER EXISTS { ?y :s ?x }", "a.r.s"),
        (":a :r ?x FILTER (?x != :b)", "a.r & !b"),
        (":a :r ?x FILTER (:b = ?x)", "a.r & b"),
        (":a :r ?x FILTER (?x != :b && !EXISTS { ?x :s :c })", "a.r & (!b & !c.^s)"),
        (":a :r ?x FILTER (?x = :b || ?x = :c)", "a.r & (b | c)"),
        (":a :r ?x FILTER (?x IN (:b, :c))", "a.r & (b | c)"),
        (":a :r ?x FILTER (?x NOT IN (:b, :c))", "a.r & !(b | c)"),
        (":a :r ?x FILTER (?x IN (:b))", "a.r & b"),
        # Everything.
        ("?x a owl:Thing", "*"),
        ("?x a owl:Thing . :a :r ?x", "a.r"),
        ("?x a owl:Thing FILTER NOT EXISTS { :a :r ?x }", "!a.r"),
        ("?x a owl:Thing MINUS { :a :r ?x }", "!a.r"),
    ],
)  # fmt: skip
def test_what_patterns_mean(pattern, path):
    assert meaning(f"SELECT ?x WHERE {{ {pattern} }}") == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("select distinct ?x { :a :r ?x }", "a.r"),
        ("# a comment\nPREFIX p: <http://x/>\nSELECT ?x WHERE { <http://x/y#z> p:rel ?x }",
         "http://x/y#z.http://x/rel"),
        ("BASE <http://x/> SELECT $x { <y#z> <rel> $x }", "http://x/y#z.http://x/rel"),
        # Relative IRIs are resolved against the base before them, also in PREFIX and BASE.
        ("BASE <http://x/> PREFIX p: <y#> SELECT ?x { p:z <rel> ?x }",
         "http://x/y#z.http://x/rel"),
        ("PREFIX p: <http://x/> BASE <http://y/> BASE <//x/> SELECT ?x { <y#z> p:rel ?x }",
         "http://x/y#z.http://x/rel"),
        ("BASE <http://z/> PREFIX p: <http://x/y#> SELECT ?x { p:z <http://x/rel> ?x }",
         "http://x/y#z.http://x/rel"),
        ("BASE <http://z/> PREFIX all: <http://www.w3.org/2002/07/owl#> "
         "SELECT ?x { ?x a all:Thing MINUS { ?x :r :a } }", "!a.^r"),
        ("SELECT ?x { ?y :r ?x } VALUES ?y { :b }", "b.r"),
        ("PREFIX : <http://x/> SELECT ?x { ?x :rel ?y }", "*.^http://x/rel"),
        # Escapes are four digits after u and eight after U, whatever follows.
        (r'SELECT ?x { "\u0055SA" :r ?x }', '"United States".r'),
        (r"SELECT ?x { <http://x/\U00000079#z> :r ?x }", "http://x/y#z.r"),
        (r"SELECT ?x { <urn:conekg:\u0062ase> :r ?x }", "base.r"),
        # In a prefixed name a backslash escapes punctuation.
        (r"PREFIX p: <http://x/> SELECT ?x { p:y\#z p:rel ?x }", "http://x/y#z.http://x/rel"),
        ("SELECT & b.r", "SELECT & b.r"),  # an entity of that name, in the path algebra
        ("SELECT.r", "SELECT.r"),
        ("base & b", "base & b"),
    ],
)  # fmt: skip
def test_whole_queries(text, path):
    assert meaning(text) == path


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("SELECT ?x { :a :r ?x OPTIONAL { ?x :s ?y } }", "SPARQL's OPTIONAL", "OPTIONAL"),
        ("SELECT ?x { :a :r ?x BIND(:a AS ?y) }", "SPARQL's BIND", "BIND"),
        ("SELECT ?x { GRAPH :g { :a :r ?x } }", "SPARQL's GRAPH", "GRAPH"),
        ("SELECT ?x { SERVICE :g { :a :r ?x } }", "SPARQL's SERVICE", "SERVICE"),
        ("SELECT ?x { { SELECT ?x { :a :r ?x } } }", "SPARQL's SELECT inside", "{ SELECT"),
        ("SELECT ?x { :a :r ?x FILTER regex(?x, 'a') }", "FILTER with REGEX", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x > :b) }", "FILTER with '>'", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x + 1) }", "FILTER with arithmetic", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x) }", "FILTER with '?x' alone", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (:f(?x)) }", "FILTER with a function call", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x IN (?x)) }", "IN of other than", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x IN ()) }", "IN of other than", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x IN (STR(:a), :b)) }", "IN of other than", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x NOT IN (:a, 1 + 2)) }", "NOT IN of other than", "FILTER"),
        ("SELECT ?x WHERE { :a :r ?x FILTER (?x != 1 + 2) }", "comparison of other than", "FILTER"),
        ("SELECT ?x WHERE { :a :r ?x FILTER (:f(?x) = ?x) }", "comparison of other than", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (?x = EXISTS { ?x :s :b }) }", "comparison of", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER (:b) }", "FILTER with the value ':b'", "FILTER"),
        ("SELECT ?x { :a :r ?x FILTER ('b') }", "FILTER with the value 'b'", "FILTER"),
        ("SELECT ?x { :a <urn:conekg:r>* ?x }", "path operator '*'", ">*"),
        ("SELECT ?x { ?x :r (:a :b) }", "list '( ... )'", "("),
        ("INSERT DATA { :a :r :b }", "SPARQL's INSERT", "INSERT"),
        ("DELETE WHERE { :a :r ?x }", "SPARQL's DELETE", "DELETE"),
        ("SELECT ?x { :a :r+ ?x }", "path operator '+'", "r+"),
        ("SELECT ?x { :a (:r/:s)* ?x }", "path operator '*'", ")*"),
        ("SELECT ?x { :a !:r ?x }", "path operator '!'", "!"),
        ("SELECT ?x { :a ?p ?x }", "variable in the place of a relation, '?p'", "?p"),
        ("SELECT ?x { VALUES (?x ?y) { (:a :b) } }", "VALUES of several", "VALUES"),
        ("SELECT ?x { VALUES (?x) { (:a :b) } }", "VALUES of several", "VALUES"),
        ("SELECT ?x { VALUES (?x) { (:a) () } }", "VALUES of several", "VALUES"),
        ("SELECT ?x { VALUES (?x) { (:a) (UNDEF) } }", "SPARQL's UNDEF", "UNDEF"),
        ("SELECT ?x { VALUES ?x { :a UNDEF } }", "SPARQL's UNDEF", "UNDEF"),
        ("SELECT ?x { :a :r ?x } LIMIT 3", "SPARQL's LIMIT", "LIMIT"),
        ("SELECT ?x { :a :r ?x } OFFSET 3", "SPARQL's OFFSET", "OFFSET"),
        ("SELECT ?x { :a :r ?x } ORDER  BY ?x", "SPARQL's ORDER BY", "ORDER  BY"),
        ("SELECT ?x { :a :r ?x } GROUP BY ?x", "SPARQL's GROUP BY", "GROUP BY"),
        ("SELECT ?x FROM :g { :a :r ?x }", "SPARQL's FROM", "FROM"),
        ("ASK { :a :r ?x }", "SPARQL's ASK", "ASK"),
        ("CONSTRUCT { ?x :r :a } WHERE { :a :r ?x }", "SPARQL's CONSTRUCT", "CONSTRUCT"),
        ("SELECT * { :a :r ?x }", "selects *; exactly one variable", "SELECT"),
        ("select*{ :a :r ?x }", "selects *; exactly one variable", "select"),
        ("SELECT ?x ?y { ?y :r ?x }", "selects 2 variables", "SELECT"),
        ("SELECT (COUNT(?x) AS ?n) { :a :r ?x }", "selects an expression", "SELECT"),
        (r"SELECT ?x { <\ud800> :r ?x }", "stands for no Unicode character", r"\ud800"),
        (r"SELECT ?x { :a :r '\U00110000' }", "stands for no Unicode character", r"\U00110000"),
        (r"SELECT ?x { <\u0061> :r ?x ! }", "this SPARQL cannot be read", "!"),
        ("SELECT ?x { :a :r ?y }", "'?x' is selected but not bound", "?x"),
        ("SELECT ?x { { :a :r ?x } UNION { :a :r ?y } }", "'?x' is selected but not bound", "?x"),
        ("SELECT ?x { FILTER NOT EXISTS { :a :r ?x } }", "'?x' is selected but not bound", "?x"),
        ("SELECT ?x { :a :r ?x . :b :s :c }", "this triple has no variable", ":s"),
        ("SELECT ?x { :a :r ?x } VALUES ?y { :a }", "'?y' is not connected to '?x'", "VALUES"),
        ("SELECT ?x { ?x :r ?y . ?y :s ?x }", "'?x' and '?y' are linked in a cycle", ":s"),
        ("SELECT ?x { ?x :r ?x }", "'?x' is linked to itself", ":r"),
        ("SELECT ?x { :a :r ?x FILTER NOT EXISTS { :b :s ?z } }",
         "'?z' is not connected to '?x'", "EXISTS"),
        ("SELECT ?x { ?x :r ?y FILTER NOT EXISTS { ?y :s ?x } }", "'?x' is unsafe", ":s"),
        ("SELECT ?x { ?x :r ?y MINUS { ?y :s ?x } }", "'?x' is unsafe", ":s"),
        ("SELECT ?x { { ?x :r :a } UNION { ?x :s ?y } FILTER NOT EXISTS { ?y :t ?x } }",
         "'?y' is bound in only one branch", "?y"),
        ("SELECT ?x { { ?x :r :a } UNION { ?x :s ?y } "
         "FILTER NOT EXISTS { ?x :r ?z FILTER NOT EXISTS { ?z :t ?y } } }",
         "'?y' is bound in only one branch", "?y"),
        ("SELECT ?x { ?x :r :a MINUS { { ?x :s :b } UNION { :c :t :b } } }", "no variable", ":t"),
        ("SELECT ?x { ?x :r :a MINUS { { ?x :s :b } UNION { ?z :t :b } } }",
         "MINUS over a variable bound in one branch only", "MINUS"),
        ("SELECT ?x { ?x :r :a FILTER NOT EXISTS { :b :s ?z MINUS { ?x :t ?z } } }",
         "MINUS over a variable bound outside of EXISTS", "MINUS"),
        ("SELECT ?x { ?x :r :a FILTER NOT EXISTS "
         "{ { ?x :s ?z } UNION { :b :s ?z } MINUS { ?x :t ?z } } }",
         "MINUS over a variable bound outside of EXISTS", "MINUS"),
        ("SELECT ?x { ?x :r :a FILTER EXISTS "
         "{ ?x :s ?z MINUS { ?z :t ?y MINUS { ?x :t ?y } } } }",
         "MINUS over a variable bound outside of EXISTS", "MINUS"),
        ("SELECT ?x { ?x :r :a FILTER EXISTS "
         "{ ?x :s ?z MINUS { ?z :t :b FILTER EXISTS { ?z :s ?x } } } }",
         "MINUS over a variable bound outside of EXISTS", "MINUS"),
        ("SELECT ?x { ?x :r :a FILTER NOT EXISTS { ?x :s :b MINUS { ?y :t :b } } }",
         "MINUS that shares no variable within EXISTS", "MINUS"),
        ("SELECT ?x { ?x :r :a FILTER EXISTS "
         "{ ?x :s ?z MINUS { ?z :t :b MINUS { ?y :t :b } } } }",
         "MINUS that shares no variable within EXISTS", "MINUS"),
        ("SELECT ?x { :a :r ?x FILTER (?y != :b) }", "'?y' is compared but not bound", "?y"),
        ("SELECT ?x { { ?x :r :a } UNION { ?x :s ?y } FILTER (?y != :b) }",
         "'?y' is compared but not bound", "?y"),
        ("SELECT ?x { :a :r ?x FILTER (?x != ?x) }", "comparison of other than", "FILTER"),
        ("SELECT ?x { { :a :r ?x } UNION { } }", "an empty group says nothing", "UNION"),
        ("SELECT ?x { p:a :r ?x }", "prefix 'p:' is not declared", "p:"),
        ("SELECT ?x {", "cannot be read; the mistake is in the part that begins", ""),
    ],
)  # fmt: skip
def test_unsupported_constructs_are_named_with_their_place(text, message, place):
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text, VOCABULARY)
    assert message in caught.value.message
    start, stop = caught.value.span
    assert text[start:stop] == place
    assert stop <= len(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "message", "before"),
    [
        ("SELECT ?x { :a :r ?x FILTER NOT EXISTS { ?x :s :b } FILTER (?x < 3) }",
         "FILTER with '<'", "SELECT ?x { :a :r ?x FILTER NOT EXISTS { ?x :s :b } "),
        ("SELECT ?x { :a :r ?x FILTER NOT EXISTS { ?x :s :b FILTER (?x < 3) } }",
         "FILTER with '<'", "SELECT ?x { :a :r ?x FILTER NOT EXISTS { ?x :s :b "),
        ("SELECT ?x { ?x :r ?filter FILTER (?filter > 3) }",
         "FILTER with '>'", "SELECT ?x { ?x :r ?filter "),
        ("SELECT ?x { ?x :r ?y . ?y :r ?x }", "in a cycle", "SELECT ?x { ?x :r ?y . ?y "),
        ("SELECT ?x { ?x :r :a . ?y :r :b }", "not connected", "SELECT ?x { ?x :r :a . ?y "),
        ("SELECT ?x { { ?x :r :a } UNION { ?x :s :b } { ?x :r :a } UNION { } }",
         "empty group", "SELECT ?x { { ?x :r :a } UNION { ?x :s :b } { ?x :r :a } "),
        ("SELECT ?x { { { ?x :r :a } UNION { } } UNION { ?x :s :b } }",
         "empty group", "SELECT ?x { { { ?x :r :a } "),
        ("SELECT ?x { ?x :r :a MINUS { ?x :s :b } MINUS { ?z :t :b . ?x :s :z } }",
         "unknown entity 'z'",
         "SELECT ?x { ?x :r :a MINUS { ?x :s :b } MINUS { ?z :t :b . ?x :s "),
        ("SELECT ?x { ?x :r 5 }", "unknown entity '5'", "SELECT ?x { ?x :r "),
        ("SELECT ?x { ?x a owl:Thing ; :r ( ) }", "rdf-syntax-ns#nil'",
         "SELECT ?x { ?x a owl:Thing ; :r "),
        ("SELECT ?x { ?x :r <urn:conekg:a> ; <urn:conekg:a> :b }", "unknown relation 'a'",
         "SELECT ?x { ?x :r <urn:conekg:a> ; "),
        ("SELECT ?x { ?x <urn:conekg:r> ?y . ?y <urn:conekg:r> ?x }", "in a cycle",
         "SELECT ?x { ?x <urn:conekg:r> ?y . ?y "),
    ],
)  # fmt: skip
def test_errors_point_at_the_right_one_of_several_occurrences(text, message, before):
    with pytest.raises((QuerySyntaxError, UnknownNameError)) as caught:
        parse_query(text, VOCABULARY)
    assert message in caught.value.message
    assert text[: caught.value.span[0]] == before


@pytest.mark.parametrize("pattern", [":nobody :r ?x", '?x :r "nobody"', ":a :nothing ?x"])
def test_names_close_to_an_unknown_one_are_looked_for_once(pattern, monkeypatch):
    asked = []

    def suggest(_, text):
        asked.append(text)
        return ()

    monkeypatch.setattr(NameTable, "suggest", suggest)  # it takes seconds among millions
    with pytest.raises(UnknownNameError):
        parse_query(f"SELECT ?x {{ {pattern} }}", VOCABULARY)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("text", "kind", "place"),
    [
        ("SELECT ?x { :aa :r ?x }", "entity", ":aa"),
        ("SELECT ?x { :a :rr ?x }", "relation", ":rr"),
        ("SELECT ?x { ?x :r 'Berlin' }", "entity", "'Berlin'"),
        ("SELECT ?x { <http://x/Y> :r ?x }", "entity", "<http://x/Y>"),
        ("SELECT ?x { :a :r ?x . # :aa\n ?x :s :aa }", "entity", ":aa"),
    ],
)
def test_unknown_names_are_reported_where_they_stand(text, kind, place):
    with pytest.raises(UnknownNameError) as caught:
        parse_query(text, VOCABULARY)
    assert caught.value.kind == kind
    start, stop = caught.value.span
    assert text[start:stop] == place
    assert "#" not in text or start > text.index("\n")


def test_limits_hold_for_sparql_too():
    with pytest.raises(QueryTooLargeError, match="characters"):
        parse_query("SELECT ?x { :a :r ?x }" + " " * 10_000, VOCABULARY)
    nested = "SELECT ?x " + "{" * 70 + ":a :r ?x" + "}" * 70
    with pytest.raises(QueryTooLargeError, match="64 levels"):
        parse_query(nested, VOCABULARY)
    with pytest.raises(QueryTooLargeError):
        parse_query("SELECT ?x { :a " + "/".join([":r"] * 90) + " ?x }", VOCABULARY)


def test_many_triples_are_read():
    triples = [f":a :r ?y{n} . ?y{n} :s ?x" for n in range(200)]
    for text in (" . ".join(triples), " .\n # another\n".join(triples) + " ."):
        query = parse_query(f"SELECT ?x {{ {text} }}", VOCABULARY)
        assert query == And((Project(Project(Anchor(0), 0), 2),) * 200)
    same = "SELECT ?x { " + ":a :r ?x . " * 900 + "}"
    assert parse_query(same, VOCABULARY) == And((Project(Anchor(0), 0),) * 900)


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        ("{", "}"),
        ("{ :a :r ?x } UNION {", "}"),
        ("?x :s :b FILTER NOT EXISTS {", "}"),
        ("?x :s :b MINUS {", "}"),
    ],
)
def test_safe_nesting_is_read_and_deeper_nesting_is_refused(start, stop):
    def nested(levels):
        return f"SELECT ?x {{ {start * levels} :a :r ?x {stop * levels} }}"

    assert parse_query(nested(SAFE_NESTING - 1), VOCABULARY)
    with pytest.raises(QueryTooLargeError, match=f"61 levels deep.* {SAFE_NESTING} are always"):
        parse_query(nested(60), VOCABULARY)


def test_parentheses_in_parentheses_are_read():
    comparison = "(" * (SAFE_NESTING - 1) + "?x = :b" + ")" * (SAFE_NESTING - 1)
    path = "(" * (SAFE_NESTING - 1) + ":r" + ")" * (SAFE_NESTING - 1)
    assert meaning(f"SELECT ?x {{ :a {path} ?x FILTER {comparison} }}") == "a.r & b"


def test_without_rdflib_the_extra_is_named():
    program = (
        "import sys; sys.modules['rdflib'] = None\n"
        "import strategies\n"
        "from conekg.errors import ConeKGError\n"
        "from conekg.query.parse import parse_query\n"
        "try:\n"
        "    parse_query('SELECT ?x { :e0 :r0 ?x }', strategies.plain_vocabulary())\n"
        "except ConeKGError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "pip install 'conekg[rdf]'" in done.stdout


# ---- rendering, and a second engine ----------------------------------------------------------


def test_rendering():
    a, b = Project(Anchor(0), 0), Project(Anchor(3), 3)
    query = Project(And((Not(b), a)), 4)
    assert render_sparql(query, VOCABULARY) == (
        "PREFIX : <urn:conekg:>\n"
        "SELECT DISTINCT ?x WHERE {\n"
        "  :a :r ?y1 .\n"
        "  FILTER NOT EXISTS {\n"
        "    ?y1 :s :United%20States .\n"
        "  }\n"
        "  ?y1 :t ?x .\n"
        "}"
    )
    union = Or((Universe(), Anchor(1), And((a, Or((a, b))))))
    assert render_sparql(union, VOCABULARY).splitlines()[2:] == [
        "SELECT DISTINCT ?x WHERE {",
        "  {",
        "    ?x a owl:Thing .",
        "  } UNION {",
        "    VALUES ?x { :b }",
        "  } UNION {",
        "    :a :r ?x .",
        "    {",
        "      :a :r ?x .",
        "    } UNION {",
        "      ?x :s :United%20States .",
        "    }",
        "  }",
        "}",
    ]


def store_of(graph):
    """The test graph's facts in a SPARQL engine; every entity is an owl:Thing."""
    node = pyoxigraph.NamedNode
    entities, relations = graph.vocabulary.entities, graph.vocabulary.relations
    kind = node("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    thing = node("http://www.w3.org/2002/07/owl#Thing")
    store = pyoxigraph.Store()
    for entity in entities:
        store.add(pyoxigraph.Quad(node(iri_of(entity)), kind, thing))
    for h, r, t in all_edges(graph):
        if r % 2 == 0:
            head, tail = node(iri_of(entities.name(h))), node(iri_of(entities.name(t)))
            store.add(pyoxigraph.Quad(head, node(iri_of(relations.name(r // 2))), tail))
    return store


def all_edges(graph):
    return [edge for split in ("train", "valid", "test") for edge in graph.edges(split).tolist()]


def run(store, graph, text):
    names = {name_of_iri(iri) for iri in values_of_x(store, text)}
    return {graph.vocabulary.entities.id_of(name) for name in names}


def values_of_x(store, text):
    """The values of ?x, all fetched at once: only the thread that made an iterator of solutions may
    delete it, and the garbage collector may run in any thread."""
    return [solution["x"].value for solution in list(store.query(text))]


@given(strategies.graphs_with_queries())
def test_a_sparql_engine_gives_the_same_answers(pair):
    graph, query = pair
    expected = Oracle(all_edges(graph), graph.num_entities).answer(query)
    store = store_of(graph)
    text = render_sparql(query, graph.vocabulary)
    assert run(store, graph, text) == expected
    assert (
        Oracle(all_edges(graph), graph.num_entities).answer(parse_query(text, graph.vocabulary))
        == expected
    )
    # Outermost negations may be written MINUS just as well.
    minus = text.replace("\n  FILTER NOT EXISTS {", "\n  MINUS {")
    assert run(store, graph, minus) == expected
    assert (
        Oracle(all_edges(graph), graph.num_entities).answer(parse_query(minus, graph.vocabulary))
        == expected
    )


def patterns(budget):
    """Random SPARQL patterns about ?x, ?y and ?z, tree-shaped or not."""
    variable = st.sampled_from(["?x", "?y", "?z"])
    term = variable | st.sampled_from([":e0", ":e1", ":e2"])
    relation = st.sampled_from([":r0", ":r1", "^:r0", ":r0/:r1", ":r0|:r1", "(:r0|^:r1)/:r1"])
    triple = st.builds("{} {} {} .".format, variable, relation, term) | st.builds(
        "{} {} {} .".format, term, relation, variable
    )
    if budget == 0:
        return triple
    below = patterns(budget - 1)
    return st.one_of(
        triple,
        st.builds("{} {}".format, below, below),
        st.builds("{{ {} }} UNION {{ {} }}".format, below, below),
        st.builds("{} MINUS {{ {} }}".format, below, below),
        st.builds("{} FILTER NOT EXISTS {{ {} }}".format, below, below),
        st.builds("{{ {} }} {}".format, below, below),
        st.builds("{} FILTER EXISTS {{ {} }}".format, below, below),
        st.builds("{} FILTER (?x != :e1)".format, below),
        st.builds(
            "{} FILTER ({} {} (:e0, :e2))".format,
            below,
            variable,
            st.sampled_from(["IN", "NOT IN"]),
        ),
    )


@given(patterns(3))
def test_triples_are_read_as_rdflib_reads_them(pattern):
    text = f"SELECT ?x {{ {pattern} # and\n ?x :r :e0 , :e1 ; :s [ :t ?y ] }}"
    ours, theirs = (
        re.sub(
            r"BNode\('\w+'\)",
            "BNode",
            prettify_parsetree(grammar.parse_string(text, parse_all=True)),
        )
        for grammar in (_grammar(), RdflibQuery)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "expression",
    [
        "?x = :a || ?x != <http://x/y#z> && !(?x IN (:a, :b))",
        "STR(?x) = 'a' || str:f(?x) = 1.5 || :f() || :f(DISTINCT ?x, :a)",
        "true || FALSE && true:x = ?x || BOUND(?x) && bound:x = ?x",
        "EXISTS { ?x :r :a } || NOT EXISTS { ?x :r :a } || exists:a = not:b",
        "COUNT(*) + -1 * +2.0 / 3e1 > 0 && REGEX(?x, 'a', 'i') || COALESCE(?x, :a)",
        "RAND () < 1 # why\n && $x = \"a\"@en || 'b'^^:t = ?x || IF(?x, 1, count:a)",
        "?x = a", "?x = :a(", "STR :a", "? = 1", "NOT :a", "?x IN (:a, )", "count :a", "-STR = 1",
    ],
)  # fmt: skip
def test_expressions_are_read_as_rdflib_reads_them(expression):
    def outcome(grammar):
        try:
            read = grammar.parse_string(
                f"SELECT ?x {{ :a :r ?x FILTER ({expression}) }}", parse_all=True
            )
        except ParseBaseException as error:
            return error.loc
        return prettify_parsetree(read)

    assert outcome(_grammar()) == outcome(RdflibQuery)


def test_long_lists_are_read_without_searching_for_each_name(monkeypatch):
    tried = Counter()

    def count(owner, method):
        plain = getattr(owner, method)

        def counted(*arguments, **options):
            tried[method] += 1
            return plain(*arguments, **options)

        monkeypatch.setattr(owner, method, counted)

    count(SparqlSource, "prefixed_name")
    count(Keyword, "parseImpl")
    names = [f"n{number}" for number in range(200)]
    vocabulary = Vocabulary(NameTable("entity", names), NameTable("relation", ["r"]))
    listed = ", ".join(f":{name}" for name in names)
    query = parse_query(f"SELECT ?x {{ :n0 :r ?x FILTER (?x IN ({listed})) }}", vocabulary)
    assert query == And((Project(Anchor(0), 0), Or(tuple(map(Anchor, range(200))))))
    assert tried["prefixed_name"] == 1  # of the relation
    assert tried["parseImpl"] < 20 * len(names)


@given(strategies.graphs(), patterns(3))
def test_every_pattern_we_accept_means_what_the_engine_says(graph, pattern):
    try:
        query = parse_query(f"SELECT ?x {{ {pattern} }}", strategies.plain_vocabulary())
    except (QuerySyntaxError, QueryTooLargeError):
        return  # not a tree, refused
    # The graph may have fewer names than the pattern; unknown ones then have no edges.
    edges, size = all_edges(graph), strategies.MAX_ENTITIES
    store = store_of(graph)
    prefix = "PREFIX : <urn:conekg:> "
    found = values_of_x(store, f"{prefix}SELECT ?x {{ {pattern} }}")
    answers = {int(name_of_iri(iri).removeprefix("e")) for iri in found}
    assert Oracle(edges, size).answer(query) == answers
