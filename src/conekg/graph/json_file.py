"""JSON files of ours: read with each value of the kind that belongs there, written whole.

What is wrong with a file is a `ValueError` that says so of "it": whoever reads the file adds
its path and what to do, and raises an error of its own.
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
"""What values are called in messages."""

Value = TypeVar("Value")


def read_json(path: Path) -> Any:
    """What a JSON file holds; `ValueError` where it is not JSON, or nested too deep."""
    content = path.read_bytes()
    if not content.strip():
        raise ValueError("it is empty")
    try:
        return json.loads(content.decode("utf-8-sig"))  # editors may put a mark before it
    except RecursionError:
        raise ValueError("it is not JSON of ours: it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds; `ValueError` says what the file is instead."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"it holds {reprlib.repr(content)}, where an object belongs")
    return content


def value_of(
    content: Mapping[str, Any], key: str, kind: type[Value], owner: str | None = None
) -> Value:
    """What an object has under `key`; `ValueError` where that is missing or of another kind.

    `owner` is what the object is known by, where the file has several with such a key.
    """
    place = repr(key) if owner is None else f"{key!r} of {owner!r}"
    if key not in content:
        raise ValueError(f"it lacks {place}")
    value = content[key]
    if kind is float and type(value) is int and value.bit_length() < 1024:  # what a float holds
        value = float(value)
    # By type, as true and false would be whole numbers too.
    if type(value) is not kind:
        raise ValueError(f"{place} is {reprlib.repr(value)}, not {_KINDS[kind]}")
    return value


def write_object(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file so that a reader finds the old object or the new, never a part."""
    write_atomically(path, json.dumps(content, indent=2).encode())
