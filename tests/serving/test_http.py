"""The routes of a real server: what they answer, refuse, and never disclose."""

from __future__ import annotations

import gzip
import json
import socket
from dataclasses import asdict
from pathlib import Path

from extras import need

need("fastapi", "uvicorn", "httpx")

import httpx
import pytest

from conekg.answering.explain import sector_cones
from conekg.query.parse import parse_query
from conekg.query.tokens import quote
from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.symbolic.engine import answer as symbolic_answer


def error_of(response: httpx.Response, status: int, kind: str) -> dict:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["status"] == status
    assert error["kind"] == kind
    return error


def test_asking_gives_what_the_answerer_gives(served, answerer):
    response = served.post("/api/ask", query="France.borders", top_k=7)
    assert response.status_code == 200
    body = response.json()
    expected = answerer.ask("France.borders", top_k=7)
    assert [item["name"] for item in body["answers"]] == [item.name for item in expected.answers]
    assert [item["score"] for item in body["answers"]] == pytest.approx(
        [item.score for item in expected.answers], rel=1e-4
    )
    assert body["query"] == "France.borders"
    assert body["reading"] == expected.reading
    assert body["num_known"] == expected.num_known > 0


def test_only_known_answers_are_the_exact_answers(served, answerer):
    text = "Germany.borders & Italy.borders"
    query = parse_query(text, answerer.graph.vocabulary)
    exact = symbolic_answer(answerer.graph.adjacency("test"), query).tolist()
    names = {answerer.graph.vocabulary.entities.name(index) for index in exact}
    known = {"query": text, "top_k": 100, "only": "known", "known_graph": "test"}
    body = served.post("/api/ask", **known).json()
    assert {item["name"] for item in body["answers"]} == names
    assert all(item["known"] for item in body["answers"])
    one = next(iter(names))
    body = served.post("/api/ask", **known, exclude=[one]).json()
    assert {item["name"] for item in body["answers"]} == names - {one}


def test_nothing_follows_from_what_facts_leave_empty(served, answerer):
    """Poland is known to border Germany, and Spain is not: it could, if a fact were missing."""
    for query in ("(Poland & !Germany.borders).capital", "(France & Spain).borders"):
        body = served.post("/api/ask", query=query).json()
        assert body["answers"] == []
        assert body["num_contradicted"] == answerer.graph.num_entities
        assert body["estimated_count"] is body["estimated_count_factor"] is None
        for variable in served.post("/api/explain", query=query, answer="Bern").json()["variables"]:
            assert variable["candidates"] == []
    body = served.post("/api/ask", query="(Spain & !Germany.borders).capital").json()
    assert (len(body["answers"]), body["num_contradicted"]) == (10, 0)
    plain = served.post("/api/ask", query="Spain.borders").json()
    both = served.post("/api/ask", query="Spain.borders | (Poland & !Germany.borders)").json()
    assert both["answers"] == plain["answers"]


def test_an_explanation_has_a_path_of_facts_for_a_known_answer(served):
    body = served.post("/api/explain", query="France.borders.capital", answer="Bern").json()
    (witness,) = body["witnesses"]
    assert witness["facts_only"]
    assert witness["answer"]["name"] == "Bern"
    path = [(e["head"]["name"], e["relation"], e["tail"]["name"]) for e in witness["edges"]]
    assert path == [("France", "borders", "Switzerland"), ("Switzerland", "capital", "Bern")]
    assert [edge["kind"] for edge in witness["edges"]] == ["fact", "fact"]
    assert body["variables"]


def test_an_explanation_has_the_score_of_the_form_of_union_asked_for(served):
    asked = {"query": "(France.borders | Germany.borders).capital"}
    scores = {}
    for union in ("dnf", "demorgan"):
        body = served.post("/api/ask", **asked, union=union, top_k=1).json()
        (best,) = body["answers"]
        explained = served.post("/api/explain", **asked, union=union, answer=best["name"]).json()
        (witness,) = explained["witnesses"]
        assert witness["answer"]["score"] == pytest.approx(best["score"], rel=1e-5)
        scores[union] = best["score"]
    assert scores["dnf"] != pytest.approx(scores["demorgan"], rel=1e-3)


