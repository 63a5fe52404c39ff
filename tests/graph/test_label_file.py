from __future__ import annotations

from pathlib import Path

import pytest

from conekg.errors import DataError
from conekg.graph.label_file import read_labels


@pytest.mark.parametrize(
    "content",
    [
        "q1\tFrance\nq2\t\nq3\tFiji\nq1\t  \n",
        "0\tq1\tFrance\tcountry\n1\tq2\t\t\n2\tq3\tFiji\tcountry\n",
    ],
)
def test_two_and_more_columns_give_the_same_labels(content: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(content)
    assert read_labels(path) == {"q1": "France", "q3": "Fiji"}


def test_label_files_ending_in_csv_are_comma_separated(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text('q1,"Korea, North"\nq1,\nq2,Fiji\n')
    assert read_labels(path) == {"q1": "Korea, North", "q2": "Fiji"}
    path.write_text("q1\tFrance\n")
    with pytest.raises(DataError, match="2 comma-separated ones"):
        read_labels(path)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("q1\tFrance\nq2\n", 2, "1 column found, 2 tab-separated ones"),
        (
            "q1\tFrance\nq1\tFiji\n",
            2,
            "'q1' has a second label, 'Fiji', after 'France'\nkeep one of",
        ),
    ],
)
def test_bad_lines_are_named(content: str, line: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_labels(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


@pytest.mark.parametrize("content", ["", "\n\n", "q1\t\nq2\t  \n"])
def test_a_file_without_any_label_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"no label is in it; a line .* tab-separated") as caught:
        read_labels(path)
    assert (caught.value.path, caught.value.line) == (str(path), None)
