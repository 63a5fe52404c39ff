"""One connection: what it may keep a server waiting for before there is a request.

uvicorn times a connection between two requests and the gate what comes after a request's head.
Left over are a connection on which nobody has asked yet, and a head that does not end: without
bounds, clients that say nothing use up the connections of a machine, or its memory.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from conekg.errors import ConeKGError
from conekg.serving.errors import HeadTooLargeError, RequestTimeoutError, describe, error_response
from conekg.serving.limits import Limits


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with an end to waiting for the head of a request."""

    limits = Limits()
    _timer: TimerHandle | None = None
    _is_in_head = False
    _head_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait(self.limits.keep_alive_s)

    def data_received(self, data: bytes) -> None:
        """Read on; a head is as large as what has come of it since the read it began in."""
        is_more_of_it = self._is_in_head
        super().data_received(data)
        if is_more_of_it and self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                self._refuse(too_large(self.limits))

    def on_message_begin(self) -> None:
        """A request begins: its head has as long as a body has."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        self._wait(self.limits.timeout_s)

    def on_headers_complete(self) -> None:
        """The head is here: from now on the gate keeps the time."""
        self._is_in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has begun already."""
        super().on_response_complete()
        if not self._is_in_head:
            self._wait(self.limits.keep_alive_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing comes any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

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
    """That the line and the headers of a request are beyond the limit."""
    return HeadTooLargeError(
        f"the address and the headers of the request exceed {limits.head_bytes} bytes",
        hint="send long texts in the body, and no more headers than the request needs",
    )