def test_cones_run_from_the_narrowest_to_the_widest(served, answerer):
    body = served.post("/api/cones", query="France.borders", answer="Spain", dimensions=5).json()
    assert body["dimensions"] == answerer.model.dim
    assert 0 <= body["inside"] <= answerer.model.dim
    assert len(body["cones"]) == 5
    halves = [cone["half_aperture"] for cone in body["cones"]]
    assert halves == sorted(halves)
    assert all(0 <= half <= 3.1416 for half in halves)
    everything = served.post(
        "/api/cones", query="France.borders", answer="Spain", dimensions=answerer.model.dim
    ).json()
    assert sum(cone["inside"] for cone in everything["cones"]) == body["inside"]
    widths = [cone["half_aperture"] for cone in everything["cones"]]
    assert widths == sorted(widths)
    assert (halves[0], halves[-1]) == (widths[0], widths[-1])
    assert {cone["dimension"] for cone in everything["cones"]} == set(range(answerer.model.dim))
    limit = Limits().dimensions
    refused = served.post(
        "/api/cones", query="France.borders", answer="Spain", dimensions=limit + 1
    )
    assert refused.status_code == 422
    assert f"{limit + 1}" in refused.json()["error"]["message"]


def test_parsing_text_and_the_tree_it_gives_agree(served):
    text = "France.borders & !(Germany | Italy).borders"
    by_text = served.post("/api/parse", query=text).json()
    by_tree = served.post("/api/parse", tree=by_text["tree"]).json()
    assert by_text == by_tree
    assert by_text["query"] == text
    assert by_text["branches"] >= 1
    assert by_text["tree"]["kind"] == "and"


def test_an_unknown_name_is_located_and_suggested(served):
    error = error_of(
        served.post("/api/parse", query="Germany.borders & Frnce.borders"), 404, "unknown_name"
    )
    assert error["span"] == [18, 23]
    assert "France" in error["suggestions"]
    error = error_of(served.post("/api/ask", query="France.border"), 404, "unknown_name")
    assert "borders" in error["suggestions"]
    error_of(served.post("/api/explain", query="France", answer="Sapin"), 404, "unknown_name")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ask", {"query": '"Jane Doe".born_in'}),
        ("ask", {"query": "Delft", "exclude": ["Jane Doe"]}),
        ("explain", {"query": "Delft", "answer": "Jane Doe"}),
        ("parse", {"tree": {"kind": "entity", "name": "Jane Doe"}}),
        ("parse", {"query": "?x: born_in('Jane Doe', ?x)"}),
    ],
)
def test_entities_of_one_label_are_told_apart(start_server, namesakes, path, body):
    with start_server(namesakes) as own:
        error = error_of(own.post(f"/api/{path}", **body), 404, "unknown_name")
    assert (error["suggestions"], error["about"]) == (
        ["Q1", "Q2"],
        ["born_in: Cork", "born_in: Delft"],
    )
    assert error["hint"].startswith("did you mean 'Q1' (born_in: Cork) or 'Q2' (born_in: Delft)?")


@pytest.mark.parametrize(
    ("query", "remedy"),
    [
        ("New Zealand.borders", 'this name needs quotes: "New Zealand"'),
        ("borders", "it is the name of a relation, and here an entity is needed"),
        ("France.Spain", "it is the name of an entity, and here a relation is needed"),
        ("France.zzzz", "GET /api/relations lists all"),
    ],
)
def test_the_hint_for_an_unknown_name_says_what_to_do(served, query, remedy):
    error = error_of(served.post("/api/ask", query=query), 404, "unknown_name")
    assert error["hint"] == remedy


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("ask", {"query": "France", "exclude": ["Spain", "Frnce"]}, "exclude.1"),
        ("explain", {"query": "France", "answer": "Frnce"}, "answer"),
        ("cones", {"query": "France", "answer": "Frnce"}, "answer"),
        ("parse", {"tree": {"kind": "entity", "name": "Frnce"}}, "tree.name"),
    ],
)
def test_an_unknown_name_beside_the_query_text_is_named_by_its_place(served, path, body, place):
    error = error_of(served.post(f"/api/{path}", **body), 404, "unknown_name")
    assert error["message"] == f"{place}: unknown entity 'Frnce'"
    assert error["hint"] == "did you mean 'France'?"
    assert (error["name"], error["suggestions"]) == ("Frnce", ["France"])


