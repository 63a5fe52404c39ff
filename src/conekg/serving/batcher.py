"""Micro-batching: many waiting requests, one thread that works on them.

While the thread works on a batch the next requests gather; when it returns they
go together, and a busy server's batches grow by themselves. Only then, after a batch
of several, does anybody wait for a timer: a moment for those who were just answered
to ask again. One thread because scoring uses all cores already: two would only take
turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from conekg.serving.errors import ServerStoppingError

_LOOK_EVERY_S = 0.0005

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Waiting(Generic[Job, Result]):
    job: Job
    done: asyncio.Future[Result]


class Batcher(Generic[Job, Result]):
    """Runs jobs in batches on one thread.

    `run_batch` gets at most `max_batch` jobs and returns one result or one exception a job,
    in order. After a batch of several the next is given up to `gather_s` to become as large;
    without that the first clients to come back would make a small batch of their own each
    time. `on_batch` hears of each batch's size and seconds, on the event loop's thread.
    """

    def __init__(
        self,
        run_batch: Callable[[Sequence[Job]], Sequence[Result | Exception]],
        max_batch: int,
        on_batch: Callable[[int, float], None] = lambda size, seconds: None,
        *,
        gather_s: float = 0.0,
        name: str = "conekg-scoring",
    ) -> None:
        self._run_batch = run_batch
        self._max_batch = max_batch
        self._on_batch = on_batch
        self._gather_s = gather_s
        self._last_size = 1
        self._queue: asyncio.Queue[_Waiting[Job, Result] | None] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._loop_task: asyncio.Task[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Begin taking jobs; needs a running event loop."""
        self._loop_task = asyncio.get_running_loop().create_task(self._serve())

    async def close(self) -> None:
        """Finish every accepted job, then stop."""
        self._closing = True
        self._queue.put_nowait(None)
        if self._loop_task is not None:
            await self._loop_task
        self._thread.shutdown()

    async def submit(self, job: Job) -> Result:
        """The result of a job, or its exception raised."""
        if self._closing or self._loop_task is None:
            raise ServerStoppingError("the server is shutting down")
        waiting: _Waiting[Job, Result] = _Waiting(job, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(waiting)
        return await waiting.done

    async def _serve(self) -> None:
        stopping = False
        while not (stopping and self._queue.empty()):
            batch: list[_Waiting[Job, Result]] = []
            first = await self._queue.get()
            await self._gather()
            stopping |= first is None
            if first is not None:
                batch.append(first)
            while len(batch) < self._max_batch and not self._queue.empty():
                following = self._queue.get_nowait()
                stopping |= following is None
                if following is not None:
                    batch.append(following)
            # A client that gave up while waiting costs nothing more.
            batch = [waiting for waiting in batch if not waiting.done.done()]
            if batch:
                self._last_size = len(batch)
                await self._score(batch)

    async def _gather(self) -> None:
        """Wait a little for as many jobs as went together last, if those were several."""
        until = time.perf_counter() + self._gather_s
        while (
            1 + self._queue.qsize() < self._last_size
            and not self._closing
            and time.perf_counter() < until
        ):
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _score(self, batch: list[_Waiting[Job, Result]]) -> None:
        jobs = [waiting.job for waiting in batch]
        start = time.perf_counter()
        results: Sequence[Result | Exception]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._run_batch, jobs
            )
        except Exception as error:  # noqa: BLE001  (each waiting client hears of it)
            results = [error] * len(batch)
        self._on_batch(len(batch), time.perf_counter() - start)
        for waiting, result in zip(batch, results, strict=True):
            if waiting.done.done():
                continue
            if isinstance(result, Exception):
                waiting.done.set_exception(result)
            else:
                waiting.done.set_result(result)
