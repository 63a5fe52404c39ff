"""Files that commands write results to: checked before the work starts, then written whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conekg.cli.console import say
from conekg.errors import ConfigError
from conekg.graph.place import place_of, written_whole
from conekg.graph.source import RUN_FILE

_RUN_FOLDERS = ("graph", "queries", "checkpoints", "tensorboard")
_RUN_FILES = (
    RUN_FILE,
    "recipe.toml",
    "metrics.jsonl",
    "evaluation.json",
    "calibration.json",
    "calibration-last.json",
)
"""The files of a run (docs/run-folder.md); `_RUN_FOLDERS` are its folders."""


def check_files(paths: Sequence[Path | None], sources: Sequence[str | Path] = ()) -> None:
    """Raise ConfigError at a file that cannot be written, before the work for it starts.

    Also if two results would go to one file, or if a result would replace a file of `sources`,
    which the command reads, or a file of a run.
    """
    given = [path for path in paths if path is not None]
    read = {place_of(Path(source)) for source in sources}
    for number, path in enumerate(given):
        place = place_of(path)
        if place in read or (place.exists() and read.intersection(place.parents)):
            raise ConfigError(
                f"cannot write {path}: the command reads from there; choose another place"
            )
        if place in map(place_of, given[:number]):
            raise ConfigError(
                f"cannot write {path}: another result goes to the same file; choose two files"
            )
        refuse_part_of_run(path)
        _check_writable(path)


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ConfigError(f"cannot write {path}: it is a folder")
    place = place_of(path)
    if place.exists() and not place.is_file():
        return  # such as a pipe; opening one would wait for its reader
    try:
        # Try it: on some file systems, permission bits do not say whether writing is possible.
        with tempfile.NamedTemporaryFile(prefix=".conekg-", dir=place.parent):
            pass
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror} in {place.parent}") from error


def refuse_part_of_run(path: Path) -> None:
    """Raise ConfigError at a path that is part of a run; other files in its folder are allowed."""
    place = place_of(path)
    if place.name in _RUN_FILES and (place.parent / RUN_FILE).is_file():
        raise _part_of_run(path, place.parent)
    for part in (place, *place.parents):
        if part.name in _RUN_FOLDERS and (part.parent / RUN_FILE).is_file():
            raise _part_of_run(path, part.parent)


def _part_of_run(path: Path, run: Path) -> ConfigError:
    return ConfigError(
        f"cannot write {path}: it is part of the run {run} and would replace the run's own data; "
        "choose another place",
        key="out",
    )


def write_file(path: Path, text: str, done: str = "wrote") -> None:
    """Write a result, whole or not at all, and print `done` and the path."""
    try:
        # A pipe or a terminal cannot be replaced as a whole.
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            with written_whole(path) as file:
                file.write(text.encode())
                if path.exists():
                    shutil.copymode(path, file.name)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    say(f"{done} {path}")