def test_syntax_errors_are_located(served):
    error = error_of(served.post("/api/ask", query="France.borders &"), 400, "query_syntax")
    assert error["span"] == [16, 16]


def test_completion_finds_names_and_gives_them_as_written_in_queries(served):
    body = served.get("/api/entities", prefix="new zea").json()
    assert body["entities"][0] == {
        "name": "New Zealand",
        "label": "New Zealand",
        "text": '"New Zealand"',
    }
    assert body["total"] > 1000
    assert len(served.get("/api/entities", limit=3).json()["entities"]) == 3


def test_relations_come_in_both_directions(served, answerer):
    relations = served.get("/api/relations").json()["relations"]
    assert [each["name"] for each in relations] == list(answerer.graph.vocabulary.relations)
    assert all(each["inverse"] == f"^{each['name']}" for each in relations)


def test_neighbors_are_the_facts_of_the_graph(served, answerer):
    body = served.get("/api/graph/neighbors", entity="France", limit=2).json()
    groups = {group["relation"]: group for group in body["groups"]}
    query = parse_query("France.borders", answerer.graph.vocabulary)
    exact = symbolic_answer(answerer.graph.adjacency("train"), query)
    assert groups["borders"]["count"] == len(exact)
    assert len(groups["borders"]["entities"]) == 2
    error_of(served.get("/api/graph/neighbors", entity="Nowhere"), 404, "unknown_name")


def test_about_health_metrics_and_page(served):
    about = served.get("/api/about").json()
    assert about["graph"] == "geography"
    assert len(about["examples"]) >= 4
    assert about["limits"] == asdict(Limits())
    assert type(about["limits"]["top_k"]) is int, "a number of answers is a whole number"
    assert served.get("/health").json() == {"status": "ok"}
    assert served.client.head("/health").status_code == 200
    served.post("/api/ask", query="France.borders")
    metrics = served.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'conekg_requests_total{method="POST",route="/api/ask",status="200"}' in metrics.text
    assert "<ck-question>" in served.get("/").text


def test_every_example_can_be_asked(served):
    examples = served.get("/api/about").json()["examples"]
    assert examples
    for example in examples:
        response = served.post("/api/ask", query=example["query"])
        assert response.status_code == 200
        assert response.json()["reading"] == example["reading"]


def test_docs_work_without_the_internet(served):
    page = served.get("/docs").text
    assert "https://" not in page.replace('"https://json-schema.org', "")
    assert served.get("/openapi.json").json()["info"]["title"] == "conekg"


def test_security_headers_are_on_every_response(served):
    for path in ("/", "/api/about", "/nowhere", "/static/main.js", "/health"):
        headers = served.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
    assert "access-control-allow-origin" not in served.get("/api/about").headers


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/static-offline-docs/swagger-ui.css"])
@pytest.mark.parametrize(
    ("given", "status", "kind"),
    [
        ("bytes=99999999-", 416, "range_not_satisfiable"),
        ("bytes=a-b", 400, "bad_request"),
        ("lines=1-2", 400, "bad_request"),
        ("nonsense", 400, "bad_request"),
    ],
)
def test_bad_ranges_of_files_have_the_one_shape(served, path, given, status, kind):
    whole = served.get(path)
    assert whole.status_code == 200
    response = served.client.get(path, headers={"range": given})
    error = error_of(response, status, kind)
    assert repr(given) in error["message"]
    assert "bytes=0-99" in error["hint"]
    length = response.headers.get("content-range")
    assert length == (f"bytes */{len(whole.content)}" if status == 416 else None)
    assert response.headers["x-content-type-options"] == "nosniff"
    part = served.client.get(path, headers={"range": "bytes=0-9"})
    assert (part.status_code, part.content) == (206, whole.content[:10])


