"""What one process of a server loads from a run."""

from __future__ import annotations

import asyncio
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from extras import need

need("fastapi", "uvicorn", "httpx")

import httpx
import pytest
from fastapi import FastAPI

from conekg.errors import CheckpointError
from conekg.query.parse import parse_query
from conekg.query.tree import has_negation
from conekg.serving.limits import Limits
from conekg.serving.server import open_sockets
from conekg.serving.share import Share
from conekg.serving.worker import Ready, Settings, load_app, run_worker
from conekg.training.checkpoint import Checkpoint, save_checkpoint
from tiny import tiny_graph, tiny_run


def settings_of(run: Path) -> Settings:
    return Settings(run, "best", "cpu", Limits(), None, access_log=False, hosts=None)


async def about(app: FastAPI) -> dict[str, Any]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        told: dict[str, Any] = (await client.get("/api/about")).json()
    return told


@pytest.mark.parametrize(("model", "can_negate"), [("cone", True), ("gqe", False)])
def test_examples_are_questions_that_the_model_can_answer(
    tmp_path: Path, model: str, can_negate: bool
) -> None:
    run = tiny_run(tmp_path / "run", model)
    weights = dict(run.new_model().state_dict())
    save_checkpoint(run.checkpoint_folder("best"), Checkpoint(0, weights, {}))
    app, ready = load_app(settings_of(run.folder))
    assert ready == Ready(calibrated=False)
    examples = asyncio.run(about(app))["examples"]
    asked = [parse_query(example["query"], tiny_graph().vocabulary) for example in examples]
    assert len(asked) >= 3
    assert any(map(has_negation, asked)) is can_negate


def test_a_run_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        load_app(settings_of(tiny_run(tmp_path / "run").folder))


def test_a_port_that_was_taken_while_loading_is_sent_to_the_parent(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "run")
    weights = dict(run.new_model().state_dict())
    save_checkpoint(run.checkpoint_folder("best"), Checkpoint(0, weights, {}))
    (taken,) = open_sockets("127.0.0.1", 0, 1)
    port = taken.getsockname()[1]
    (late,) = open_sockets("127.0.0.1", port, 1)
    taken.listen()
    parent, worker = Pipe()
    with taken, parent:
        run_worker(settings_of(run.folder), late, Share(0, 2, tmp_path), worker)
        message, hint = parent.recv()
    assert message.startswith(f"cannot listen on 127.0.0.1 port {port}: another server")
    assert hint is None
