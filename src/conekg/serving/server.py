"""The process around the application: its socket, its settings, its orderly end.

uvicorn does the work. On SIGTERM or SIGINT, or when its terminal is closed, it stops listening,
lets every request that has arrived finish, then ends the application, which drains the scoring
thread.
Connections are not closed between two requests of a busy client but by an answer that
says so, which no request can cross.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from conekg.errors import ConfigError
from conekg.serving.connection import connections_of
from conekg.serving.limits import Limits
from conekg.training.interrupt import stop_signals


def open_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Bound sockets of one address, one a process, among which the system spreads clients.

    Where it cannot, they are one socket. Port 0 takes a free one; a taken or forbidden port is
    a ConfigError.
    """
    first = _bind(host, port)
    if count == 1 or not hasattr(socket, "SO_REUSEPORT"):
        return [first] * count
    # The first was bound alone, so nobody else has the port; now it is bound to be shared.
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
        raise ConfigError(
            f"cannot listen on {host} port {port}: {reason}; choose others by --host and --port",
            key="port",
        ) from None
    return bound


class Server(uvicorn.Server):
    """uvicorn's server, which also says when it is ready, and takes leave of its clients."""

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
        """Stop in order on a signal to end, and end as a program that has done its work.

        uvicorn would raise the signal again after the last answer.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # only there signals are heard
            return
        before = {number: signal.signal(number, self.handle_exit) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen, then tell."""
        await super().startup(sockets=sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let busy clients hang up, then end all else in order."""
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