@pytest.mark.parametrize(
    "path", ["/", "/static/main.js", "/docs", "/openapi.json", "/health", "/api/about"]
)
def test_a_head_is_the_answer_without_its_body(served, path):
    asked, headed = served.get(path), served.client.head(path)
    assert (headed.status_code, headed.content) == (200, b"")
    fixed = ("content-length", "content-type", "etag", "content-security-policy")
    assert [headed.headers.get(name) for name in fixed] == [
        asked.headers.get(name) for name in fixed
    ]


def test_the_allow_header_of_a_get_route_includes_head(served):
    served.client.head("/health")
    counted = 'conekg_requests_total{method="HEAD",route="/health",status="200"}'
    assert counted in served.get("/metrics").text
    assert served.client.head("/api/ask").status_code == 405
    assert served.client.get("/api/ask").headers["allow"] == "POST"
    assert served.client.delete("/api/about").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/health/", "/api/about/", "/docs/", "/static"])
def test_no_address_is_redirected(served, path):
    """Behind a proxy, the server does not know the name and scheme that a redirect would need."""
    error_of(served.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/static/../http.py", 404, "not_found"),
        ("GET", "/static/%2e%2e/http.py", 404, "not_found"),
        ("GET", "/api/ask", 405, "method_not_allowed"),
        ("DELETE", "/api/relations", 405, "method_not_allowed"),
        ("GET", "/api/entities?limit=0", 422, "invalid_request"),
        ("GET", "/api/entities?limit=1000000", 422, "config"),
        ("GET", "/api/entities?limt=3", 422, "invalid_request"),
        ("GET", "/api/graph/neighbors?entity=France&split=test", 422, "invalid_request"),
        ("GET", "/api/graph/neighbors", 422, "invalid_request"),
        ("GET", "/api/graph/neighbors?entity=France&graph=none", 422, "invalid_request"),
    ],
)
def test_refusals_have_the_one_shape(served, method, path, status, kind):
    error_of(served.client.request(method, path), status, kind)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 422, "invalid_request"),
        ({"query": ""}, 422, "invalid_request"),
        ({"query": "France", "top_k": 0}, 422, "invalid_request"),
        ({"query": "France", "topk": 3}, 422, "invalid_request"),
        ({"query": "France", "top_k": "3"}, 422, "invalid_request"),
        ({"query": "France", "top_k": True}, 422, "invalid_request"),
        ({"query": "France", "top_k": 1001}, 422, "config"),
        ({"query": "France", "exclude": ["France"] * 1001}, 422, "config"),
        ({"query": "France", "exclude": ["Frnce"]}, 404, "unknown_name"),
        ({"query": "France" + ".borders" * 24}, 413, "query_too_large"),
        ({"query": "France" * 400}, 413, "query_too_large"),
        (
            {"query": " & ".join(f"(France | Spain{'.borders' * hops})" for hops in range(5))},
            413,
            "query_too_large",
        ),
        ({"query": " | ".join(["France"] * 130)}, 413, "query_too_large"),
        ({"query": "France", "exclude": ["x" * 60_000, "y" * 10_000]}, 413, "body_too_large"),
    ],
)
def test_limits_of_a_question(served, body, status, kind):
    error_of(served.post("/api/ask", **body), status, kind)


