from pathlib import Path

from extras import need

need("rdflib", "pyoxigraph")

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.iri import NAMESPACE, SCHEMES, iri_of, name_of_iri, written_iri
from conekg.query.parse import parse_query
from conekg.query.render_sparql import render_sparql
from conekg.query.tree import Anchor, Project


@pytest.mark.parametrize(
    ("name", "iri", "written"),
    [
        ("France", "urn:conekg:France", ":France"),
        ("United States", "urn:conekg:United%20States", ":United%20States"),
        ("/m/02x", "urn:conekg:%2Fm%2F02x", ":%2Fm%2F02x"),
        ("http://example.org/a#b", "http://example.org/a#b", "<http://example.org/a#b>"),
        ("urn:isbn:1", "urn:isbn:1", "<urn:isbn:1>"),
        ("a.b", "urn:conekg:a.b", "<urn:conekg:a.b>"),
        ("http://not an iri", "urn:conekg:http%3A%2F%2Fnot%20an%20iri",
         ":http%3A%2F%2Fnot%20an%20iri"),
        ("urn:conekg:x", "urn:conekg:urn%3Aconekg%3Ax", ":urn%3Aconekg%3Ax"),
        # Other schemes, without `//`.
        ("mailto:ada@x.org", "mailto:ada@x.org", "<mailto:ada@x.org>"),
        ("tag:x.org,2024:a", "tag:x.org,2024:a", "<tag:x.org,2024:a>"),
        ("doi:10.1000/182", "doi:10.1000/182", "<doi:10.1000/182>"),
        ("tel:+33-1", "tel:+33-1", "<tel:+33-1>"),
        ("ftp://x.org/%20?q#f", "ftp://x.org/%20?q#f", "<ftp://x.org/%20?q#f>"),
        ("HTTP://x.org:80/日本", "HTTP://x.org:80/日本", "<HTTP://x.org:80/日本>"),
        # Names that merely begin with a word and a colon.
        ("a:b", "urn:conekg:a%3Ab", ":a%3Ab"),
        ("concept:team", "urn:conekg:concept%3Ateam", ":concept%3Ateam"),
        ("mailto:", "urn:conekg:mailto%3A", ":mailto%3A"),
        # Not IRIs, although they begin like one.
        ("film:x y", "urn:conekg:film%3Ax%20y", ":film%3Ax%20y"),
        ("tag:x y", "urn:conekg:tag%3Ax%20y", ":tag%3Ax%20y"),
        ("http://x/a[1]", "urn:conekg:http%3A%2F%2Fx%2Fa%5B1%5D", ":http%3A%2F%2Fx%2Fa%5B1%5D"),
        ("urn:100%", "urn:conekg:urn%3A100%25", ":urn%3A100%25"),
        ("urn:a#b#c", "urn:conekg:urn%3Aa%23b%23c", ":urn%3Aa%23b%23c"),
    ],
)  # fmt: skip
def test_iris_of_names(name, iri, written):
    assert iri_of(name) == iri
    assert name_of_iri(iri) == name
    assert written_iri(name) == written


def almost_iris():
    """Names that begin like IRIs, followed by any text or by characters that IRIs may contain."""
    schemes = [f"{scheme}:" for scheme in (*SCHEMES, "film", "a")]
    starts = st.sampled_from([NAMESPACE, "http://", "ftp://", "mailto://", *schemes])
    return st.builds(
        str.__add__, starts, strategies.names() | st.text("a1/:?#@%2f[]é😀-", max_size=9)
    )


@given(strategies.names() | almost_iris())
def test_every_name_comes_back_from_its_iri(name):
    assert name_of_iri(iri_of(name)) == name


@given(strategies.names() | almost_iris())
def test_every_name_is_an_iri_that_engines_take(name):
    assert pyoxigraph.NamedNode(iri_of(name)).value == iri_of(name)


@given(almost_iris(), almost_iris())
def test_every_name_comes_back_from_sparql(entity, relation):
    vocabulary = Vocabulary(NameTable("entity", [entity]), NameTable("relation", [relation]))
    query = Project(Anchor(0), 0)
    assert parse_query(render_sparql(query, vocabulary), vocabulary) == query


def test_the_documentation_lists_the_schemes():
    page = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
    assert ", ".join(f"`{scheme}:`" for scheme in SCHEMES[:-1]) + f" or `{SCHEMES[-1]}:`" in page
