"""Tracking: metrics as JSON lines, always, and as TensorBoard events where it is installed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from conekg.training.checkpoint import write_atomically

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class Tracker:
    """Appends to a run's metrics; one line an event, flushed as it is written."""

    def __init__(self, folder: Path, *, from_step: int = 0) -> None:
        """Open the metrics of a run, dropping what lies after `from_step`.

        A killed run may have logged steps that its last checkpoint does not know; they are
        run again, and would otherwise be in the file twice.
        """
        self._path = folder / METRICS_FILE
        if self._path.exists():
            _keep_until(self._path, from_step)
        self._file = self._path.open("a", encoding="utf-8")
        self._events = _open_tensorboard(folder / TENSORBOARD_FOLDER, from_step)

    def log(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Record what was measured after `step` steps; `kind` is `train` or `valid`."""
        line = {"step": step, "kind": kind} | dict(values)
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Flush and close both files."""
        self._file.close()
        if self._events is not None:
            self._events.close()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_metrics(folder: Path) -> list[dict[str, float | str]]:
    """The lines of a run's metrics, oldest first; a line cut short by a kill is left out."""
    path = folder / METRICS_FILE
    return _parse(path.read_text(encoding="utf-8")) if path.exists() else []


def _parse(text: str) -> list[dict[str, float | str]]:
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break  # only the last line can be incomplete
    return lines


def _keep_until(path: Path, step: int) -> None:
    kept = [line for line in _parse(path.read_text(encoding="utf-8")) if int(line["step"]) <= step]
    write_atomically(path, "".join(json.dumps(line) + "\n" for line in kept).encode())


def _open_tensorboard(folder: Path, from_step: int) -> SummaryWriter | None:
    """A writer of TensorBoard events, or None where the package is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=from_step + 1)