def test_defaults_are_lowered_to_the_servers_limits(start_server, answerer):
    """A default above a limit of the server is lowered to the limit rather than refused."""
    asked = {"query": "France.borders", "answer": "Spain"}
    with start_server(answerer, Limits(top_k=2, completions=3, dimensions=4)) as small:
        cases = [
            (lambda **own: small.post("/api/ask", query="France.borders", **own), "top_k", 2),
            (lambda **own: small.post("/api/cones", **asked, **own), "dimensions", 4),
            (lambda **own: small.get("/api/entities", prefix="s", **own), "limit", 3),
            (lambda **own: small.get("/api/graph/neighbors", entity="France", **own), "limit", 3),
        ]
        for send, name, limit in cases:
            body = send().json()
            (found,) = [body[key] for key in ("answers", "cones", "entities") if key in body] or [
                max((group["entities"] for group in body["groups"]), key=len)
            ]
            assert len(found) == limit
            refused = error_of(send(**{name: limit + 1}), 422, "config")
            assert (
                refused["message"] == f"{name} is {limit + 1}; this server allows {limit} at most"
            )


@pytest.mark.parametrize("path", ["ask", "explain", "cones", "parse", "relations", "about"])
def test_parameters_that_a_route_does_not_have_are_refused(served, path):
    address = f"/api/{path}?top_k=3"
    body = {"query": "France"} | ({"answer": "France"} if path in ("explain", "cones") else {})
    get = path in ("relations", "about")
    response = served.client.get(address) if get else served.client.post(address, json=body)
    assert response.status_code == 422
    assert response.json()["error"]["message"] == "query.top_k: no such parameter here"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("entities?prefix=a&prefix=b", "prefix"),
        ("entities?prefix=a&limit=3&limit=3", "limit"),
        ("graph/neighbors?entity=France&entity=Spain", "entity"),
    ],
)
def test_parameters_given_twice_are_refused(served, address, name):
    response = served.client.get(f"/api/{address}")
    error = error_of(response, 422, "invalid_request")
    assert error["message"] == f"query.{name}: given more than once"


def test_fields_given_twice_are_refused(served):
    """At any depth, as only the last one would be used otherwise."""
    sent = {"content-type": "application/json"}
    tree = b'{"tree": {"kind": "all", "kind": "all"}}'
    for path, body, name in (
        ("ask", b'{"query": "France", "query": "Spain"}', "query"),
        ("parse", tree, "kind"),
    ):
        response = served.client.post(f"/api/{path}", content=body, headers=sent)
        error = error_of(response, 422, "invalid_request")
        assert error["message"] == f"body.{name}: given more than once"


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("ask", {"query": "a" * 2001}, "query"),
        ("ask", {"query": "France", "exclude": ["Spain", "a" * 2001]}, "exclude.1"),
        ("explain", {"query": "France", "answer": "a" * 2001}, "answer"),
    ],
)
def test_long_texts_are_named_by_their_place(served, path, body, place):
    error = error_of(served.post(f"/api/{path}", **body), 413, "query_too_large")
    assert error["message"] == f"{place} has 2001 characters; this server allows 2000"


def test_a_body_that_breaks_off_is_not_answered(start_server, answerer):
    with start_server(answerer) as own:
        host, port = own.url.removeprefix("http://").split(":")
        body = b'{"query": "France"}'
        head = b"POST /api/ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        with socket.create_connection((host, int(port)), timeout=30) as client:
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            client.sendall(b"%x\r\n%s\r\n" % (len(body), body))
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1000) == b""
        counted = 'conekg_requests_total{method="POST",route="/api/ask",status="%d"} 1\n'
        for _ in range(500):
            text = own.get("/metrics").text
            if "/api/ask" in text:
                break
        assert counted % 499 in text
        assert counted % 200 not in text


def test_malformed_bodies_are_refused(served):
    url = "/api/ask"
    sent = {"content-type": "application/json"}
    error_of(served.client.post(url, content=b"{", headers=sent), 422, "invalid_request")
    nested = b'{"query":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    response = served.client.post(url, content=nested, headers=sent)
    assert response.status_code in (400, 422)
    assert set(response.json()) == {"error"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("parse", r'{"tree": {"kind": "entity", "name": "\ud800"}}'),
        ("parse", r'{"tree": {"kind": "all", "\ud800": 1}}'),
        ("parse", r'{"query": "\ud800"}'),
        ("ask", r'{"query": "France", "exclude": ["\udcff"]}'),
        ("explain", r'{"query": "France", "answer": "\ud800"}'),
        ("cones", r'{"query": "France", "answer": "France", "\ud800": 1}'),
    ],
)
def test_unpaired_surrogates_are_refused(served, path, body):
    sent = {"content-type": "application/json"}
    response = served.client.post(f"/api/{path}", content=body, headers=sent)
    error_of(response, 422, "invalid_request")


