"""Checkpoints written while training goes on, in the order in which they were given.

Bringing gigabytes into a file and its checksum takes a processor seconds in which a GPU would
wait. Only the copy is made at once; what a checkpoint is on disk is `checkpoint`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from torch import Tensor

from conekg.training.checkpoint import Checkpoint, save_checkpoint


class CheckpointWriter:
    """Writes what it is given by a thread of its own; all is written where its block ends."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conekg-checkpoint")
        self._pending: Future[None] | None = None

    def save(self, *folders: Path, checkpoint: Checkpoint) -> None:
        """Have a copy of a checkpoint written to one folder after the other, until one fails.

        Waits for the checkpoint before it, and raises what went wrong with that: there is never
        more than one copy in memory.
        """
        self.wait()
        copy = replace(
            checkpoint,
            parameters=_copied(checkpoint.parameters),
            optimizer=_copied(checkpoint.optimizer),
        )
        self._pending = self._thread.submit(_write, folders, copy)

    def check(self) -> None:
        """Raise what went wrong, if that is known by now; waits for nothing."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Return when all is written; raises what went wrong."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.wait()
        self._thread.shutdown()


def _write(folders: Sequence[Path], checkpoint: Checkpoint) -> None:
    for folder in folders:
        save_checkpoint(folder, checkpoint)


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are now, in the memory of the CPU."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
