"""Label files: readable names for entities or relations, one per line, tab-separated or CSV.

A line with two columns is name and label. One with three or more is id, name and label, the
format of the label files that come with the public benchmarks; further columns are ignored.
"""

from __future__ import annotations

from pathlib import Path

from conekg.errors import DataError
from conekg.graph.packed_file import bare_suffix
from conekg.graph.text_file import DELIMITERS, fields_of


def read_labels(path: str | Path) -> dict[str, str]:
    """Labels by name; a line whose label is blank is skipped.

    Raises `DataError` with the line number where a line has one column or gives a name a second,
    different label, and `DataError` where the file has no label at all.
    """
    path = Path(path)
    labels: dict[str, str] = {}
    delimiter = DELIMITERS.get(bare_suffix(path), "\t")
    separator = "tab" if delimiter == "\t" else "comma"
    for number, fields in fields_of(path, delimiter, None):
        if len(fields) < 2:
            raise DataError(
                f"1 column found, 2 {separator}-separated ones (name, label) or 3 (id, name, "
                f"label) expected: {fields[0]!r}",
                path=str(path),
                line=number,
            )
        name, label = fields[:2] if len(fields) == 2 else fields[1:3]
        if not label.strip():
            continue
        first = labels.setdefault(name, label)
        if first != label:
            raise DataError(
                f"{name!r} has a second label, {label!r}, after {first!r}",
                path=str(path),
                line=number,
                hint="keep one of the two lines",
            )
    if not labels:
        raise DataError(
            f"no label is in it; a line is a name and its label, {separator}-separated",
            path=str(path),
            hint="leave the file out where there are no labels",
        )
    return labels
