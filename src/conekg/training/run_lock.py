"""One process trains a run at a time: two would write over each other's checkpoints.

The lock is of the operating system and on `run.json`, so that it ends with the process,
however that ends, and leaves nothing behind.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from conekg.errors import CheckpointError
from conekg.graph.source import RUN_FILE

fcntl: ModuleType | None
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # not a Unix
    fcntl = None


@contextmanager
def held_for_training(folder: Path) -> Iterator[None]:
    """Hold a run; CheckpointError where another process trains it.

    Where the file system or the operating system has no such locks, nothing is held.
    """
    if fcntl is None:
        yield
        return
    with (folder / RUN_FILE).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"{folder} is being trained already",
                hint="wait for that to end, or stop it with Ctrl-C, which saves; a run of your own "
                "goes to another folder",
            ) from None
        except OSError:
            pass  # some network file systems have no such locks
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)  # a child that was forked has the file open too
