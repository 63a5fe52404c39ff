"""A BodyRoute accepts and refuses the same bodies as a route of FastAPI."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from extras import need

need("fastapi", "httpx")

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Response
from fastapi.exceptions import RequestValidationError

from conekg.serving.body_route import BodyRoute, is_json, refuse_repeated
from conekg.serving.schemas import AskRequest, ErrorResponse


def send(app, method, path, **options) -> httpx.Response:
    """One request to an application, without a server."""

    async def main():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await client.request(method, path, **options)

    return asyncio.run(main())


@pytest.fixture(scope="module")
def both():
    """One endpoint behind both kinds of route; `/echo/own` is ours."""

    async def echo(request: AskRequest) -> Response:
        return Response(request.model_dump_json(), media_type="application/json")

    router = APIRouter(prefix="/echo", responses={422: {"model": ErrorResponse}})
    router.add_api_route("/own", echo, methods=["POST"], route_class_override=BodyRoute)
    router.add_api_route("/theirs", echo, methods=["POST"])
    app = FastAPI()
    app.include_router(router)
    return app


def post(app, body, content_type="application/json"):
    headers = {"Content-Type": content_type}
    return [
        send(app, "POST", f"/echo/{name}", content=body, headers=headers)
        for name in ("own", "theirs")
    ]


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": "France.borders"}',
        b'{"query": "a", "top_k": 3, "only": "known", "exclude": ["b", "c"], "union": "demorgan"}',
        '{"query": "Côte d’Ivoire", "keep_contradicted": true}'.encode(),
        b' {"query": "a", "top_k": 7} ',
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8"])
def test_bodies_are_parsed_as_fastapi_parses_them(both, body, kind):
    own, theirs = post(both, body, kind)
    assert own.status_code == theirs.status_code == 200
    assert own.json() == theirs.json()


@pytest.mark.parametrize(
    "body",
    [
        b'{"query": ""}',
        b'{"query": 3}',
        b'{"query": "a", "top_k": 0}',
        b'{"query": "a", "top_k": "7"}',
        b'{"query": "a", "unknown": 1}',
        b'{"query": "a", "exclude": [1]}',
        b'{"top_k": 3}',
    ],
)
def test_bad_fields_are_described_as_fastapi_describes_them(both, body):
    own, theirs = post(both, body)
    assert own.status_code == theirs.status_code == 422
    places = [[detail["loc"] for detail in each.json()["detail"]] for each in (own, theirs)]
    assert places[0] == places[1]
    assert own.json()["detail"][0]["msg"] == theirs.json()["detail"][0]["msg"]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[1, 2]", "application/json"),
        (b'{"query": "\xff"}', "application/json"),
        (b'{"query": "\\ud800"}', "application/json"),
        (b'{"query": "a"}', "text/plain"),
        (b'{"query": "a"}', ""),
    ],
)
def test_a_body_that_is_not_json_is_refused(both, body, content_type):
    headers = {"Content-Type": content_type}
    own = send(both, "POST", "/echo/own", content=body, headers=headers)
    assert own.status_code == 422
    assert own.json()["detail"][0]["loc"][0] == "body"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"query": "a", "query": "b"}', "query"),
        (b'{"query": "a", "top_k": 3, "exclude": [], "top_k": 3}', "top_k"),
        (b'{"query": "a", "qu\\u0065ry": "b"}', "query"),
    ],
)
def test_a_field_given_twice_is_refused(both, body, name):
    own, _ = post(both, body)
    assert own.status_code == 422
    (detail,) = own.json()["detail"]
    assert detail["loc"] == ["body", name]
    assert detail["msg"] == "given more than once"


def test_a_wrong_content_type_is_named(both):
    own, _ = post(both, b'{"query": "a"}', "text/plain")
    assert "was sent as 'text/plain'" in own.json()["detail"][0]["msg"]


class CountedName(str):
    """A name that counts how often it is compared with another."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_checking_many_parameters_takes_linear_time():
    """Comparing thousands of names in pairs would block the event loop for seconds."""
    names = [CountedName(f"a{number}") for number in range(300)]
    params = SimpleNamespace(multi_items=lambda: [(name, "") for name in names])
    refuse_repeated(SimpleNamespace(query_params=params))
    assert CountedName.compared < 3_000
    names.append(CountedName("a7"))
    with pytest.raises(RequestValidationError):
        refuse_repeated(SimpleNamespace(query_params=params))


def test_the_openapi_description_is_that_of_a_usual_route(both):
    paths = send(both, "GET", "/openapi.json").json()["paths"]
    own, theirs = (paths[f"/echo/{name}"]["post"] for name in ("own", "theirs"))
    assert own["requestBody"] == theirs["requestBody"]
    assert own["responses"] == theirs["responses"]


def test_which_content_types_count_as_json():
    assert is_json("Application/JSON ; charset=utf-8")
    assert is_json("application/problem+json")
    assert not is_json("application/jsonp")
    assert not is_json("text/json")
    assert not is_json("")
