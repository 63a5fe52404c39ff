"""Places for what will be written: where a path leads, and whether it can be written there.

Asked before minutes are spent on the content; whoever writes it checks what else it needs.
A file that must not be found half written is put in its place when it is complete.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from conekg.errors import ConfigError, DataError, StoreError


def as_path(value: object, what: str) -> Path:
    """A path that was given as text or as a path; ConfigError where it is anything else."""
    if isinstance(value, str | os.PathLike):
        return Path(value)
    given = "None" if value is None else f"of type {type(value).__name__}"
    raise ConfigError(f"{what} is {given}; it must be a path, as text or as a Path", key=what)


def place_of(path: Path) -> Path:
    """Where `path` leads, links followed: what is moved there must not replace a link."""
    return Path(os.path.realpath(path))


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, moved to `path` once the block is done; left nowhere if that fails.

    The content reaches the disk before the name does, and a link stays one. Missing folders
    are made.
    """
    target = place_of(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    writer = f"{os.getpid()}-{threading.get_ident()}"
    partial = target.with_name(f".{target.name}.{writer}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new, never a part.

    The content reaches the disk before the name does; on failure nothing is left behind.
    """
    with written_whole(path) as file:
        file.write(content)
    _sync_folder(place_of(path).parent)


def check_name(path: Path) -> None:
    """Raise DataError where a path is not UTF-8: Arrow cannot open it, nor can a header hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise DataError(
            "its name is not UTF-8", path=str(path), hint="rename it, or choose another"
        ) from None


def check_place(path: Path) -> None:
    """Raise DataError unless something can be created at `path`, its folders included.

    Tried, not read off permission bits: those do not tell of a file system that is read-only.
    """
    check_name(path)
    folder = place_of(path).parent
    while not os.access(folder, os.F_OK):  # also false where one may not look
        folder = folder.parent
    if not folder.is_dir():
        raise StoreError(
            f"cannot be written: {folder} is a file", path=str(path), hint="choose another place"
        )
    try:
        with tempfile.TemporaryDirectory(prefix=".conekg-", dir=folder):
            pass
    except OSError as error:
        raise StoreError(
            f"cannot be written: {error.strerror} in {folder}",
            path=str(path),
            hint="choose another place",
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder for results, and those above it, where there is none."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {path}: {error.strerror}") from error


def sync_tree(folder: Path) -> None:
    """Have all that is in a folder reach the disk, before a rename that a power failure keeps."""
    for parent, _, names in os.walk(folder):
        for name in names:
            with Path(parent, name).open("r+b") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(parent))


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power failure, where the system lets folders be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