def test_very_deep_trees_are_refused(served):
    tree: dict = {"kind": "entity", "name": "France"}
    for _ in range(150):
        tree = {"kind": "not", "operands": [tree]}
    response = served.post("/api/parse", tree=tree)
    assert response.status_code in (413, 422)
    error_of(served.post("/api/parse"), 422, "query")
    error_of(served.post("/api/parse", query="France", tree={"kind": "all"}), 422, "query")


def test_a_tree_in_json_may_have_a_hundred_levels(start_server, answerer):
    """However high the limit is: JSON is read 200 levels deep."""
    with start_server(answerer, Limits(query_depth=128)) as served:
        for depth, status in ((100, 200), (101, 422)):
            tree = {"kind": "all"}
            for _ in range(depth - 1):
                tree = {"kind": "not", "operands": [tree]}
            assert served.post("/api/parse", tree=tree).status_code == status


@pytest.mark.parametrize("path", ["ask", "explain", "cones", "parse"])
def test_bodies_nested_too_deeply_to_parse_are_refused(served, path):
    deep = '{"kind": "not", "operands": [' * 500 + '{"kind": "all"}' + "]}" * 500
    response = served.client.post(
        f"/api/{path}",
        content=f'{{"tree": {deep}}}',
        headers={"content-type": "application/json"},
    )
    error = error_of(response, 422, "invalid_request")
    assert "recursion limit exceeded at line 1 column" in error["message"]
    assert error["hint"] == "GET /openapi.json describes every request"


def test_names_of_nodes_that_take_none_are_refused(served):
    tree = {"kind": "not", "operands": [{"kind": "all", "name": "France"}]}
    error = error_of(served.post("/api/parse", tree=tree), 422, "query")
    assert error["message"].startswith("tree.operands.0.name: ")


def test_long_names_in_a_tree_are_refused_as_long_texts_are(served):
    one = {"kind": "entity", "name": "x" * 2001}
    error = error_of(served.post("/api/parse", tree=one), 413, "query_too_large")
    assert error["message"].startswith("tree.name: ")
    many = {"kind": "or", "operands": [{"kind": "entity", "name": "x" * 501}] * 4}
    error = error_of(served.post("/api/parse", tree=many), 413, "query_too_large")
    assert error["message"].startswith("tree.operands.3.name: ")
    assert "2004 characters; this server allows 2000" in error["message"]


def test_a_query_of_many_branches_is_answered_by_de_morgan(served, answerer):
    names = map(answerer.graph.vocabulary.entities.name, range(17))
    query = " | ".join(f"{quote(name)}.borders" for name in names)
    parsed = served.post("/api/parse", query=query)
    assert parsed.status_code == 200
    assert parsed.json()["branches"] == 17
    assert served.post("/api/parse", tree=parsed.json()["tree"]).json() == parsed.json()
    for path in ("explain", "ask", "cones"):
        answer = {} if path == "ask" else {"answer": "Spain"}
        error = error_of(served.post(f"/api/{path}", query=query, **answer), 413, "query_too_large")
        assert "17 union-free branches; this server allows 16" in error["message"]
        assert "demorgan" in error["hint"]
        by_law = served.post(f"/api/{path}", query=query, union="demorgan", **answer)
        assert by_law.status_code == 200


