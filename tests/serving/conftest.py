"""An answerer over the built-in graph, and real servers of it, for the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conekg.answering.engine import Answerer
from conekg.graph.geography import load_geography
from conekg.model.catalog import build_model, model_config
from extras import need
from untrained_answerer import untrained_answerer

if TYPE_CHECKING:
    from served import Served


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
def served(answerer: Answerer, start_server: Callable[..., Any]) -> Iterator[Served]:
    """One server for all tests that do not change it."""
    from conekg.serving.examples import examples_of

    with start_server(answerer, examples=examples_of(answerer.graph)) as running:
        yield running


@pytest.fixture(scope="session")
def start_server() -> Callable[..., Any]:
    """The function that starts a server for one test."""
    need("fastapi", "uvicorn", "httpx")
    from served import serve

    return serve
