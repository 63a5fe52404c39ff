"""Reads and writes conekg's own JSON files, checking the type of each value.

A bad file is a `ValueError` whose message is about "it"; the caller adds the path and a remedy
and raises an error of its own. Files are written atomically.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from conekg.graph.place import write_atomically

_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
"""How messages name the types of JSON values."""

Value = TypeVar("Value")


def read_json(path: Path) -> Any:
    """The content of a JSON file; `ValueError` if it is empty, not JSON, or nested too deep."""
    content = path.read_bytes()
    if not content.strip():
        raise ValueError("it is empty")
    try:
        return json.loads(content.decode("utf-8-sig"))  # editors may add a byte order mark
    except RecursionError:
        raise ValueError("it is not JSON of ours: it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; `ValueError` if the file holds something else."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"it holds {reprlib.repr(content)}, where an object belongs")
    return content


def value_of(
    content: Mapping[str, Any], key: str, kind: type[Value], owner: str | None = None
) -> Value:
    """The value of `key` in an object; `ValueError` if it is missing or of another type.

    A whole number is accepted where a float is wanted. `owner` names the object in messages, for
    files where several objects have that key.
    """
    place = repr(key) if owner is None else f"{key!r} of {owner!r}"
    if key not in content:
        raise ValueError(f"it lacks {place}")
    value = content[key]
    if kind is float and type(value) is int and value.bit_length() < 1024:  # fits in a float
        value = float(value)
    # Not isinstance: true and false are instances of int.
    if type(value) is not kind:
        raise ValueError(f"{place} is {reprlib.repr(value)}, not {_KINDS[kind]}")
    return value


def write_object(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file so that a reader finds the old object or the new, never a part."""
    write_atomically(path, json.dumps(content, indent=2).encode())
