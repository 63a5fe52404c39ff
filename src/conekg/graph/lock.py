"""Locks: a file or folder that one process holds while others wait or give way.

They are the operating system's, so that they end with the process, however that ends, and
leave nothing behind.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # not a Unix
    fcntl = None

_PAUSE_S = 0.2
"""Seconds between two looks at what another process holds."""


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold `path` for as long as the block lasts.

    Raises BlockingIOError where another process holds it; given `waiting`, waits for that
    process instead and calls `waiting` now and then. Where the file system or the operating
    system has no such locks, nothing is held.
    """
    if fcntl is None:
        yield
        return
    descriptor = _opened(path)
    try:
        _lock(fcntl, descriptor, waiting)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked has it open too
        os.close(descriptor)


def _opened(path: Path) -> int:
    """A descriptor to lock by: for writing if possible, which network file systems ask for."""
    with suppress(OSError):  # a folder, or a file that may only be read
        return os.open(path, os.O_RDWR)
    return os.open(path, os.O_RDONLY)


def _lock(system: ModuleType, descriptor: int, waiting: Callable[[], None] | None) -> None:
    while True:
        try:
            system.flock(descriptor, system.LOCK_EX | system.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise
            waiting()
            time.sleep(_PAUSE_S)
            continue
        except OSError:
            pass  # some network file systems have no such locks
        return
