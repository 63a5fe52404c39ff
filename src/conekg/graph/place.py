"""Places for what will be written: where a path leads, and whether it can be written there.

Asked before minutes are spent on the content; whoever writes it checks what else it needs.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from conekg.errors import StoreError


def place_of(path: Path) -> Path:
    """Where `path` leads, links followed: what is moved there must not replace a link."""
    return Path(os.path.realpath(path))


def check_place(path: Path) -> None:
    """Raise StoreError unless something can be created at `path`, its folders included.

    Tried, not read off permission bits: those do not tell of a file system that is read-only.
    """
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
