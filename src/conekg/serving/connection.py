"""One connection: what it may keep a server waiting for, and what is no request.

uvicorn times a connection between two requests and the gate what comes after a request's head.
Left over are a connection on which nobody has asked yet, a head that does not end, and answers
that nobody takes: without bounds, clients that do nothing use up the connections of a machine, its
memory, or the requests that a server works on at once.
What is no HTTP is refused in the shape of all errors. Offers to speak another protocol are passed
over: the parser stops at them, and the body that follows would be lost.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from http import HTTPStatus

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from conekg.errors import ConeKGError
from conekg.serving.errors import HeadTooLargeError, RequestTimeoutError, describe, error_response
from conekg.serving.limits import Limits


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with an end to waiting for its client, that keeps to plain HTTP/1."""

    limits = Limits()
    _timer: TimerHandle | None = None
    _taking_timer: TimerHandle | None = None
    _is_in_head = False
    _is_in_body = False
    _head_bytes = 0
    _heads_in_read = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait(self.limits.keep_alive_s)

    def data_received(self, data: bytes) -> None:
        """Read on; of a head counts all that has come, but for a read that it shares."""
        is_shared = self._is_in_body
        self._heads_in_read = int(self._is_in_head)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            self._pass_over_upgrade(data[stopped.args[0] :])
            return
        except httptools.HttpParserError:
            self._refuse(unreadable())
            return
        if self._is_in_head and not is_shared and self._heads_in_read == 1:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                self._refuse(too_large(self.limits))

    def on_message_begin(self) -> None:
        """A request begins: its head has as long as a body has."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        self._heads_in_read += 1
        self._wait(self.limits.timeout_s)

    def on_headers_complete(self) -> None:
        """The head is here, unless it is to be read again: from now on the gate keeps the time."""
        if self.parser.should_upgrade():
            return
        self._is_in_head, self._is_in_body = False, True
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The whole request is here, unless its head is to be read again."""
        if not self._is_in_head:
            self._is_in_body = False
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has begun already."""
        super().on_response_complete()
        if not self._is_in_head:
            self._wait(self.limits.keep_alive_s)

    def pause_writing(self) -> None:
        """The client is slow to take its answers: it has time for as long as it takes any."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        """The client has taken nearly all."""
        self._stop_looking()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._stop_waiting()
        self._stop_looking()
        super().connection_lost(exc)

    def _pass_over_upgrade(self, rest: bytes) -> None:
        """Read the head again without its offer of another protocol, then what came after it."""
        kept = [header for header in self.headers if header[0] != b"upgrade"]
        if len(kept) == len(self.headers):  # CONNECT, which is for proxies
            self._refuse(unreadable())
            return
        version = self.parser.get_http_version().encode()
        head = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        head += [b"%s: %s" % header for header in kept]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([*head, b"", rest]))

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking_timer = self.loop.call_later(self.limits.timeout_s, self._look_again, left)

    def _look_again(self, left_before: int) -> None:
        """Hang up on a client that has taken nothing since; look on where it has."""
        if self.transport.get_write_buffer_size() < left_before:
            self._look_later()
        else:
            self.transport.abort()

    def _stop_looking(self) -> None:
        if self._taking_timer is not None:
            self._taking_timer.cancel()
            self._taking_timer = None

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait(self.limits.timeout_s)  # the answer to an earlier request goes first
        elif self._is_in_head:
            wanted = f"the head of the request did not arrive within {self.limits.timeout_s:g} s"
            self._refuse(RequestTimeoutError(wanted))
        else:
            self.transport.close()

    def _refuse(self, error: ConeKGError) -> None:
        """Answer with the error, and hang up: what follows could not be told apart."""
        self._stop_waiting()
        response = error_response(describe(error), self.limits.retry_after_s)
        status = HTTPStatus(response.status_code)
        head = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode()), b"connection: close"]
        head += [b"%s: %s" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"", bytes(response.body)]))
        self.transport.close()


def connections_of(limits: Limits) -> type[Connection]:
    """The connections of a server with these limits, as uvicorn wants to be told."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


def too_large(limits: Limits) -> HeadTooLargeError:
    """The error for a request whose line and headers are beyond the limit."""
    return HeadTooLargeError(
        f"the address and the headers of the request exceed {limits.head_bytes} bytes",
        hint="send long texts in the body, and no more headers than the request needs",
    )


def unreadable() -> ConeKGError:
    """The error for what is no request."""
    return ConeKGError(
        "what arrived cannot be read as an HTTP/1.1 request",
        hint="check its method, its address, its lengths and its line ends; "
        "the server speaks plain HTTP, without TLS",
    )
