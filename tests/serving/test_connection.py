"""Slow clients and input that is not HTTP, over real sockets."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest.mock import Mock

from extras import need

need("fastapi", "uvicorn")

import pytest

from conekg.serving.connection import Connection
from conekg.serving.limits import Limits

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@contextmanager
def connected(served) -> Iterator[socket.socket]:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # each piece at once
        yield connection


def all_of(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    told = b""
    try:
        while part := connection.recv(65_536):
            told += part
    except ConnectionResetError:
        pass  # it hung up on what was still being sent
    return told


def error_in(told: bytes) -> dict:
    head, _, body = told.rpartition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    last = head[head.rindex(b"HTTP/1.1 ") :].lower()
    assert last.startswith(b"http/1.1 %d " % error["status"])
    assert b"content-length: %d" % len(body) in last.split(b"\r\n")
    assert b"connection: close" in last.split(b"\r\n")
    return error


@pytest.mark.parametrize("said", [b"", b"\r\n"])
def test_a_connection_without_a_request_is_closed_at_its_time_limit(start_server, answerer, said):
    with start_server(answerer, Limits(keep_alive_s=1)) as served, connected(served) as silent:
        silent.sendall(said)
        assert all_of(silent) == b""


def test_a_blank_line_after_an_answer_does_not_count_as_a_request(start_server, answerer):
    with start_server(answerer, Limits(keep_alive_s=1)) as served, connected(served) as silent:
        silent.sendall(HEAD + b"\r\n")
        assert silent.recv(65_536).startswith(b"HTTP/1.1 200")
        silent.sendall(b"\r\n")
        all_of(silent)  # ends, because the server hangs up


def test_a_slow_head_is_refused_only_after_the_answer_before_it():
    connection = Connection.__new__(Connection)
    connection.transport, connection.loop = Mock(), Mock()
    connection.transport.is_closing.return_value = False
    connection.cycle = SimpleNamespace(response_complete=False)
    connection._is_in_head = True
    connection._on_request_timeout()
    connection.transport.write.assert_not_called()
    connection.transport.close.assert_not_called()
    connection.loop.call_later.assert_called_once()


@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"])
def test_a_head_that_does_not_end_is_refused_at_the_time_limit(start_server, answerer, before):
    with start_server(answerer, Limits(timeout_s=0.5)) as served, connected(served) as slow:
        slow.sendall(before + HEAD)
        told = all_of(slow)
        assert told.count(b"HTTP/1.1 200") == (1 if before else 0)
        error = error_in(told)
    assert (error["status"], error["kind"]) == (408, "slow_request")
    assert "head of the request" in error["message"]


def test_a_request_in_pieces_is_answered_and_so_is_the_next(start_server, answerer):
    """Each head is within the limit, both together are not."""
    limits = Limits(timeout_s=20, head_bytes=300)
    with start_server(answerer, limits) as served, connected(served) as slow:
        for end in (b"\r\n", b"Connection: close\r\n\r\n"):
            for piece in (HEAD, b"X-Long: " + b"a" * 200, b"\r\n", end):
                slow.sendall(piece)
                assert served.get("/health").status_code == 200  # so that each is read apart
        assert all_of(slow).count(b'{"status":"ok"}') == 2


def test_a_head_without_end_is_refused_before_it_fills_the_memory(start_server, answerer):
    with start_server(answerer, Limits(head_bytes=10_000)) as served, connected(served) as endless:
        endless.sendall(HEAD + b"X-Long: ")
        sent = 0
        try:
            while sent < 50_000_000:
                endless.sendall(b"a" * 100_000)
                sent += 100_000
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 50_000_000
        assert served.get("/health").status_code == 200


def test_the_message_names_the_limit_of_a_head(start_server, answerer):
    with start_server(answerer, Limits(head_bytes=1_000)) as served:
        assert served.client.get("/health", headers={"X-Short": "a" * 500}).status_code == 200
        for address, headers in (("/health", {"X-Long": "a" * 1_000}), (f"/{'a' * 1_000}", {})):
            response = served.client.get(address, headers=headers)
            assert response.status_code == 431
            error = response.json()["error"]
            assert error["kind"] == "head_too_large"
            assert "1000 bytes" in error["message"]
            assert error["hint"]


@pytest.mark.parametrize("limit", [65_536, 200_000])
def test_an_address_that_the_parser_cannot_take_is_refused_as_too_large(
    start_server, answerer, limit
):
    longest = b"GET /health?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with start_server(answerer, Limits(head_bytes=limit)) as served:
        told = []
        for size in (65_000, 65_600):
            with connected(served) as client:
                client.sendall(longest % (b"a" * size))
                told.append(all_of(client))
    assert told[0].startswith(b"HTTP/1.1 200")
    error = error_in(told[1])
    assert (error["status"], error["kind"]) == (431, "head_too_large")
    assert "65535 bytes" in error["message"]


@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"])
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_head_beyond_the_limit_is_refused_before_its_end(start_server, answerer, pieces, before):
    sent = [HEAD, b"X-Long: " + b"a" * 1_000]
    with start_server(answerer, Limits(head_bytes=1_000)) as served, connected(served) as slow:
        if before:
            slow.sendall(before)
            assert slow.recv(65_536).startswith(b"HTTP/1.1 200")
        for piece in sent if pieces == 2 else [b"".join(sent)]:
            slow.sendall(piece)
            assert served.get("/health").status_code == 200  # so that each may be read apart
        assert error_in(all_of(slow))["status"] == 431


@pytest.mark.parametrize("cut", range(0, 900, 50))
def test_a_read_with_parts_of_two_requests_counts_for_neither_head(start_server, answerer, cut):
    """Cut anywhere, two heads within the limit and a body beyond it are two requests."""
    body = b"b" * 500
    first = HEAD.replace(b"GET /health", b"POST /nowhere") + b"Content-Length: 500\r\n\r\n" + body
    both = first + HEAD + b"X-Long: " + b"a" * 200 + b"\r\nConnection: close\r\n\r\n"
    with start_server(answerer, Limits(head_bytes=400)) as served, connected(served) as client:
        client.sendall(both[:cut])
        assert served.get("/health").status_code == 200  # so that the two may be read apart
        client.sendall(both[cut:])
        told = all_of(client)
    assert told.count(b"HTTP/1.1 ") == 2
    assert told.count(b"HTTP/1.1 404") == 1
    assert told.endswith(b'{"status":"ok"}')


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nmany\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",  # how TLS begins
    ],
)
def test_input_that_is_not_http_is_refused_in_the_one_shape(served, sent):
    with connected(served) as stranger:
        stranger.sendall(sent)
        error = error_in(all_of(stranger))
    assert (error["status"], error["kind"]) == (400, "request")
    assert "not a valid HTTP" in error["message"]
    assert error["hint"]


@pytest.mark.parametrize(
    "told",
    [
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip",
        b"Content-Encoding: gzip\r\nContent-Encoding: identity\r\nTransfer-Encoding: chunked",
    ],
)
def test_a_compressed_body_is_refused_whichever_header_says_so(served, told):
    compressed = gzip.compress(b'{"query": "France.borders"}')
    head = HEAD.replace(b"GET /health", b"POST /api/ask")
    head += b"Content-Type: application/json\r\nConnection: close\r\n" + told + b"\r\n\r\n"
    with connected(served) as client:
        client.sendall(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(compressed), compressed))
        error = error_in(all_of(client))
    assert (error["status"], error["kind"]) == (415, "encoded_body")
    assert "'gzip" in error["message"]
    assert "send it uncompressed" in error["hint"]


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_upgrade_offer_is_ignored_and_the_body_is_kept(served, protocol, is_chunked):
    """Some clients offer HTTP/2 with their first request, whatever its method."""
    headers = {"connection": "Upgrade, HTTP2-Settings", "upgrade": protocol}
    body = json.dumps({"query": "France.borders", "top_k": 3}).encode()
    for _ in range(2):  # on one connection
        response = served.client.post(
            "/api/ask",
            content=iter([body[:9], body[9:]]) if is_chunked else body,
            headers={**headers, "content-type": "application/json"},
        )
        assert response.status_code == 200, response.text
        assert len(response.json()["answers"]) == 3
    assert served.client.get("/health", headers=headers).json() == {"status": "ok"}


def test_an_upgrade_offer_is_subject_to_the_limit_of_a_head(start_server, answerer):
    offer = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    with start_server(answerer, Limits(head_bytes=1_000)) as served, connected(served) as client:
        client.sendall(HEAD + offer + b"X-Long: " + b"a" * 1_000 + b"\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 431")


def test_unfinished_bodies_do_not_count_as_concurrent_requests(start_server, answerer):
    """Requests count as concurrent only once their bodies have arrived."""
    head = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    limits = Limits(concurrent_requests=2, timeout_s=20)
    with start_server(answerer, limits) as served, ExitStack() as stalled:
        for _ in range(3):
            client = stalled.enter_context(connected(served))
            client.sendall(head + b"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 100 ")  # it waits for the body
        response = served.post("/api/ask", query="France.borders", top_k=3)
        assert response.status_code == 200, response.text


def test_a_client_that_reads_none_of_its_answers_is_disconnected(start_server, answerer):
    """Otherwise, requests that wait for such a client would count as concurrent for ever."""
    request = b"GET /static-offline-docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with start_server(answerer, Limits(timeout_s=0.5)) as served, connected(served) as idle:
        idle.sendall(HEAD + b"\r\n")
        assert idle.recv(65_536)  # by now the server has taken the connection
        idle.sendall(request * 12)  # more than the system keeps for a client
        deadline = time.monotonic() + 60
        while served.server.server_state.connections:
            assert time.monotonic() < deadline, "the server still waits"
            time.sleep(0.01)


def test_a_client_that_reads_its_answers_slowly_stays_connected():
    connection = Connection.__new__(Connection)
    connection.transport, connection.loop, connection.flow = Mock(), Mock(), Mock()
    left = connection.transport.get_write_buffer_size
    left.return_value = 900
    connection.pause_writing()
    for size in (800, 100):
        left.return_value = size
        look, left_before = connection.loop.call_later.call_args.args[1:]
        look(left_before)
        connection.transport.abort.assert_not_called()
    look, left_before = connection.loop.call_later.call_args.args[1:]
    look(left_before)
    connection.transport.abort.assert_called_once()


def test_a_client_that_has_read_its_answers_is_no_longer_watched():
    """Otherwise, it would be disconnected while it waits before its next request."""
    connection = Connection.__new__(Connection)
    connection.transport, connection.loop, connection.flow = Mock(), Mock(), Mock()
    for times in (1, 2):
        timer = connection.loop.call_later.return_value = Mock()
        connection.pause_writing()
        timer.cancel.assert_not_called()
        connection.resume_writing()
        timer.cancel.assert_called_once()
        assert connection.flow.resume_writing.call_count == times
