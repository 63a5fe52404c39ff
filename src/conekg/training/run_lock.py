"""One process trains a run at a time: two would write over each other's checkpoints.

The lock is of the operating system and on `run.json`, so that it ends with the process,
however that ends, and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conekg.errors import CheckpointError
from conekg.graph.source import RUN_FILE

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


@contextmanager
def held_for_training(folder: Path) -> Iterator[None]:
    """Hold a run; CheckpointError where another process trains it.

    Where the file system or the operating system has no such locks, nothing is held.
    """
    with (folder / RUN_FILE).open("rb") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"{folder} is being trained by another process",
                hint="wait for it, or stop it with Ctrl-C, which saves; a run of your own goes to "
                "another folder",
            ) from None
        except OSError:
            pass  # some network file systems have no locks
        yield
