"""Errors as responses: every class has a status and the one shape, and no path leaks."""

from __future__ import annotations

import json

from extras import need

need("fastapi")

import pytest

from conekg.errors import (
    CheckpointError,
    ConeKGError,
    DataError,
    QuerySyntaxError,
    QueryTooLargeError,
    StoreError,
    UnknownNameError,
)
from conekg.graph.vocabulary import NameTable
from conekg.serving.errors import (
    STATUS,
    MissingKeyError,
    ServerBusyError,
    describe,
    describe_invalid,
    describe_range,
    describe_status,
    error_response,
    kind_of,
    status_of,
)

SHAPE = {"status", "kind", "message", "hint", "name", "span", "suggestions", "about"}


def every_error_class():
    found, pending = [], [ConeKGError]
    while pending:
        each = pending.pop()
        found.append(each)
        pending.extend(each.__subclasses__())
    ours = ("conekg.errors", "conekg.serving.errors")
    return sorted({each for each in found if each.__module__ in ours}, key=lambda c: c.__name__)


def make(kind: type[ConeKGError]) -> ConeKGError:
    if issubclass(kind, UnknownNameError):
        return kind(
            "entity",
            "Frnce",
            suggestions=("France",),
            span=(0, 5),
            text="Frnce.borders",
            where_to_look="`conekg graph entities GRAPH --search TEXT` searches all 5,233",
        )
    if issubclass(kind, QuerySyntaxError):
        return kind("expected a relation", text="France.", span=(7, 7))
    if issubclass(kind, DataError):
        return kind("not a graph", path="/home/me/secret/graph.tsv", line=3)
    return kind("what went wrong")


@pytest.mark.parametrize("kind", every_error_class(), ids=lambda kind: kind.__name__)
def test_every_class_is_in_the_table_and_has_the_one_shape(kind):
    assert kind in STATUS, f"{kind.__name__} has no status of its own"
    response = error_response(describe(make(kind)), retry_after_s=4)
    assert response.status_code == STATUS[kind]
    body = json.loads(response.body)
    assert set(body) == {"error"}
    assert set(body["error"]) == SHAPE
    assert body["error"]["status"] == STATUS[kind]
    assert body["error"]["kind"].replace("_", "").isalpha()
    assert body["error"]["message"]
    assert "secret" not in response.body.decode()


def test_kinds_are_distinct():
    kinds = [kind_of(make(kind)) for kind in every_error_class()]
    assert len(set(kinds)) == len(kinds)
    assert kind_of(QueryTooLargeError("x")) == "query_too_large"
    assert kind_of(ConeKGError("x")) == "request"


def test_an_unlisted_class_has_the_status_of_its_ancestor():
    class OddStoreError(StoreError):
        pass

    assert status_of(OddStoreError("x")) == 500


def test_an_unknown_name_carries_place_and_suggestions():
    body = describe(make(UnknownNameError))
    assert (body.status, body.kind, body.name) == (404, "unknown_name", "Frnce")
    assert body.span == (0, 5)
    assert body.suggestions == ["France"]
    assert body.message == "unknown entity 'Frnce' at column 1"
    assert "^" not in body.message, "the marker line is for terminals"
    assert body.hint == "did you mean 'France'?", "commands are for terminals too"


def test_an_unknown_name_without_suggestions_gets_a_route_that_lists_names():
    with pytest.raises(UnknownNameError) as caught:
        NameTable("relation", ["borders"]).id_of("zzz")
    assert "conekg graph relations" in str(caught.value)
    assert describe(caught.value).hint == "GET /api/relations lists all"
    with pytest.raises(UnknownNameError) as caught:
        NameTable("entity", ["q1", "q2"], ["Paris", "Paris"]).id_of("Paris")
    assert "use the unique name" in (describe(caught.value).hint or "")


def test_the_hint_of_an_unknown_name_is_sent_to_the_client():
    for where in (None, "`conekg graph entities GRAPH --search TEXT` searches all 5,233"):
        error = UnknownNameError(
            "entity", "New", hint="this name needs quotes", where_to_look=where
        )
        assert describe(error).hint == "this name needs quotes"


def test_messages_of_internal_failures_go_to_the_log_only(caplog):
    body = describe(CheckpointError("no weights in /home/me/run"))
    assert body.status == 500
    assert "/home" not in body.message
    assert "/home/me/run" in caplog.text


def test_503_has_retry_after_and_401_has_www_authenticate():
    assert error_response(describe(ServerBusyError("busy")), 7).headers["retry-after"] == "7"
    assert "www-authenticate" in error_response(describe(MissingKeyError("key")), 1).headers


def test_invalid_requests_name_the_field():
    body = describe_invalid([{"loc": ("body", "top_k"), "msg": "must be positive"}])
    assert body.status == 422
    assert "body.top_k: must be positive" in body.message
    assert describe_invalid([]).message


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, ", not 0"), (True, ", not true"), ("7", ', not "7"'), ({"a": 1}, ""), ("a" * 99, "")],
)
def test_a_short_wrong_value_is_part_of_the_message(value, told):
    detail = {"type": "int_type", "loc": ("body", "top_k"), "msg": "a number", "input": value}
    assert describe_invalid([detail]).message == f"body.top_k: a number{told}"
    extra = {**detail, "type": "extra_forbidden"}  # the name is wrong, whatever the value
    assert describe_invalid([extra]).message == "body.top_k: no such field here"


def test_an_error_with_only_a_status_names_the_request():
    refused = describe_status(405, "GET", "/api/ask")
    assert refused.kind == "method_not_allowed"
    assert refused.message == "'/api/ask' does not support GET"
    missing = describe_status(404, "GET", "/api/aks")
    assert (missing.kind, missing.message) == ("not_found", "there is nothing at '/api/aks'")
    assert refused.hint == missing.hint == "GET /openapi.json describes every route"
    assert describe_status(418, "GET", "/").message == "I'm a Teapot"
    slashed = describe_status(404, "GET", "/health/")
    assert slashed.hint == "GET /openapi.json describes every route; none ends in a slash"


def test_a_bad_range_header_is_described_by_its_fault():
    beyond = describe_range(416, "bytes=9-", "/static/main.js")
    assert beyond.kind == "range_not_satisfiable"
    assert beyond.message == "the Range header 'bytes=9-' lies beyond the end of '/static/main.js'"
    unread = describe_range(400, "lines=1-2", "/")
    assert unread.kind == "bad_request"
    assert unread.message == "the Range header 'lines=1-2' is not valid"
    assert "bytes=0-99" in unread.hint
