import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.query.iri import NAMESPACE, iri_of, name_of_iri, written_iri


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
    ],
)  # fmt: skip
def test_iris_of_names(name, iri, written):
    assert iri_of(name) == iri
    assert name_of_iri(iri) == name
    assert written_iri(name) == written


@given(strategies.names() | st.builds(str.__add__, st.just(NAMESPACE), strategies.names()))
def test_every_name_comes_back_from_its_iri(name):
    assert name_of_iri(iri_of(name)) == name
