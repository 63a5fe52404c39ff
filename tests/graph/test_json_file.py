"""conekg's own JSON files: what is read, what is refused with which message, what is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conekg.graph.json_file import read_json, read_object, value_of, write_object


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "it is not JSON: Expecting property name"),
        (b"conekg", "it is not JSON: Expecting value"),
        (b'{"name": "\xff"}', "it is not JSON: 'utf-8' codec can't decode byte 0xff"),
        ('{"name": "x"}'.encode("utf-16"), "it is not JSON: 'utf-8' codec"),
        (b'{"step": ' + b"7" * 5000 + b"}", "it is not JSON: Exceeds the limit"),
        (b"[" * 200_000, "it is not JSON of ours: it is nested too deep"),
        (b'{"a":' * 200_000, "it is not JSON of ours: it is nested too deep"),
    ],
    ids=range(9),
)
def test_files_that_are_not_json_are_refused(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    for read in (read_json, read_object):
        with pytest.raises(ValueError, match=f"^{re.escape(complaint)}"):
            read(path)


@pytest.mark.parametrize(("text", "found"), [("[1]", "[1]"), ("null", "None"), ("7", "7")])
def test_content_that_is_not_an_object_is_shown_in_the_error(
    tmp_path: Path, text: str, found: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    assert read_json(path) == json.loads(text)
    complaint = f"it holds {found}, where an object belongs"
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        read_object(path)


def test_a_long_value_is_shortened_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(["x" * 1000] * 1000))
    with pytest.raises(ValueError, match="it holds ") as caught:
        read_object(path)
    assert len(str(caught.value)) < 300


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    for read in (read_json, read_object):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "file.json")


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"name": "Åland"}', encoding="utf-8-sig")
    assert read_object(path) == {"name": "Åland"}


CONTENT: dict[str, Any] = {
    "yes": True,
    "step": 3,
    "seconds": 1.5,
    "name": "x",
    "knots": [1],
    "files": {"a": 1},
    "none": None,
}


def test_values_of_the_right_kind_are_given() -> None:
    kinds = (bool, int, float, str, list, dict)
    for key, kind in zip(CONTENT, kinds, strict=False):
        value = value_of(CONTENT, key, kind)
        assert value == CONTENT[key]
        assert type(value) is kind
    whole = value_of(CONTENT, "step", float)
    assert whole == 3.0
    assert type(whole) is float


@pytest.mark.parametrize(
    ("key", "kind", "complaint"),
    [
        ("step", bool, "'step' is 3, not true or false"),
        ("yes", int, "'yes' is True, not a whole number"),
        ("seconds", int, "'seconds' is 1.5, not a whole number"),
        ("yes", float, "'yes' is True, not a number"),
        ("files", str, "'files' is {'a': 1}, not a string"),
        ("name", list, "'name' is 'x', not a list"),
        ("none", dict, "'none' is None, not an object"),
        ("size", int, "it lacks 'size'"),
    ],
)
def test_values_of_other_kinds_are_named(key: str, kind: type, complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        value_of(CONTENT, key, kind)
    owned = complaint.replace(repr(key), f"{key!r} of 'edges.npy'")
    with pytest.raises(ValueError, match=f"^{re.escape(owned)}$"):
        value_of(CONTENT, key, kind, "edges.npy")


def test_a_whole_number_that_no_float_holds_is_refused() -> None:
    assert value_of({"seconds": 2**1022}, "seconds", float) == 2.0**1022
    with pytest.raises(ValueError, match=r"'seconds' is .*, not a number"):
        value_of({"seconds": 2**1024}, "seconds", float)


def test_a_written_object_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text("old")
    write_object(path, CONTENT)
    assert read_object(path) == CONTENT
    assert list(tmp_path.iterdir()) == [path]
