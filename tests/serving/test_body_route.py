"""A route that reads its body itself accepts and refuses as the framework's own do."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Response

from conekg.serving.body_route import BodyRoute, is_json
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
def test_bodies_are_read_alike(both, body, kind):
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
def test_bad_fields_are_named_alike(both, body):
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
def test_what_is_no_json_is_refused(both, body, content_type):
    headers = {"Content-Type": content_type}
    own = send(both, "POST", "/echo/own", content=body, headers=headers)
    assert own.status_code == 422
    assert own.json()["detail"][0]["loc"][0] == "body"


def test_both_are_described_alike(both):
    paths = send(both, "GET", "/openapi.json").json()["paths"]
    own, theirs = (paths[f"/echo/{name}"]["post"] for name in ("own", "theirs"))
    assert own["requestBody"] == theirs["requestBody"]
    assert own["responses"] == theirs["responses"]


def test_json_by_any_name():
    assert is_json("Application/JSON ; charset=utf-8")
    assert is_json("application/problem+json")
    assert not is_json("application/jsonp")
    assert not is_json("text/json")
    assert not is_json("")
