"""A server of several processes: they are started, watched, and stopped together.

One process answers on one core and a bit: its event loop and whatever of a batch is not
compiled take turns. Several share a port and nothing else, each with the whole model; see
`share` for what they tell each other.
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
    """Serve a run by one process a socket until a signal says to stop, then stop them all.

    The sockets are closed here once the processes have theirs. `on_ready` hears once all
    listen. A process that ends by itself ends the others, in order, and is a ConeKGError.
    """
    with tempfile.TemporaryDirectory(prefix="conekg-") as folder:
        family = _Family()
        with family.stopped_by_signals():
            try:
                family.start(settings, sockets, Path(folder))
                ready = family.wait_until_ready()
                if ready is not None:
                    on_ready(ready)
                    family.wait_for_an_end()
            finally:
                family.stop()
    family.check_end()


class _Family:
    """The processes of one server, seen from their parent."""

    def __init__(self) -> None:
        self._processes: list[BaseProcess] = []
        self._connections: list[Connection] = []
        self._is_told_to_stop = False

    def start(self, settings: Settings, sockets: Sequence[socket.socket], folder: Path) -> None:
        """Start a process a socket, unless told to stop meanwhile."""
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
            theirs.close()  # so that a process that ends closes its connection
            self._processes.append(process)
            self._connections.append(own)
        # Theirs now: a socket that stayed open here would take clients in that nobody serves.
        for listening in sockets:
            listening.close()

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Hand signals to stop on to the processes while the block runs."""

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
        """What the processes tell once all listen; None if one ended or all are to stop."""
        ready = None
        waiting = list(self._connections)
        while waiting and not self._is_told_to_stop:
            for connection in wait(waiting, timeout=1.0):
                assert isinstance(connection, Connection)
                try:
                    told = connection.recv()
                except EOFError:
                    return None
                if not isinstance(told, Ready):
                    message, hint = told
                    raise ConeKGError(message, hint=hint)
                ready = told
                waiting.remove(connection)
        return None if self._is_told_to_stop else ready

    def wait_for_an_end(self) -> None:
        """Return when the first process has ended."""
        wait([process.sentinel for process in self._processes])

    def stop(self) -> None:
        """Let every process finish what it has accepted, and wait for that."""
        self._terminate()
        for process in self._processes:
            process.join()

    def check_end(self) -> None:
        """Raise ConeKGError if a process ended by itself, though none was told to stop."""
        if not self._is_told_to_stop:
            codes = ", ".join(str(process.exitcode) for process in self._processes)
            raise ConeKGError(
                f"a process of the server ended by itself (exit codes {codes})",
                hint="the others were stopped; what it printed says why",
            )

    def _terminate(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.terminate()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back, from a process that is started too until it is ready to hear it.

    Most of its start is importing, which an interrupt would end with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not everywhere
        yield
        return
    resource_tracker.ensure_running()  # its start, with the first process, would let them through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
