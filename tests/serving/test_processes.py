"""Several processes of one server, as their parent handles them.

`tests/cli/test_serve.py` tests them as a whole; here is what would depend on timing there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from extras import need

need("fastapi", "uvicorn")

import pytest

from conekg.serving.limits import Limits
from conekg.serving.processes import serve_processes
from conekg.serving.server import open_sockets
from conekg.serving.worker import Settings


def test_an_interrupt_between_the_starts_of_two_processes_stops_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    started: list[SpawnProcess] = []
    start: Callable[..., None] = SpawnProcess.start

    def start_and_interrupt(process: SpawnProcess, *args: Any) -> None:
        start(process, *args)
        started.append(process)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", start_and_interrupt)
    before = signal.getsignal(signal.SIGINT)
    settings = Settings(tmp_path / "run", "best", "cpu", Limits(), None, False, None)
    sockets = open_sockets("127.0.0.1", 0, 3)
    serve_processes(settings, sockets, lambda ready: pytest.fail("none was to be ready"))
    assert len(started) == 1, "told to stop, it started more"
    assert started[0].exitcode == -signal.SIGTERM
    assert all(listening.fileno() == -1 for listening in sockets)
    assert signal.getsignal(signal.SIGINT) is before
