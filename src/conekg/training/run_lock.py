"""The lock of a run: two processes that train it would overwrite each other's checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from conekg.errors import CheckpointError
from conekg.graph.lock import locked
from conekg.graph.source import RUN_FILE


@contextmanager
def held_for_training(folder: Path) -> Iterator[None]:
    """Lock a run during the block; `CheckpointError` if another process is training it.

    If the file system or the operating system has no such locks, nothing is locked.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / RUN_FILE))
        except BlockingIOError:
            raise CheckpointError(
                f"{folder} is already being trained",
                hint="wait until that ends, or stop it with Ctrl-C, which saves; for a new run "
                "choose another folder",
            ) from None
        yield
