"""A server of several processes: started, watched and stopped together.

One process keeps little more than one core busy, because its event loop and the uncompiled part of
scoring share Python's interpreter lock. Several processes share a port; each has the whole model in
memory. `share` exchanges their metrics, and `worker` is what each process does.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from conekg.errors import ConeKGError
from conekg.serving.share import Share
from conekg.serving.worker import Ready, Settings, run_worker
from conekg.training.interrupt import stop_signals


def serve_processes(
    settings: Settings, sockets: Sequence[socket.socket], on_ready: Callable[[Ready], None]
) -> None:
    """Serve a run with one process per socket until a stop signal arrives, then stop all of them.

    Closes the parent's copies of the sockets. Calls `on_ready` once, when all processes listen.
    If a process ends by itself, the others are shut down in order and ConeKGError is raised.
    """
    with tempfile.TemporaryDirectory(prefix="conekg-") as folder:
        group = _ProcessGroup()
        with group.stopped_by_signals():
            try:
                group.start(settings, sockets, Path(folder))
                ready = group.wait_until_ready()
                if ready is not None:
                    on_ready(ready)
                    group.wait_until_one_ends()
            finally:
                group.stop()
    group.check_end()


class _ProcessGroup:
    """The processes of one server, as their parent handles them."""

    def __init__(self) -> None:
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        self._is_told_to_stop = False

    def start(self, settings: Settings, sockets: Sequence[socket.socket], folder: Path) -> None:
        """Start one process per socket; start no more once a stop signal has arrived."""
        context = multiprocessing.get_context("spawn")
        for index, listening in enumerate(sockets):
            if self._is_told_to_stop:
                break
            own, theirs = context.Pipe()
            share = Share(index, len(sockets), folder)
            process = context.Process(
                target=run_worker,
                args=(settings, listening, share, theirs),
                name=f"conekg-server-{index}",
            )
            with _without_interrupts():
                process.start()
            theirs.close()  # otherwise the connection would stay open when its process ends
            self._processes.append(process)
            self._connections.append(own)
        # If the parent kept a listening socket open, the system would give it clients as well,
        # and nothing would answer them.
        for listening in sockets:
            listening.close()

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Pass stop signals on to the processes while the block runs."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._is_told_to_stop = True
            self._terminate()

        before = {number: signal.signal(number, stop) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def wait_until_ready(self) -> Ready | None:
        """The last process's message once all listen; None if one ended or a stop signal came."""
        ready = None
        waiting = list(self._connections)
        while waiting and not self._is_told_to_stop:
            for connection in wait(waiting, timeout=1.0):
                assert isinstance(connection, Connection)
                try:
                    received = connection.recv()
                except EOFError:
                    return None
                if not isinstance(received, Ready):
                    message, hint = received
                    raise ConeKGError(message, hint=hint)
                ready = received
                waiting.remove(connection)
        return None if self._is_told_to_stop else ready

    def wait_until_one_ends(self) -> None:
        """Return when the first process has ended."""
        wait([process.sentinel for process in self._processes])

    def stop(self) -> None:
        """Ask every process to stop, and wait until they have answered what they accepted."""
        self._terminate()
        for process in self._processes:
            process.join()

    def check_end(self) -> None:
        """Raise ConeKGError if a process ended although no stop signal had arrived."""
        if not self._is_told_to_stop:
            codes = ", ".join(str(process.exitcode) for process in self._processes)
            raise ConeKGError(
                f"a process of the server ended by itself (exit codes {codes})",
                hint="the others were stopped; the messages above, if any, say why it ended",
            )

    def _terminate(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.terminate()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT here and in a process started by the block, until that process unblocks it.

    A new process spends most of its start on imports, which Ctrl-C would end with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    # The first `Process.start` would start the resource tracker, which unblocks SIGINT.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
