"""Where the queries of exported pickles come from: a small file that an export leaves beside them.

The pickles have no place for it, and a folder that does not say it is taken for the release of its
form. The file names the pickles of queries with their checksums. So it says nothing about other
pickles that are put in their place, such as those of the release itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conekg.errors import DataError, StoreError
from conekg.graph.json_file import read_object, value_of, write_object
from conekg.sampling.query_set import QuerySet
from conekg.version import VERSION

FORMAT_VERSION = 1
_FACTS: dict[str, type] = {"protocol": str, "seed": int, "release": str, "paths_from": str}
"""The fields of a query set that the file holds, and their types; each may also be None."""


def write_origin(path: Path, query_set: QuerySet, files: Sequence[Path]) -> None:
    """Write to `path` where the queries of a set, exported to `files`, come from."""
    content = {
        "format": FORMAT_VERSION,
        "conekg": VERSION,
        **{key: getattr(query_set, key) for key in _FACTS},
        "files": {file.name: _checksum(file) for file in files},
    }
    try:
        write_object(path, content)
    except OSError as error:
        raise StoreError(f"cannot be written: {error.strerror or error}", path=str(path)) from error


def with_origin(query_set: QuerySet, path: Path, files: Sequence[Path]) -> QuerySet:
    """The set that was read from `files`, with the origin that `path` states for all of them.

    It is returned as it is if there is no such file, or if it is about other files.
    """
    try:
        content = read_object(path)
        version = value_of(content, "format", int)
        stated = value_of(content, "files", dict) if version == FORMAT_VERSION else {}
        facts = {key: _fact(content, key) for key in _FACTS} if version == FORMAT_VERSION else {}
    except FileNotFoundError:
        return query_set
    except (OSError, ValueError) as error:
        raise _unusable(path, f"cannot be used: {error}") from error
    if version != FORMAT_VERSION:
        raise _unusable(path, f"has format {version}; this version reads {FORMAT_VERSION}")
    if any(stated.get(file.name) != _checksum(file) for file in files):
        return query_set
    return replace(query_set, **facts)


def _fact(content: dict[str, Any], key: str) -> Any:
    """The value of a key that may be null; `ValueError` if it is missing or of another type."""
    if content.get(key, "missing") is None:
        return None
    return value_of(content, key, _FACTS[key])


def _unusable(path: Path, why: str) -> DataError:
    return DataError(
        why,
        path=str(path),
        hint="it says where the exported queries beside it come from: export them again, or remove "
        "the file if they are those of the release",
    )


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
