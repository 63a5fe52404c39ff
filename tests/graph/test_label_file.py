from __future__ import annotations

from pathlib import Path

import pytest

from conekg.errors import DataError
from conekg.graph.label_file import read_labels


@pytest.mark.parametrize(
    "content",
    ["q1\tFrance\nq2\t\nq3\tFiji\n", "0\tq1\tFrance\tcountry\n1\tq2\t\t\n2\tq3\tFiji\tcountry\n"],
)
def test_two_columns_or_more_tell_the_same(content: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(content)
    assert read_labels(path) == {"q1": "France", "q3": "Fiji"}


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("q1\tFrance\nq2\n", 2, "1 column found"),
        ("q1\tFrance\nq1\tFiji\n", 2, "'q1' has a second label"),
    ],
)
def test_bad_lines_are_named(content: str, line: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_labels(path)
    assert caught.value.line == line
