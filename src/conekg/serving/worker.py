"""The work of one of a server's processes: load a run, serve it, and shut down in order."""

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
from conekg.query.branches import DEFAULT_BRANCH_CAP
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
    """All that a server process needs to start."""

    run: Path
    checkpoint: Which
    device: str
    limits: Limits
    api_key: str | None
    access_log: bool
    hosts: Hosts | None
    """The host names it answers to; None for any."""


@dataclass(frozen=True)
class Ready:
    """The message of a process that it listens now."""

    calibrated: bool
    """Whether the served checkpoint has probabilities."""


def load_app(settings: Settings, share: Share | None = None) -> tuple[FastAPI, Ready]:
    """The application that serves a run, and the message to send once it listens."""
    examples = _example_queries(open_run(settings.run))
    answerer = Answerer.open(
        settings.run,
        which=settings.checkpoint,
        device=settings.device,
        # The server's own limit is checked per request. The sub-queries of an explained query may
        # have more branches than the query itself, so the answerer's cap must not be lower.
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
    """Serve until told to stop, or until the parent process is gone.

    Sends the parent a `Ready` once it listens, or the message and the hint of the error that
    prevented it.
    """
    with suppress(KeyboardInterrupt):  # from loading; later the server handles the signal
        if hasattr(signal, "pthread_sigmask"):  # the parent blocked SIGINT until this line
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            app, ready = load_app(settings, share)
            server = make_server(
                app,
                settings.limits,
                on_ready=lambda: _send(parent, ready),
                access_log=settings.access_log,
            )
            orphaned = threading.Event()
            watching = (parent, server, orphaned)
            threading.Thread(target=_stop_without_parent, args=watching, daemon=True).start()
            server.run(sockets=[listening])
        except ConeKGError as error:
            _send(parent, (error.message, error.hint))
            return
        if orphaned.is_set():  # the parent cannot remove the folder any more
            shutil.rmtree(share.folder, ignore_errors=True)


def _send(parent: Connection, message: Ready | tuple[str, str | None]) -> None:
    """Send the parent a message, unless the parent was killed while the run was loading."""
    with suppress(OSError):
        parent.send(message)


def _stop_without_parent(parent: Connection, server: Server, orphaned: threading.Event) -> None:
    """Stop the server when the parent's end of the connection closes, which means it is gone."""
    with suppress(EOFError, OSError):
        parent.recv()
    orphaned.set()
    server.should_exit = True


def _example_queries(run: Run) -> QuerySet | None:
    """The run's queries to choose examples from, held-out ones if there are any."""
    splits: tuple[Split, ...] = ("test", "valid", "train")
    for split in splits:
        if run.has_queries(split):
            return run.queries(split)
    return None
