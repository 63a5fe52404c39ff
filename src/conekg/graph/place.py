"""Output paths: where a path leads, whether it can be written, and atomic writing of files.

`check_place` is called before long computations, so that a bad path fails early; other checks
are left to the callers that write. A file is written under a temporary name and renamed when it
is complete, so that no reader finds half of it.
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
    """`value`, a string or path, as a Path; ConfigError if it is anything else.

    `what` names the value in the message and is the error's key.
    """
    if isinstance(value, str | os.PathLike):
        return Path(value)
    given = "None" if value is None else f"of type {type(value).__name__}"
    raise ConfigError(f"{what} is {given}; it must be a path, as text or as a Path", key=what)


def place_of(path: Path) -> Path:
    """`path` with links resolved: a rename onto the link itself would replace the link."""
    return Path(os.path.realpath(path))


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which is renamed to `path` when the block ends without an error.

    If the block fails, nothing is left behind. The content is flushed to disk before the rename.
    A link at `path` is kept: the file it leads to is replaced. Missing folders are made.
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
    """Write a file so that readers find either the old content or the new, even after a crash.

    On failure nothing is left behind.
    """
    with written_whole(path) as file:
        file.write(content)
    _sync_folder(place_of(path).parent)


def check_name(path: Path) -> None:
    """Raise DataError if a path is not UTF-8: Arrow and the header of a store do not accept it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise DataError(
            "its name is not UTF-8", path=str(path), hint="rename it, or choose another"
        ) from None


def check_place(path: Path) -> None:
    """Raise DataError unless something can be created at `path`, missing folders included.

    A temporary folder is made as a test, since permission bits do not show that a file system is
    read-only.
    """
    check_name(path)
    folder = place_of(path).parent
    while not os.access(folder, os.F_OK):  # also false for a folder that may not be searched
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
    """Make a folder and its missing parents; ConfigError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {path}: {error.strerror}") from error


def sync_tree(folder: Path) -> None:
    """Flush all files below a folder to disk.

    Without this, a power failure soon after a rename could keep the rename and lose the content.
    """
    for parent, _, names in os.walk(folder):
        for name in names:
            with Path(parent, name).open("r+b") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(parent))


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename in it survives a power failure.

    Only on POSIX systems; others do not let folders be opened.
    """
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