def test_cones_are_those_of_the_union_form_asked_for(served, answerer):
    query = "France.borders | Spain.borders"
    asked = {"query": query, "answer": "Portugal", "dimensions": 5}
    by_branch, by_law = (
        served.post("/api/cones", **asked, union=union).json() for union in ("dnf", "demorgan")
    )
    assert served.post("/api/cones", **asked).json() == by_branch
    for body, union in ((by_branch, "dnf"), (by_law, "demorgan")):
        tree = parse_query(query, answerer.graph.vocabulary)
        portugal = answerer.graph.vocabulary.entities.id_of("Portugal")
        cones = sector_cones(
            answerer, tree, portugal, dimensions=range(answerer.model.dim), union=union
        )
        own = {cone.dimension: cone for cone in cones}
        for cone in body["cones"]:
            assert cone["half_aperture"] == pytest.approx(own[cone["dimension"]].half_aperture)
            assert cone["axis"] == pytest.approx(own[cone["dimension"]].axis)
    assert by_branch["cones"] != by_law["cones"]


def test_cones_are_those_of_the_facts_asked_for(served):
    """That Austria borders Germany is a validation fact, which leaves the second part empty."""
    query = "Spain.borders | (Austria & !Germany.borders).capital"

    def axes(query, known):
        asked = {"answer": "Bern", "dimensions": 16, "known_graph": known, "union": "demorgan"}
        cones = served.post("/api/cones", query=query, **asked).json()["cones"]
        return {cone["dimension"]: cone["axis"] for cone in cones}

    plain = pytest.approx(axes("Spain.borders", "train"), abs=1e-4)
    assert axes(query, "train") != plain
    assert axes(query, "valid") == plain


def test_a_compressed_body_is_refused_and_the_description_says_so(served):
    body = gzip.compress(b'{"query": "France.borders"}')
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    response = served.client.post("/api/ask", content=body, headers=headers)
    error = error_of(response, 415, "encoded_body")
    assert "'gzip'" in error["message"]
    assert "without Content-Encoding" in error["hint"]
    described = served.get("/openapi.json").json()["paths"]["/api/ask"]["post"]["responses"]
    assert "415" in described


def test_chunked_bodies_are_bounded_too(served):
    def chunks():
        yield b'{"query": "'
        for _ in range(100):
            yield b"x" * 1000
        yield b'"}'

    response = served.client.post("/api/ask", content=chunks())
    error_of(response, 413, "body_too_large")


def test_responses_contain_no_path_of_this_machine(served):
    texts = [
        served.get("/api/about").text,
        served.get("/openapi.json").text,
        served.get("/metrics").text,
        served.get("/static/nothing.js").text,
        served.post("/api/ask", query="Frnce").text,
    ]
    home = str(Path(__file__).resolve().parents[2])
    assert not any(home in text or "/site-packages" in text for text in texts)


def test_the_api_key_guards_the_api_and_nothing_else(start_server, answerer):
    with start_server(answerer, api_key="s3same") as served:
        for path in ("/api/about", "/metrics"):
            error = error_of(served.get(path), 401, "missing_key")
            assert "s3same" not in json.dumps(error)
        error_of(served.post("/api/ask", query="France"), 401, "missing_key")
        for headers in (
            {"X-API-Key": "wrong"},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Basic s3same"},
        ):
            response = served.client.get("/api/about", headers=headers)
            error_of(response, 401, "missing_key")
        for headers in ({"X-API-Key": "s3same"}, {"Authorization": "Bearer s3same"}):
            assert served.client.get("/api/about", headers=headers).status_code == 200
        assert served.get("/health").status_code == 200
        assert served.get("/").status_code == 200
        assert "HTTPBearer" in served.get("/openapi.json").text


def test_without_a_key_the_api_description_mentions_none(answerer):
    assert "securitySchemes" not in create_app(answerer).openapi()["components"]


def test_answers_are_never_cached_and_the_page_is_revalidated(served):
    kept = {
        path: served.get(path).headers["cache-control"] for path in ("/", "/api/about", "/health")
    }
    assert set(kept.values()) == {"no-store"}
    assert served.get("/static/main.js").headers["cache-control"] == "no-cache"
