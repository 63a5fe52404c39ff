"""Label files: readable names for entities or relations, one a line, tab-separated or CSV.

Two columns are name and label; three or more are id, name and label, as the readable
names beside the public benchmarks come.
"""

from __future__ import annotations

from pathlib import Path

from conekg.errors import DataError
from conekg.graph.packed_file import bare_suffix
from conekg.graph.text_file import DELIMITERS, fields_of


def read_labels(path: str | Path) -> dict[str, str]:
    """Labels by name; a line whose label is blank is skipped.

    Raises `DataError`, with the line, where one is no label or a name has two, and where none
    is left.
    """
    path = Path(path)
    labels: dict[str, str] = {}
    delimiter = DELIMITERS.get(bare_suffix(path), "\t")
    parted = "tab" if delimiter == "\t" else "comma"
    for number, fields in fields_of(path, delimiter, None):
        if len(fields) < 2:
            raise DataError(
                f"1 column found, 2 {parted}-separated ones (name, label) or 3 (id, name, label) "
                f"expected: {fields[0]!r}",
                path=str(path),
                line=number,
            )
        name, label = fields[:2] if len(fields) == 2 else fields[1:3]
        if not label.strip():
            continue
        if labels.setdefault(name, label) != label:
            raise DataError(f"{name!r} has a second label", path=str(path), line=number)
    if not labels:
        raise DataError(
            f"no label is in it; a line is a name and its label, {parted}-separated",
            path=str(path),
            hint="leave the file out where there are no labels",
        )
    return labels
