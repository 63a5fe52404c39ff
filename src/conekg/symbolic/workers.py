"""Threads that share out pieces of work: results come in order, each thread has its own memory.

The compiled loops release Python's global lock, so plain threads use every core and
share the graph without copies. Results do not depend on which thread takes which piece.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import local
from typing import Generic, TypeVar

from conekg.errors import ConfigError

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """The results of `work` on each item, in order, computed ahead by `workers` threads.

    By default there is one thread per core. Only a few items are taken ahead of the result that
    is consumed, so `items` may be endless and the consumer may stop at any point.
    """
    count = available_cores() if workers is None else workers
    if count < 1:
        raise ConfigError(f"workers is {count}; it must be 1 or more", key="workers")
    if count == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(count) as pool:
        ahead: deque[Future[Result]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(work, item))
                if len(ahead) > 2 * count:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


class PerThread(local, Generic[Result]):
    """A separate value for each thread, which `make` creates when the thread first uses it."""

    def __init__(self, make: Callable[[], Result]) -> None:
        # `local` calls this again in every thread.
        self.value = make()
