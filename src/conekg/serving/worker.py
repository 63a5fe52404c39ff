"""What one process of a server does: load a run, serve it, end in order."""

from __future__ import annotations

import shutil
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from fastapi import FastAPI

from conekg.answering.engine import Answerer
from conekg.errors import ConeKGError
from conekg.graph.knowledge_graph import Split
from conekg.query.rewrite import DEFAULT_BRANCH_CAP
from conekg.sampling.query_set import QuerySet
from conekg.serving.examples import examples_of
from conekg.serving.hosts import Hosts
from conekg.serving.http import create_app
from conekg.serving.limits import Limits
from conekg.serving.server import Server, make_server
from conekg.serving.share import Share
from conekg.training.run import Run, Which, open_run


@dataclass(frozen=True)
class Settings:
    """What a server is started with."""

    run: Path
    checkpoint: Which
    device: str
    limits: Limits
    api_key: str | None
    access_log: bool
    hosts: Hosts | None
    """The names it answers to; None for any."""


@dataclass(frozen=True)
class Ready:
    """What a process tells once it listens."""

    calibrated: bool


def load_app(settings: Settings, share: Share | None = None) -> tuple[FastAPI, Ready]:
    """The application of a run, and what is to be told of it."""
    examples = _example_queries(open_run(settings.run))
    answerer = Answerer.open(
        settings.run,
        which=settings.checkpoint,
        device=settings.device,
        # The limit is of requests; parts of a query that are explained may have more branches.
        max_branches=max(DEFAULT_BRANCH_CAP, settings.limits.query_branches),
    )
    app = create_app(
        answerer,
        limits=settings.limits,
        api_key=settings.api_key,
        examples=examples_of(answerer.graph, examples, can_negate=answerer.model.can_negate),
        share=share,
        hosts=settings.hosts,
    )
    return app, Ready(answerer.calibration is not None)


def run_worker(
    settings: Settings, listening: socket.socket, share: Share, parent: Connection
) -> None:
    """Serve until told to stop, or until the parent is gone.

    Sends the parent a `Ready`, or the message and the hint of what went wrong.
    """
    with suppress(KeyboardInterrupt):  # while the run is loaded; later the server hears it
        if hasattr(signal, "pthread_sigmask"):  # the parent held it back until there is this block
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            app, ready = load_app(settings, share)
        except ConeKGError as error:
            _tell(parent, (error.message, error.hint))
            return
        server = make_server(
            app,
            settings.limits,
            on_ready=lambda: _tell(parent, ready),
            access_log=settings.access_log,
        )
        orphaned = threading.Event()
        watching = (parent, server, orphaned)
        threading.Thread(target=_stop_without, args=watching, daemon=True).start()
        server.run(sockets=[listening])
        if orphaned.is_set():  # nobody else is left to tidy up
            shutil.rmtree(share.folder, ignore_errors=True)


def _tell(parent: Connection, told: Ready | tuple[str, str | None]) -> None:
    """Send the parent something, unless it has been killed while the run was loaded."""
    with suppress(OSError):
        parent.send(told)


def _stop_without(parent: Connection, server: Server, orphaned: threading.Event) -> None:
    """Wait for the parent's end of the connection to close: nobody else would stop this server."""
    with suppress(EOFError, OSError):
        parent.recv()
    orphaned.set()
    server.should_exit = True


def _example_queries(run: Run) -> QuerySet | None:
    """The queries of the run to draw examples from: held-out ones where there are any."""
    splits: tuple[Split, ...] = ("test", "valid", "train")
    for split in splits:
        if run.has_queries(split):
            return run.queries(split)
    return None
