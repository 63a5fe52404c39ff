"""A real server for a test: an app on a free port of this machine, in a thread, with a client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.serving.server import make_server, open_sockets


@dataclass
class Served:
    """A running server."""

    url: str
    server: uvicorn.Server
    thread: threading.Thread
    client: httpx.Client

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json=body)

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        return self.client.get(path, params=parameters or None)

    def stop(self) -> None:
        """Ask for a graceful end and wait for it."""
        self.client.close()
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive(), "the server did not stop"


@contextmanager
def serve(answerer: Any, limits: Limits | None = None, **options: Any) -> Iterator[Served]:
    """A real server on a free port of this machine for as long as the block."""
    limits = limits or Limits()
    app = create_app(answerer, limits=limits, **options)
    (listening,) = open_sockets("127.0.0.1", 0, 1)
    server = make_server(app, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    served = Served(url, server, thread, httpx.Client(base_url=url, timeout=30, verify=False))
    deadline = time.monotonic() + 180  # the first server compiles, perhaps beside other tests
    while not server.started:
        assert thread.is_alive(), "the server ended before it started"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    try:
        yield served
    finally:
        if thread.is_alive():
            served.stop()
