"""Micro-batching: many waiting requests, a thread or two that work on them.

While the threads work on batches the next requests gather; when one returns they
go together, and a busy server's batches grow by themselves. Only then, after a batch
of several, does anybody wait for a timer: a moment for those who were just answered
to ask again. With two threads one batch is worked on while the other's answers are
written and its clients ask again, so that no core waits for the network.
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
    """Runs jobs in batches on `threads` threads of its own, one batch a thread.

    A batch takes no more than a thread's share of all jobs there are, waiting or worked on:
    who took them all would leave the other threads idle, now and every time after.

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
        threads: int = 1,
        name: str = "conekg-scoring",
    ) -> None:
        self._run_batch = run_batch
        self._max_batch = max_batch
        self._on_batch = on_batch
        self._gather_s = gather_s
        self._last_size = 1
        self._being_run = 0
        self._queue: asyncio.Queue[_Waiting[Job, Result] | None] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)
        self._num_threads = threads
        self._taking = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self) -> None:
        """Begin taking jobs; needs a running event loop."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve()) for _ in range(self._num_threads)]

    async def close(self) -> None:
        """Finish every accepted job, then stop."""
        self._closing = True
        self._queue.put_nowait(None)
        await asyncio.gather(*self._tasks)
        self._threads.shutdown()

    async def submit(self, job: Job) -> Result:
        """The result of a job, or its exception raised."""
        if self._closing or not self._tasks:
            raise ServerStoppingError("the server is shutting down")
        waiting: _Waiting[Job, Result] = _Waiting(job, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(waiting)
        return await waiting.done

    async def _serve(self) -> None:
        while True:
            async with self._taking:  # one batch forms at a time, or each would take its half
                batch = await self._take()
            if batch is None:
                return
            # A client that gave up while waiting costs nothing more.
            batch = [waiting for waiting in batch if not waiting.done.done()]
            if batch:
                self._last_size = len(batch)
                await self._score(batch)

    async def _take(self) -> list[_Waiting[Job, Result]] | None:
        """The next batch; `None` when nothing will come any more."""
        first = await self._queue.get()
        await self._gather()
        everything = 1 + self._queue.qsize() + self._being_run
        most = min(self._max_batch, -(-everything // self._num_threads))
        batch: list[_Waiting[Job, Result]] = []
        following = first
        while following is not None:
            batch.append(following)
            if len(batch) == most or self._queue.empty():
                return batch
            following = self._queue.get_nowait()
        # The end stays in the queue, for whoever looks next: nothing comes after it.
        self._queue.put_nowait(None)
        return batch or None

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
        self._being_run += len(jobs)
        start = time.perf_counter()
        results: Sequence[Result | Exception]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._run_batch, jobs
            )
        except Exception as error:  # noqa: BLE001  (each waiting client hears of it)
            results = [error] * len(batch)
        self._being_run -= len(jobs)
        self._on_batch(len(batch), time.perf_counter() - start)
        for waiting, result in zip(batch, results, strict=True):
            if waiting.done.done():
                continue
            if isinstance(result, Exception):
                waiting.done.set_exception(result)
            else:
                waiting.done.set_result(result)
