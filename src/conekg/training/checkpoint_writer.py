"""Writes checkpoints in a background thread while training goes on.

Writing gigabytes and computing their checksum takes seconds, in which a GPU would be idle. Only
the copy to the CPU's memory is made at once. The format on disk is in `checkpoint`.
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
    """Writes checkpoints in a thread of its own; at the end of its block all are written."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conekg-checkpoint")
        self._pending: Future[None] | None = None

    def save(self, *folders: Path, checkpoint: Checkpoint) -> None:
        """Start to write a copy of a checkpoint to each folder in turn; stop if one fails.

        First waits for the checkpoint before it, so that there is never more than one copy in
        memory, and raises its error if it failed.
        """
        self.wait()
        copy = replace(
            checkpoint,
            parameters=_copied(checkpoint.parameters),
            optimizer=_copied(checkpoint.optimizer),
        )
        self._pending = self._thread.submit(_write, folders, copy)

    def check(self) -> None:
        """Raise the error of the last checkpoint if its writing has failed; does not wait."""
        if self._pending is not None and self._pending.done():
            self.wait()

    def wait(self) -> None:
        """Wait until the last checkpoint is written; raise its error if that failed."""
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
    """Copies of the tensors in the memory of the CPU."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
