"""The gate every request passes: host name, key, sizes, concurrency, security headers, metrics.

It is also the one place where an exception, or an error response that the framework made itself,
becomes a response of the one error shape. It is plain ASGI because a middleware class of the
framework would take longer per request than the request's share of a scoring batch.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from functools import lru_cache
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conekg.errors import ConeKGError
from conekg.serving.connection import too_large
from conekg.serving.errors import (
    INTERNAL_MESSAGE,
    BodyTooLargeError,
    ClientGoneError,
    EncodedBodyError,
    HostNotAllowedError,
    MissingKeyError,
    ServerBusyError,
    SlowRequestError,
    describe,
    describe_range,
    describe_status,
    error_response,
)
from conekg.serving.hang_up import while_connected
from conekg.serving.hosts import Hosts, name_in
from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics
from conekg.serving.schemas import ErrorBody

log = logging.getLogger(__name__)

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
DOCS_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DOCS_PATHS = ("/docs", "/redoc", "/static-offline-docs")


class Gate:
    """An ASGI application around another one; see the module's docstring."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        api_key: str | None = None,
        paths: frozenset[str] = frozenset(),
        hosts: Hosts | None = None,
    ) -> None:
        """`paths` are those of all routes; metrics count requests by them.

        Without `hosts` the server answers to any host name, without `api_key` to any client.
        """
        self._app = app
        self._paths = paths
        self._limits = limits
        self._metrics = metrics
        self._api_key = None if api_key is None else api_key.encode()
        # Clients send the same few Host headers. Checking one takes 13 us, a cache hit 0.5 us.
        self._allows = None if hosts is None else lru_cache(maxsize=64)(hosts.allow)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the application's start and stop (a lifespan scope)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":  # handled as GET; uvicorn leaves the body out
            scope = {**scope, "method": "GET"}
        guarded = _GuardedSend(scope, send)
        body = None
        try:
            await self._pass(scope, receive, guarded)
        except ConeKGError as error:
            body = describe(error)
        except Exception:
            log.exception("%s %s failed", method, scope["path"])
            body = ErrorBody(status=500, kind="internal", message=INTERNAL_MESSAGE)
        kept_headers: list[tuple[bytes, bytes]] = []
        if (withheld := guarded.take_withheld()) is not None:
            body = _describe_framework_error(withheld, scope)
            kept_headers = _content_range_of(withheld)
        if body is not None and not guarded.status:
            response = error_response(body, self._limits.retry_after_s)
            response.raw_headers += kept_headers
            await response(scope, receive, guarded)
        self._metrics.observe_request(
            method if method in _METHODS else "other",
            self._route_of(scope),
            guarded.status,
            time.perf_counter() - start,
        )

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check_head(scope)
        self._check_host(scope)
        is_api = scope["path"].startswith("/api/")
        if is_api or scope["path"] == "/metrics":
            self._check_key(scope)
        if not is_api:
            await self._app(scope, receive, send)
            return
        # Read the body before the request counts as being handled: the client may send it slowly.
        body = await self._read_body(scope, receive)
        if body:
            _refuse_encoded(scope)
        if self._metrics.in_flight >= self._limits.concurrent_requests:
            raise ServerBusyError(
                f"the server is working on {self._metrics.in_flight} requests",
                hint=f"try again in {self._limits.retry_after_s} s",
            )
        self._metrics.in_flight += 1
        try:
            async with while_connected(receive):
                await self._app(scope, _replay(body, receive), send)
        finally:
            self._metrics.in_flight -= 1

    def _route_of(self, scope: Scope) -> str:
        """The path pattern of the matched route; few different ones, as labels of metrics."""
        pattern = getattr(scope.get("route"), "path", None)
        if isinstance(pattern, str) and pattern:
            return pattern
        if scope["path"] in self._paths:
            return str(scope["path"])
        return "/static" if scope["path"].startswith("/static/") else "other"

    def _check_head(self, scope: Scope) -> None:
        """Refuse a head above the limit; `Connection` refuses one that arrives in several reads."""
        size = len(scope["path"]) + len(scope["query_string"])
        for name, value in scope["headers"]:
            size += len(name) + len(value) + 4  # the colon, the space and the end of the line
        if size > self._limits.head_bytes:
            raise too_large(self._limits)

    def _check_host(self, scope: Scope) -> None:
        """Check the Host header, on every route.

        A request without one is allowed: browsers always send it, and the check is against
        websites that use a browser to reach this server.
        """
        if self._allows is None:
            return
        for name, value in scope["headers"]:
            if name == b"host" and not self._allows(header := value.decode("latin-1")):
                raise HostNotAllowedError(
                    f"this server does not answer to the host {header!r}",
                    hint="use localhost or a host name that the server was started with; "
                    f"`conekg serve --allow-host {name_in(header) or 'NAME'}` allows it too",
                )

    def _check_key(self, scope: Scope) -> None:
        if self._api_key is None:
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-api-key")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if given is None and scheme.lower() == b"bearer":
            given = token.strip()
        if given is None or not hmac.compare_digest(given, self._api_key):
            raise MissingKeyError(
                "this server requires its API key"
                if given is None
                else "the API key that was sent is not this server's",
                hint="send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
            )

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body; one that is too large or too slow is refused before it is parsed."""
        limit = self._limits.body_bytes
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        beyond = BodyTooLargeError(
            f"the request body exceeds {limit} bytes", hint="ask for less at a time"
        )
        if not declared.isdigit() or int(declared) > limit:
            raise beyond
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError(f"the client hung up after {size} bytes of the body")
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > limit:
                        raise beyond
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError:
            raise SlowRequestError(
                f"the request body did not arrive within {self._limits.timeout_s:g} s"
            ) from None


class _GuardedSend:
    """The channel of a response: adds headers, and withholds an error made by the framework."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._withheld: Message | None = None
        self.status = 0  # until a response has begun

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if _is_framework_error(message):
                self._withheld = message
                return
            self.status = message["status"]
            message["headers"] = [*message["headers"], *_security_headers(self._scope["path"])]
            # What is still to come of a slow request would have to be read before the next one.
            is_slow = self.status == HTTPStatus.REQUEST_TIMEOUT
            if is_slow or self._scope["app"].state.is_stopping:
                message["headers"].append((b"connection", b"close"))
        if self._withheld is None:
            await self._send(message)

    def take_withheld(self) -> Message | None:
        """The start of the withheld response, if any; another one may be sent in its place."""
        withheld, self._withheld = self._withheld, None
        return withheld


