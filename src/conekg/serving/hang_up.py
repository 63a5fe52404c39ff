"""Ends the work for a client that has hung up, so that it does not delay the answers of others.

Whoever waits for a scoring batch or an explanation is cancelled; work that no thread has begun is
then left out, and its place is free again. What a thread has begun, it finishes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive

from conekg.serving.errors import ClientGoneError

WATCH_AFTER_S = 0.05
"""Seconds for which a request is handled before its client is watched. Watching takes a task, and
most requests are answered sooner."""


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncIterator[None]:
    """Raise ClientGoneError if the client hangs up while the block runs.

    `receive` is the channel of a request whose body has been received.
    """
    loop = asyncio.get_running_loop()
    watching: list[asyncio.Task[None]] = []

    def watch() -> None:
        watching.append(loop.create_task(_expire_when_gone(receive, handling)))

    try:
        async with asyncio.timeout(None) as handling:
            start = loop.call_later(WATCH_AFTER_S, watch)
            try:
                yield
            finally:
                start.cancel()
                for task in watching:
                    task.cancel()
    except TimeoutError:
        if not handling.expired():  # it is the block's own
            raise
        raise ClientGoneError("the client hung up before its request was answered") from None


async def _expire_when_gone(receive: Receive, handling: asyncio.Timeout) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    handling.reschedule(asyncio.get_running_loop().time())
