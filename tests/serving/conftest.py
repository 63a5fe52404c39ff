"""Real servers for the tests: an answerer over the built-in graph, served on a free port."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from conekg.answering.engine import Answerer
from conekg.graph.geography import load_geography
from conekg.model.catalog import build_model, model_config
from conekg.serving.examples import examples_of
from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.serving.server import make_server, open_sockets
from untrained_answerer import untrained_answerer


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


@pytest.fixture(scope="session")
def answerer() -> Answerer:
    """ConE in 16 dimensions over geography, untrained, or the run named by CONEKG_RUN."""
    if folder := os.environ.get("CONEKG_RUN"):
        return Answerer.open(Path(folder), device="cpu")
    graph = load_geography()
    config = model_config("cone", {"dim": 16, "hidden": 32})
    model = build_model("cone", graph.num_entities, graph.num_relations, config, seed=0)
    return Answerer(graph, model)


@pytest.fixture(scope="session")
def namesakes() -> Answerer:
    """A graph with two people of the same label, born in different places."""
    entities, labels = ["Q1", "Q2", "Cork", "Delft"], ["Jane Doe", "Jane Doe", "", ""]
    return untrained_answerer(entities, ["born_in"], [(0, 0, 2), (1, 0, 3)], labels=labels)


@pytest.fixture(scope="session")
def served(answerer: Answerer) -> Iterator[Served]:
    """One server for all tests that do not change it."""
    with serve(answerer, examples=examples_of(answerer.graph)) as running:
        yield running


@pytest.fixture
def start_server() -> Callable[..., Any]:
    """The function that starts a server for one test."""
    return serve
