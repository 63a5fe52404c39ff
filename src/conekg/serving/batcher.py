"""Micro-batching: one or a few threads that work on many waiting jobs at a time.

While a thread works on a batch, new jobs queue up and then form the next batch, so that the batches
of a busy server grow by themselves. Results are delivered as they come, so that some clients are
answered, and may ask again, while the rest of the batch is still being worked on. Only after a
batch of several jobs does the next one wait for more, as long as jobs keep coming.
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

_POLL_S = 0.0005
"""Seconds between two looks at the queue while a batch waits for more jobs."""
_MAX_EMPTY_POLLS = 8
"""Polls in a row without a new job after which a batch waits no longer. A number of polls rather
than seconds: when a busy event loop delays the polls, it delays the new jobs too."""

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Waiting(Generic[Job, Result]):
    job: Job
    done: asyncio.Future[Result]


class Batcher(Generic[Job, Result]):
    """Runs jobs in batches on `threads` threads of its own, one batch per thread at a time.

    A batch takes at most one thread's share of all jobs, waiting and running together. If it took
    all that wait, the other threads would have nothing to do, this time and every time after.

    `run_batch` gets at most `max_batch` jobs and yields their results in order, in one or several
    parts; a result may be an exception. After a batch of several jobs, the next one waits up to
    `gather_s` to become as large, while jobs keep coming. Without that, the first clients to ask
    again would always form a small batch. `on_batch` is called with the size and the seconds of
    each batch, on the event loop's thread.
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
        self._num_running = 0
        self._queue: asyncio.Queue[_Waiting[Job, Result] | None] = asyncio.Queue()
        self._threads = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=name)
        self._num_threads = threads
        self._take_lock = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self) -> None:
        """Begin taking jobs; needs a running event loop."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._serve()) for _ in range(self._num_threads)]

    async def close(self) -> None:
        """Finish every accepted job, then stop; later jobs are refused."""
        self._closing = True
        self._queue.put_nowait(None)  # the end of the queue
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
            async with self._take_lock:  # two batches formed at once would split the jobs
                batch = await self._take()
            if batch is None:
                return
            # Leave out jobs whose client has gone or has timed out.
            batch = [waiting for waiting in batch if not waiting.done.done()]
            if batch:
                self._last_size = len(batch)
                await self._score(batch)

    async def _take(self) -> list[_Waiting[Job, Result]] | None:
        """The next batch; None when no job will come any more."""
        first = await self._queue.get()
        await self._gather()
        num_jobs = 1 + self._queue.qsize() + self._num_running
        max_size = min(self._max_batch, -(-num_jobs // self._num_threads))
        batch: list[_Waiting[Job, Result]] = []
        following = first
        while following is not None:
            batch.append(following)
            if len(batch) == max_size or self._queue.empty():
                return batch
            following = self._queue.get_nowait()
        # Put the end back, so that the other threads' tasks see it too.
        self._queue.put_nowait(None)
        return batch or None

    async def _gather(self) -> None:
        """Wait a little for as many jobs as the last batch had, if it had several."""
        until = time.perf_counter() + self._gather_s
        size, empty_polls = self._queue.qsize(), 0
        while (
            1 + size < self._last_size
            and empty_polls < _MAX_EMPTY_POLLS
            and not self._closing
            and time.perf_counter() < until
        ):
            await asyncio.sleep(_POLL_S)
            empty_polls = 0 if self._queue.qsize() > size else empty_polls + 1
            size = self._queue.qsize()

    async def _score(self, batch: list[_Waiting[Job, Result]]) -> None:
        loop = asyncio.get_running_loop()
        jobs = [waiting.job for waiting in batch]
        unanswered = deque(batch)
        self._num_running += len(jobs)
        start = time.perf_counter()

        def run() -> None:
            for results in self._run_batch(jobs):
                loop.call_soon_threadsafe(self._deliver, unanswered, results)

        try:
            await loop.run_in_executor(self._threads, run)
        except Exception as error:  # noqa: BLE001  (raised in each client's `submit`)
            self._deliver(unanswered, [error] * len(unanswered))
        assert not unanswered, "a batch gives a result for every job"
        self._on_batch(len(batch), time.perf_counter() - start)

    def _deliver(
        self, unanswered: deque[_Waiting[Job, Result]], results: Sequence[Result | Exception]
    ) -> None:
        """Hand results to the first of the unanswered jobs; on the event loop's thread."""
        self._num_running -= len(results)
        for result in results:
            waiting = unanswered.popleft()
            if waiting.done.done():
                continue
            if isinstance(result, Exception):
                waiting.done.set_exception(result)
            else:
                waiting.done.set_result(result)
