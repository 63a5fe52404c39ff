"""Micro-batching: many waiting requests, a thread or two that work on them.

While a thread works on a batch the next requests gather; when it returns they go
together, and a busy server's batches grow by themselves. Results are handed over as they
come, so that some clients are answered, and ask again, while others' are still worked on.
Only after a batch of several does anybody wait for a timer: for as long as those who were
just answered keep coming back.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from conekg.serving.errors import ServerStoppingError

_LOOK_EVERY_S = 0.0005
_LULL = 8
"""Looks without a new job after which no more are waited for. Looks and not seconds: where
the event loop comes late to look, those who come back come late too."""

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

    `run_batch` gets at most `max_batch` jobs and gives one result or one exception a job, in
    order, in one part or several. After a batch of several the next is given up to `gather_s`
    to become as large, while jobs keep coming; without that the first clients to come back
    would make a small batch of their own each time. `on_batch` hears of each batch's size and
    seconds, on the event loop's thread.
    """

    def __init__(
        self,
        run_batch: Callable[[Sequence[Job]], Iterable[Sequence[Result | Exception]]],
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
        size, lull = self._queue.qsize(), 0
        while (
            1 + size < self._last_size
            and lull < _LULL
            and not self._closing
            and time.perf_counter() < until
        ):
            await asyncio.sleep(_LOOK_EVERY_S)
            lull = 0 if self._queue.qsize() > size else lull + 1
            size = self._queue.qsize()

    async def _score(self, batch: list[_Waiting[Job, Result]]) -> None:
        loop = asyncio.get_running_loop()
        jobs = [waiting.job for waiting in batch]
        left = deque(batch)
        self._being_run += len(jobs)
        start = time.perf_counter()

        def run() -> None:
            for results in self._run_batch(jobs):
                loop.call_soon_threadsafe(self._hand_over, left, results)

        try:
            await loop.run_in_executor(self._threads, run)
        except Exception as error:  # noqa: BLE001  (each waiting client hears of it)
            self._hand_over(left, [error] * len(left))
        assert not left, "a batch gives a result for every job"
        self._on_batch(len(batch), time.perf_counter() - start)

    def _hand_over(
        self, left: deque[_Waiting[Job, Result]], results: Sequence[Result | Exception]
    ) -> None:
        """Give the first of those who are left their results; on the event loop's thread."""
        self._being_run -= len(results)
        for result in results:
            waiting = left.popleft()
            if waiting.done.done():
                continue
            if isinstance(result, Exception):
                waiting.done.set_exception(result)
            else:
                waiting.done.set_result(result)
