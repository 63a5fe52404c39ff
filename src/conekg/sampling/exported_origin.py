"""Where the queries of exported pickles come from: a small file that an export leaves beside them.

The pickles have no place for it, and a folder that does not say it is taken for the release of its
form. The file names the pickles of queries with their checksums. So it says nothing about other
pickles that are put in their place, such as those of the release itself. The pickles that it is
about were exported and not changed since, so that a later export may replace them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conekg.errors import DataError
from conekg.graph.json_file import read_object, value_of, write_object
from conekg.sampling.query_set import QuerySet
from conekg.version import VERSION

FORMAT_VERSION = 1
_FACTS: dict[str, type] = {"protocol": str, "seed": int, "release": str, "paths_from": str}
"""The fields of a query set that the file holds, and their types; each may also be None."""


def write_origin(path: Path, query_set: QuerySet, files: Sequence[Path]) -> None:
    """Write to `path` where the queries of a set, exported to `files`, come from.

    Raises `OSError` if that cannot be written.
    """
    content = {
        "format": FORMAT_VERSION,
        "conekg": VERSION,
        **{key: getattr(query_set, key) for key in _FACTS},
        "files": {file.name: _checksum(file) for file in files},
    }
    write_object(path, content)


def with_origin(query_set: QuerySet, path: Path, files: Sequence[Path]) -> QuerySet:
    """The set that was read from `files`, with the origin that `path` states for all of them.

    It is returned as it is if there is no such file, or if it is about other files. Raises
    `DataError` if the file is damaged.
    """
    content = _read(path)
    if content is None or not _is_about(content, files):
        return query_set
    return replace(query_set, **{key: content[key] for key in _FACTS})


def states_origin(path: Path, files: Sequence[Path]) -> bool:
    """Whether `path` states the origin of all of these files: whether they were exported by us."""
    try:
        content = _read(path)
    except DataError:
        return False
    return content is not None and _is_about(content, files)


def _read(path: Path) -> dict[str, Any] | None:
    """The checked content of a file of origin; None if there is no such file."""
    try:
        content = read_object(path)
        version = value_of(content, "format", int)
        if version == FORMAT_VERSION:
            value_of(content, "files", dict)
            for key, kind in _FACTS.items():
                if content.get(key, "missing") is not None:
                    value_of(content, key, kind)
            return content
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unusable(path, f"cannot be used: {error}") from error
    raise _unusable(path, f"has format {version}; this version reads {FORMAT_VERSION}")


def _is_about(content: dict[str, Any], files: Sequence[Path]) -> bool:
    return all(content["files"].get(file.name) == _checksum(file) for file in files)


def _unusable(path: Path, why: str) -> DataError:
    return DataError(
        why,
        path=str(path),
        hint="it says where the exported queries beside it come from: export them into another "
        "folder, or remove the file if they are those of the release",
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
