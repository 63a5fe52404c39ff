"""The gate alone, around an application that records the requests that reach it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from extras import need

need("fastapi")

import pytest

from conekg.errors import QuerySyntaxError
from conekg.serving.gate import DOCS_POLICY, PAGE_POLICY, Gate
from conekg.serving.hosts import Hosts
from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics


class Around:
    """A gate around an application that records what it is given; `ask` sends a request."""

    def __init__(self, limits: Limits | None = None, **options: Any) -> None:
        self.metrics = Metrics()
        self.reached: list[tuple[str, bytes, int]] = []
        self.is_stopping = False
        self.answer: Callable[..., Any] = self.echo
        self.gate = Gate(self.app, limits or Limits(), self.metrics, **options)

    async def app(self, scope, receive, send) -> None:
        await self.answer(scope, receive, send)

    async def echo(self, scope, receive, send) -> None:
        body = (await receive())["body"]
        self.reached.append((scope["method"], body, self.metrics.in_flight))
        await self.reply(send, 200, b"application/json", b"{}")

    @staticmethod
    async def reply(send, status: int, kind: bytes, body: bytes, *headers: Any) -> None:
        told = [(b"content-type", kind), *headers]
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": body})

    def ask(
        self,
        path: str = "/api/ask",
        chunks: tuple[bytes, ...] = (b"",),
        method: str = "POST",
        headers: tuple[tuple[bytes, bytes], ...] = (),
        query: bytes = b"",
    ) -> tuple[int, dict[bytes, bytes], Any]:
        """(status, headers, body as JSON) of the reply."""
        coming = [
            {"type": "http.request", "body": chunk} | ({"more_body": True} if more else {})
            for more, chunk in zip(reversed(range(len(chunks))), chunks, strict=True)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return coming.pop(0) if coming else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query,
            "headers": list(headers),
            "app": SimpleNamespace(state=SimpleNamespace(is_stopping=self.is_stopping)),
        }
        asyncio.run(self.gate(scope, receive, send))
        start, *rest = sent
        content = b"".join(message.get("body", b"") for message in rest)
        return start["status"], dict(start["headers"]), json.loads(content) if content else None

    def counted(self) -> list[list[Any]]:
        return self.metrics.state()["requests"]


def test_a_body_reaches_the_application_in_one_piece_and_is_counted_while_it_does() -> None:
    around = Around()
    status, _, body = around.ask(chunks=(b"ab", b"", b"c"))
    assert (status, body) == (200, {})
    assert around.reached == [("POST", b"abc", 1)]
    assert around.metrics.in_flight == 0
    assert around.counted() == [["POST", "other", 200, 1]]
    counts, seconds = around.metrics.state()["seconds"]["other"]
    assert sum(counts) == 1
    assert 0 < seconds < 60


def test_requests_are_counted_by_the_pattern_of_their_route() -> None:
    around = Around(paths=frozenset({"/health"}))

    async def routed(scope, receive, send) -> None:
        scope["route"] = SimpleNamespace(path=patterns.pop(0))
        await around.echo(scope, receive, send)

    patterns, around.answer = ["/health/{of}", "", None], routed
    for _ in range(3):
        around.ask("/health", method="GET")
    assert around.counted() == [["GET", "/health/{of}", 200, 1], ["GET", "/health", 200, 2]]


def test_the_limit_of_a_body_is_exact_declared_or_counted() -> None:
    around = Around(Limits(body_bytes=5))
    declared = lambda size: ((b"content-length", size),)  # noqa: E731
    assert around.ask(chunks=(b"abc", b"de"), headers=declared(b"5"))[0] == 200
    assert len(around.reached) == 1
    for chunks, headers in (
        ((b"abc", b"def"), ()),
        ((b"",), declared(b"6")),
        ((b"",), declared(b"-1")),
        ((b"",), declared(b"5x")),
    ):
        status, _, body = around.ask(chunks=chunks, headers=headers)
        assert status == 413
        assert body["error"]["message"] == "the request body exceeds 5 bytes"
        assert body["error"]["hint"] == "ask for less at a time"
    assert len(around.reached) == 1


def test_a_compressed_body_is_refused_and_its_encoding_named() -> None:
    around = Around()
    for encoding in (b"gzip", b"br, gzip", b"x-unheard-of"):
        header = ((b"content-encoding", encoding),)
        status, headers, body = around.ask(chunks=(b"{", b"}"), headers=header)
        assert status == 415
        assert headers[b"accept-encoding"] == b"identity"
        assert body["error"]["kind"] == "encoded_body"
        assert repr(encoding.decode()) in body["error"]["message"]
    assert around.reached == []
    for encoding in (b"identity", b" Identity", b""):
        header = ((b"content-encoding", encoding),)
        assert around.ask(chunks=(b"{}",), headers=header)[0] == 200
    assert around.ask(chunks=(b"",), headers=((b"content-encoding", b"gzip"),))[0] == 200


def test_an_encoding_is_found_in_every_header_that_may_name_one() -> None:
    around = Around()
    content, transfer = b"content-encoding", b"transfer-encoding"
    for *headers, told in (
        ((content, b"gzip"), (content, b"identity"), "Content-Encoding 'gzip'"),
        ((content, b"identity"), (content, b"br"), "Content-Encoding 'br'"),
        ((transfer, b"gzip, chunked"), "Transfer-Encoding 'gzip, chunked'"),
        ((transfer, b"chunked"), (content, b"gzip"), "Content-Encoding 'gzip'"),
    ):
        status, _, body = around.ask(chunks=(b"{}",), headers=headers)
        assert (status, body["error"]["kind"]) == (415, "encoded_body")
        assert f"the body was sent with {told}, which is not" in body["error"]["message"]
        assert f"without {told.split()[0]}" in body["error"]["hint"]
    assert around.reached == []
    plain = ((transfer, b"Chunked"), (content, b"identity"), (b"accept-encoding", b"gzip"))
    assert around.ask(chunks=(b"{}",), headers=plain)[0] == 200


def test_the_limit_of_a_head_counts_the_address_and_every_header() -> None:
    headers = ((b"accept", b"*/*"), (b"x", b"yz"))
    size = len("/api/ask") + len(b"a=1") + (6 + 3 + 4) + (1 + 2 + 4)
    fits, not_quite = (Around(Limits(head_bytes=limit)) for limit in (size, size - 1))
    assert fits.ask(headers=headers, query=b"a=1")[0] == 200
    status, _, body = not_quite.ask(headers=headers, query=b"a=1")
    assert status == 431
    assert f"exceed {size - 1} bytes" in body["error"]["message"]
    assert not_quite.reached == []


def test_requests_at_once_are_bounded_and_only_those_of_the_api() -> None:
    around = Around(Limits(concurrent_requests=2, retry_after_s=7))
    around.metrics.in_flight = 1
    assert around.ask()[0] == 200
    around.metrics.in_flight = 2
    status, headers, body = around.ask()
    assert (status, headers[b"retry-after"]) == (503, b"7")
    assert body["error"]["message"] == "the server is working on 2 requests"
    assert body["error"]["hint"] == "try again in 7 s"
    assert around.ask("/health")[0] == 200
    assert [in_flight for *_, in_flight in around.reached] == [2, 2]
    assert around.metrics.in_flight == 2


@pytest.mark.parametrize("path", ["/api/ask", "/metrics", "/", "/static/page.js", "/apis"])
def test_only_the_api_and_the_metrics_need_the_key(path: str) -> None:
    around, locked = Around(api_key="s3same"), path in ("/api/ask", "/metrics")
    for headers, opens in (
        ((), False),
        (((b"x-api-key", b"s3same"),), True),
        (((b"x-api-key", b"s3sam"),), False),
        (((b"authorization", b"Bearer s3same"),), True),
        (((b"authorization", b"bearer  s3same "),), True),
        (((b"authorization", b"Basic s3same"),), False),
        (((b"x-api-key", b"other"), (b"authorization", b"Bearer s3same")), False),
    ):
        status, _, body = around.ask(path, headers=headers)
        assert status == (200 if opens or not locked else 401), headers
        if status == 401:
            sent = headers and headers[0][1] != b"Basic s3same"
            told = "the API key that was sent is not" if sent else "this server requires its"
            assert body["error"]["message"].startswith(told)
            assert "X-API-Key: KEY" in body["error"]["hint"]


def test_every_host_header_of_a_request_must_be_allowed() -> None:
    around = Around(hosts=Hosts(frozenset({"kg.example"})))
    own, foreign = (b"host", b"kg.example:80"), (b"host", b"evil.example")
    assert around.ask("/", headers=())[0] == 200
    assert around.ask("/", headers=(own,))[0] == 200
    for headers in ((foreign,), (own, foreign), (foreign, own)):
        status, _, body = around.ask("/", headers=headers)
        assert status == 421
        assert "the host 'evil.example'" in body["error"]["message"]
        assert "--allow-host evil.example`" in body["error"]["hint"]
    _, _, body = around.ask("/", headers=((b"host", b"a:b"),))
    assert "--allow-host NAME`" in body["error"]["hint"]
    assert Around().ask("/", headers=(foreign,))[0] == 200, "without hosts any will do"


def test_head_is_answered_as_get_is_and_counted_as_itself() -> None:
    around = Around(paths=frozenset({"/health"}))
    for method in ("HEAD", "GET", "BREW"):
        around.ask("/health", method=method)
    around.ask("/static/page.css", method="GET")
    around.ask("/nowhere", method="GET")
    assert [method for method, *_ in around.reached] == ["GET", "GET", "BREW", "GET", "GET"]
    assert around.counted() == [
        ["HEAD", "/health", 200, 1],
        ["GET", "/health", 200, 1],
        ["other", "/health", 200, 1],
        ["GET", "/static", 200, 1],
        ["GET", "other", 200, 1],
    ]


def test_exceptions_of_the_application_become_errors_of_the_one_shape(caplog) -> None:
    around = Around()

    async def refuse(*_: Any) -> None:
        raise QuerySyntaxError("expected a relation", text="France.", span=(7, 7))

    async def fail(*_: Any) -> None:
        raise ZeroDivisionError("a secret")

    for answer, status, kind in ((refuse, 400, "query_syntax"), (fail, 500, "internal")):
        around.answer = answer
        found, headers, body = around.ask()
        assert (found, body["error"]["kind"]) == (status, kind)
        assert b"content-security-policy" in headers
        assert "secret" not in str(body)
        assert around.metrics.in_flight == 0
    assert [record.getMessage() for record in caplog.records] == ["POST /api/ask failed"]
    assert around.counted() == [["POST", "other", 400, 1], ["POST", "other", 500, 1]]


def test_a_failure_after_the_reply_began_adds_nothing_to_it(caplog) -> None:
    around = Around()

    async def fail_late(scope, receive, send) -> None:
        await around.reply(send, 200, b"application/json", b"[1]")
        raise ZeroDivisionError

    around.answer = fail_late
    status, _, body = around.ask()
    assert (status, body) == (200, [1])
    assert len(caplog.records) == 1


@pytest.mark.parametrize("status", [400, 404, 416])
def test_errors_of_the_framework_get_the_one_shape(status: int) -> None:
    around = Around()

    async def word(scope, receive, send) -> None:
        length = (b"content-range", b"bytes */9")
        others = (length, (b"etag", b'"1"'), (b"x-type", b"application/json"))
        await around.reply(send, status, b"text/plain", b"no", *others)

    around.answer = word
    found, headers, body = around.ask("/static/page.js", method="GET")
    assert (found, body["error"]["status"]) == (status, status)
    assert headers[b"content-range"] == b"bytes */9"
    assert b"etag" not in headers
    ranged = ((b"range", b"bytes=99-"),)
    _, _, body = around.ask("/static/page.js", method="GET", headers=ranged)
    assert "bytes=99-" in body["error"]["message"]
    assert around.counted() == [["GET", "/static", status, 2]]


def test_responses_below_400_are_passed_on_whatever_their_type() -> None:
    around = Around()

    async def word(scope, receive, send) -> None:
        await around.reply(send, 399, b"text/plain", b"7")

    around.answer = word
    assert around.ask("/")[::2] == (399, 7)


@pytest.mark.parametrize(
    ("path", "cache", "policy"),
    [
        ("/", b"no-store", PAGE_POLICY),
        ("/api/ask", b"no-store", PAGE_POLICY),
        ("/static/page.js", b"no-cache", PAGE_POLICY),
        ("/docs", b"no-store", DOCS_POLICY),
        ("/static-offline-docs/a.js", b"no-cache", DOCS_POLICY),
    ],
)
def test_every_reply_has_security_and_cache_headers(path: str, cache: bytes, policy: str) -> None:
    _, headers, _ = Around().ask(path)
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"cache-control"] == cache
    assert headers[b"content-security-policy"] == policy.encode()
    assert b"connection" not in headers


def test_a_stopping_server_closes_connections_with_its_answers() -> None:
    around = Around()
    around.is_stopping = True
    assert around.ask("/")[1][b"connection"] == b"close"


def test_a_body_that_breaks_off_or_stalls_is_refused() -> None:
    around = Around(Limits(timeout_s=0.05))
    status, _, body = around.ask(chunks=())
    assert status == 499
    assert "hung up after 0 bytes" in body["error"]["message"]

    async def never() -> dict[str, Any]:
        await asyncio.sleep(60)
        raise AssertionError

    scope = {"type": "http", "headers": [], "path": "/api/ask", "query_string": b""}
    with pytest.raises(Exception, match=r"the request body did not arrive within 0\.05 s"):
        asyncio.run(around.gate._read_body(scope, never))
    assert around.reached == []


def test_lifespan_events_are_passed_on_and_not_counted() -> None:
    around, seen = Around(), []

    async def live(scope, receive, send) -> None:
        seen.append(scope["type"])

    around.answer = live
    asyncio.run(around.gate({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]
    assert around.counted() == []
