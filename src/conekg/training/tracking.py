"""Tracking: writes metrics as JSON lines and, if TensorBoard is installed, as its events."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conekg.errors import CheckpointError
from conekg.graph.place import write_atomically
from conekg.training.checkpoint import cannot_read

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class Tracker:
    """Appends to the metrics of a run: one line per event, flushed at once."""

    def __init__(self, folder: Path, *, from_step: int = 0) -> None:
        """Open the metrics of a run and remove the lines of steps after `from_step`.

        A killed run may have logged steps after its last checkpoint. They are run again and would
        otherwise be in the file twice.
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
    """The lines of a run's metrics, oldest first; a last line that was cut short is left out."""
    path = folder / METRICS_FILE
    return _parse(path) if path.exists() else []


def _parse(path: Path) -> list[dict[str, float | str]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise cannot_read(path, error) from error
    measured = []
    for number, line in enumerate(lines, start=1):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise _damaged(path, number) from error
        if not _is_measurement(content):
            raise _damaged(path, number)
        measured.append(content)
    return measured


def _is_measurement(content: Any) -> bool:
    """Whether a line is what `Tracker.log` writes."""
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        return False
    numbers = [value for key, value in content.items() if key != "kind"]
    return type(content.get("step")) is int and all(type(n) in (int, float) for n in numbers)


def _damaged(path: Path, number: int) -> CheckpointError:
    return CheckpointError(
        f"{path} is damaged: line {number} is not a step with what was measured after it",
        hint="remove the line; weights and answers do not depend on it",
    )


def _keep_until(path: Path, step: int) -> None:
    kept = [line for line in _parse(path) if int(line["step"]) <= step]
    write_atomically(path, "".join(json.dumps(line) + "\n" for line in kept).encode())


def _open_tensorboard(folder: Path, from_step: int) -> SummaryWriter | None:
    """A writer of TensorBoard events, or None where the package is not installed."""
    package = importlib.util.find_spec("tensorboard")
    # A folder of that name, such as that of a run, is found as a package without an origin.
    if package is None or package.origin is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=from_step + 1)
