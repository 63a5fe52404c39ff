"""Locks: a file or folder that one process holds while other processes wait or fail.

The locks are those of the operating system. They end with the process, however it ends, and
leave no lock file behind.
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
"""Seconds between two attempts to take a lock that another process holds."""


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock of an existing file or folder while the block runs.

    If another process holds it, raises BlockingIOError; with `waiting` given, waits for that
    process instead and calls `waiting` before each new attempt. Where the file system or the
    operating system has no such locks, the block runs without one.
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
            # Closing is not enough: a forked child process has the same descriptor open.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _opened(path: Path) -> int:
    """A descriptor of `path` to lock; open for writing if possible, as network drives demand."""
    with suppress(OSError):  # a folder or a read-only file cannot be opened for writing
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
