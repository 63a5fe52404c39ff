"""The server process around the application: its socket, its settings and its shutdown.

uvicorn does the work. On SIGTERM or SIGINT, or when its terminal is closed, the server stops
listening, finishes every request that has arrived and then stops the application, which drains
the scoring thread. It closes a busy client's connection with a `Connection: close` header on an
answer, never between two requests, where it could lose the client's next request.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from conekg.errors import ConfigError
from conekg.serving.connection import connections_of
from conekg.serving.limits import Limits
from conekg.training.interrupt import stop_signals


def open_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Bound sockets for one address, one per process; the system spreads clients among them.

    On systems without SO_REUSEPORT, all of them are one and the same socket. Port 0 takes a free
    port; a port that is taken or forbidden raises ConfigError.
    """
    first = _bind(host, port)
    if count == 1 or not hasattr(socket, "SO_REUSEPORT"):
        return [first] * count
    # The first socket was bound without sharing, which proves that no other program has the port.
    # Bind the port again, now to be shared.
    port = first.getsockname()[1]
    first.close()
    sockets: list[socket.socket] = []
    try:
        sockets += (_bind(host, port, is_shared=True) for _ in range(count))
    except ConfigError:
        for bound in sockets:
            bound.close()
        raise
    return sockets


def _bind(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if is_shared:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _cannot_listen(host, port, reason) from None
    return bound


def _cannot_listen(host: str, port: int, reason: str) -> ConfigError:
    return ConfigError(
        f"cannot listen on {host} port {port}: {reason}; choose others by --host and --port",
        key="port",
    )


class Server(uvicorn.Server):
    """uvicorn's server, which also reports when it is ready and lets busy clients disconnect."""

    def __init__(
        self,
        app: FastAPI,
        config: uvicorn.Config,
        farewell_s: float,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._app = app
        self._farewell_s = farewell_s
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Call `handle_exit` on every stop signal while the block runs.

        Unlike uvicorn, do not raise the signal again after the last answer: the process exits
        with code 0.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # Python handles signals only in the main thread
            return
        before = {number: signal.signal(number, self.handle_exit) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start an orderly shutdown; before the server listens, end the process at once.

        A server that is not listening has no request to finish. Waiting for it to start could
        take a minute of compiling, and no flag stops that.
        """
        if self.started:
            super().handle_exit(sig, frame)
        else:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen, then call `on_ready`.

        Raise ConfigError if another server began to listen on the port in the meantime: a port
        can be bound twice as long as nobody listens on it.
        """
        addresses = [listening.getsockname()[:2] for listening in sockets or []]
        try:
            await super().startup(sockets=sockets)
            for listening in sockets or []:
                # uvloop does not report that it could not listen. Listening twice does no harm.
                listening.listen(self.config.backlog)
        except OSError as error:
            await self.lifespan.shutdown()
            for listening in sockets or []:
                with suppress(OSError):  # uvloop has closed the file descriptor already
                    listening.close()
            reason = error.strerror or str(error)
            if error.errno in (errno.EADDRINUSE, errno.EBADF):
                reason = "another server has just taken it"
            host, port = addresses[0]
            raise _cannot_listen(host, port, reason) from None
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, give clients `farewell_s` to disconnect, then shut down in order."""
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        self._app.state.is_stopping = True
        until = time.monotonic() + self._farewell_s
        while self.server_state.connections and time.monotonic() < until and not self.force_exit:
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)


def make_server(
    app: FastAPI,
    limits: Limits,
    *,
    on_ready: Callable[[], None] = lambda: None,
    access_log: bool = False,
) -> Server:
    """A server for one application; call `run(sockets=[...])` or await `serve(...)`."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_level="info" if access_log else "warning",
        access_log=access_log,
        http=connections_of(limits),
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_keep_alive=limits.keep_alive_s,
        timeout_graceful_shutdown=max(1, round(limits.shutdown_s)),
    )
    return Server(app, config, limits.farewell_s, on_ready)
