"""Work is dropped when its client hangs up, and only then."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from extras import need

need("fastapi", "uvicorn", "httpx")

import pytest

from conekg.serving import service
from conekg.serving.errors import ClientGoneError
from conekg.serving.hang_up import WATCH_AFTER_S, while_connected
from conekg.serving.limits import Limits


class Client:
    """The channel of a request; what is received says when it was asked for."""

    def __init__(self, *sends: str) -> None:
        self.sends = list(sends)

    async def receive(self) -> dict[str, str]:
        if not self.sends:
            await asyncio.sleep(60)
        return {"type": self.sends.pop(0)}


def test_work_ends_when_its_client_hangs_up() -> None:
    async def handle() -> None:
        try:
            async with while_connected(Client("http.request", "http.disconnect").receive):
                await asyncio.sleep(60)
        finally:
            assert asyncio.current_task().cancelling() == 0
            assert len(asyncio.all_tasks()) == 1, "the client is still watched"

    start = time.monotonic()
    with pytest.raises(ClientGoneError, match="before its request was answered"):
        asyncio.run(handle())
    assert WATCH_AFTER_S <= time.monotonic() - start < 30


@pytest.mark.parametrize("seconds", [0.0, 3 * WATCH_AFTER_S])
def test_work_for_a_client_that_stays_is_finished_and_the_client_no_longer_watched(seconds) -> None:
    async def handle() -> str:
        async with while_connected(Client("http.request").receive):
            await asyncio.sleep(seconds)
            done = "done"
        await asyncio.sleep(2 * WATCH_AFTER_S)
        assert len(asyncio.all_tasks()) == 1
        return done

    assert asyncio.run(handle()) == "done"


def test_time_limits_within_the_work_and_around_it_keep_their_meaning() -> None:
    async def handle(client: Client) -> None:
        async with while_connected(client.receive):
            async with asyncio.timeout(2 * WATCH_AFTER_S):
                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(handle(Client()))
    with pytest.raises(ClientGoneError):
        asyncio.run(handle(Client("http.disconnect")))

    async def outer() -> None:
        async with asyncio.timeout(2 * WATCH_AFTER_S):
            async with while_connected(Client().receive):
                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(outer())


def test_a_client_that_hung_up_leaves_its_place_to_others(start_server, answerer, monkeypatch):
    """A page that shows another answer's explanation drops the request for the one before."""
    may_end, begun = threading.Event(), []

    def slow(*args, **options):
        begun.append(options["entities"])
        assert may_end.wait(60)
        return explain(*args, **options)

    explain = service.explain
    monkeypatch.setattr(service, "explain", slow)
    question = {"query": "France.borders", "answer": "Spain"}
    body = b'{"query": "France.borders", "answer": "Italy"}'
    head = b"POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with start_server(answerer, Limits(explanations=2)) as served, ThreadPoolExecutor() as pool:
        first = pool.submit(served.post, "/api/explain", **question)
        wait_for(lambda: len(begun) == 1)
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as second:
            second.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            wait_for(lambda: in_flight(served) == 2)
            assert served.post("/api/explain", **question).status_code == 503
        wait_for(lambda: in_flight(served) == 1)
        third = pool.submit(served.post, "/api/explain", **question)
        wait_for(lambda: in_flight(served) == 2)
        may_end.set()
        assert [first.result().status_code, third.result().status_code] == [200, 200]
        counted = served.get("/metrics").text
    assert len(begun) == 2, "the explanation for the client that had gone was made"
    line = 'conekg_requests_total{method="POST",route="/api/explain",status="499"} 1'
    assert line in counted.splitlines()


def in_flight(served) -> int:
    name = "conekg_requests_in_flight "
    lines = served.get("/metrics").text.splitlines()
    return next(int(line.removeprefix(name)) for line in lines if line.startswith(name))


def wait_for(is_so) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
