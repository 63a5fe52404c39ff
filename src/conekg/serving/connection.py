"""A client's connection: time limits for slow clients, and input that is not HTTP.

uvicorn limits the time between two requests, and `gate` the time after a request's headers. This
module limits the rest: the wait for the first request, the time and size of a request's head (its
first line and headers), and answers that a client does not read. Without these limits, idle clients
could use up the machine's connections, its memory, or the server's concurrent requests.
Input that is not HTTP gets an error of the one shape. `Upgrade` offers are ignored.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from collections import deque
from http import HTTPStatus

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from conekg.errors import ConeKGError
from conekg.serving.errors import HeadTooLargeError, SlowRequestError, describe, error_response
from conekg.serving.limits import Limits

ADDRESS_BYTES = 65_535
"""Bytes of the longest address that the parser can take apart, whatever `limits.head_bytes` is."""


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with time limits for its client, and plain HTTP/1 only."""

    limits = Limits()
    _request_timer: TimerHandle | None = None
    """Runs while the client has to send something."""
    _reading_timer: TimerHandle | None = None
    """Runs while the client has answers to read."""
    _is_in_head = False
    _is_in_body = False
    _head_bytes = 0
    """Bytes of the head that is being received."""
    _heads_in_read = 0
    """Heads that the current read has parts of."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._start_request_timer(self.limits.keep_alive_s)

    def data_received(self, data: bytes) -> None:
        """Parse more data, and refuse a head that grows beyond `limits.head_bytes`.

        A read that a head shares with another request's head or body is not counted, as it is not
        known how much of it belongs to which.
        """
        is_shared = self._is_in_body
        self._heads_in_read = int(self._is_in_head)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            self._ignore_upgrade(data[stopped.args[0] :])
            return
        except httptools.HttpParserError:
            is_long = len(self.url or b"") > ADDRESS_BYTES
            self._refuse(address_too_large() if is_long else unreadable())
            return
        if self._is_in_head and not is_shared and self._heads_in_read == 1:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head_bytes:
                self._refuse(too_large(self.limits))

    def on_message_begin(self) -> None:
        """Start the time limit of a head that has begun; it is that of a body."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        self._heads_in_read += 1
        self._start_request_timer(self.limits.timeout_s)

    def on_headers_complete(self) -> None:
        """End the time limit of the head: the gate limits the rest of the request.

        A head with an `Upgrade` offer is not complete: `_ignore_upgrade` parses it again.
        """
        if self.parser.should_upgrade():
            return
        self._is_in_head, self._is_in_body = False, True
        self._stop_request_timer()
        super().on_headers_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)

    def on_message_complete(self) -> None:
        """Note the end of a request, unless its head is to be parsed again."""
        if not self._is_in_head:
            self._is_in_body = False
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the time limit of the next request, unless it has begun already."""
        super().on_response_complete()
        if not self._is_in_head:
            self._start_request_timer(self.limits.keep_alive_s)

    def pause_writing(self) -> None:
        """Watch a client that reads its answers slowly; it may take long if it reads at all."""
        super().pause_writing()
        self._start_reading_timer()

    def resume_writing(self) -> None:
        """Stop watching a client that has read nearly all of its answers."""
        self._stop_reading_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers, and let no request be answered any more.

        uvicorn knows only of the last of several requests that a client has sent at once, while it
        is the first that is being answered.
        """
        self._stop_request_timer()
        self._stop_reading_timer()
        super().connection_lost(exc)
        for cycle in self._unanswered:
            cycle.disconnected = cycle.disconnected or not cycle.response_complete
            cycle.message_event.set()

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Parse the head again without its `Upgrade` header, then the data after it.

        The parser stops after a head with an offer to switch protocols; without this, the body of
        such a request would be lost.
        """
        kept = [header for header in self.headers if header[0] != b"upgrade"]
        if len(kept) == len(self.headers):  # no such header: a CONNECT request, only for proxies
            self._refuse(unreadable())
            return
        version = self.parser.get_http_version().encode()
        head = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        head += [b"%s: %s" % header for header in kept]
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([*head, b"", rest]))

    def _start_request_timer(self, seconds: float) -> None:
        self._stop_request_timer()
        self._request_timer = self.loop.call_later(seconds, self._on_request_timeout)

    def _stop_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _start_reading_timer(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._reading_timer = self.loop.call_later(
            self.limits.timeout_s, self._on_reading_timeout, unread
        )

    def _on_reading_timeout(self, unread_before: int) -> None:
        """Disconnect a client that has read nothing since the timer started; else watch on."""
        if self.transport.get_write_buffer_size() < unread_before:
            self._start_reading_timer()
        else:
            self.transport.abort()

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def _on_request_timeout(self) -> None:
        """Refuse an unfinished head, or close a connection without a request."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # The answer to an earlier request on this connection has to go out first.
            self._start_request_timer(self.limits.timeout_s)
        elif self._is_in_head:
            wanted = f"the head of the request did not arrive within {self.limits.timeout_s:g} s"
            self._refuse(SlowRequestError(wanted))
        else:
            self.transport.close()

    def _refuse(self, error: ConeKGError) -> None:
        """Answer with the error and disconnect: where a next request begins is not known."""
        self._stop_request_timer()
        response = error_response(describe(error), self.limits.retry_after_s)
        status = HTTPStatus(response.status_code)
        head = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode()), b"connection: close"]
        head += [b"%s: %s" % header for header in response.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"", bytes(response.body)]))
        self.transport.close()


def connections_of(limits: Limits) -> type[Connection]:
    """The connection class of a server with these limits; uvicorn takes a class."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


def too_large(limits: Limits) -> HeadTooLargeError:
    """The error for a request whose first line and headers are too large."""
    return HeadTooLargeError(
        f"the address and the headers of the request exceed {limits.head_bytes} bytes",
        hint="send long texts in the body, and no more headers than the request needs",
    )


def address_too_large() -> HeadTooLargeError:
    """The error for a request whose address is longer than any limit allows."""
    return HeadTooLargeError(
        f"the address of the request exceeds {ADDRESS_BYTES} bytes",
        hint="send long texts in the body",
    )


def unreadable() -> ConeKGError:
    """The error for input that is not HTTP."""
    return ConeKGError(
        "the data received is not a valid HTTP/1.1 request",
        hint="check its method, its address, its lengths and its line ends; "
        "the server speaks plain HTTP, without TLS",
    )