def _refuse_encoded(scope: Scope) -> None:
    """Refuse a compressed body as such; parsed as JSON, it would give a misleading error."""
    for name, value in scope["headers"]:  # all: a header may be repeated
        if name not in _PLAIN_CODINGS:
            continue
        encoding = value.decode("latin-1")
        if any(part.strip().lower() not in _PLAIN_CODINGS[name] for part in encoding.split(",")):
            header = name.decode().title()
            raise EncodedBodyError(
                f"the body was sent with {header} {encoding!r}, which is not supported",
                hint=f"send it uncompressed, without {header}",
            )


def _replay(body: bytes, receive: Receive) -> Receive:
    """A receive channel that hands out `body`, then whatever the client sends next."""
    pending = [body]

    async def replayed() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replayed


def _is_framework_error(start: Message) -> bool:
    """Whether a response is an error made by the framework, such as for a bad Range header."""
    return start["status"] >= HTTPStatus.BAD_REQUEST and not any(
        name == b"content-type" and value == b"application/json" for name, value in start["headers"]
    )


def _describe_framework_error(start: Message, scope: Scope) -> ErrorBody:
    """The body of the one error shape for an error response of the framework."""
    given = dict(scope["headers"]).get(b"range")
    if given is None:
        return describe_status(start["status"], scope["method"], scope["path"])
    return describe_range(start["status"], given.decode("latin-1"), scope["path"])


def _content_range_of(start: Message) -> list[tuple[bytes, bytes]]:
    """The header of a 416 response that has the length of the file."""
    return [header for header in start["headers"] if header[0] == b"content-range"]


_PLAIN_CODINGS = {
    b"content-encoding": ("", "identity"),
    b"transfer-encoding": ("", "identity", "chunked"),
}
"""By header, the codings of a body that arrives here as it was written."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_COMMON_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def _security_headers(path: str) -> list[tuple[bytes, bytes]]:
    policy = DOCS_POLICY if path.startswith(DOCS_PATHS) else PAGE_POLICY
    cache = [(b"cache-control", b"no-cache" if path.startswith("/static") else b"no-store")]
    return [*_COMMON_HEADERS, *cache, (b"content-security-policy", policy.encode())]
