"""Files that commands write results to: refused before the work, told when written."""

from __future__ import annotations

from pathlib import Path

from conekg.cli.console import say
from conekg.errors import ConfigError
from conekg.graph.place import place_of
from conekg.graph.source import RUN_FILE


def check_file(path: Path | None) -> None:
    """Refuse a file that cannot be written, before minutes are spent on what goes into it."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ConfigError(f"cannot write {path}: it is a folder")


def refuse_part_of_run(path: Path) -> None:
    """Refuse to write over the graph or the queries of a run, which belong to its model."""
    place = place_of(path)
    for part in (place, place.parent):
        if part.name in ("graph", "queries") and (part.parent / RUN_FILE).is_file():
            raise ConfigError(
                f"cannot write {path}: it is a part of the run {part.parent}, which keeps the "
                "graph and the queries it was started with; choose another place",
                key="out",
            )


def write_file(path: Path, text: str) -> None:
    """Write a result and say so."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    say(f"wrote {path}")
