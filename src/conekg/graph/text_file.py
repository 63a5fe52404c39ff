"""Lines of text files, packed or not, and what is wrong with the first bad one.

Files are read fast by other means; this module reads them again, slowly, when
something was wrong, so that the message can name the line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from conekg.errors import DataError
from conekg.graph.packed_file import open_bytes, unmarked_packing

DELIMITERS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
"""Text formats by the end of the file's name."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs put before text in UTF-8; it is no part of the text."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""How text in UTF-16 begins."""

_MISQUOTED = re.compile(rb'"(?<=[,\r\n]")(?:[^"\r\n]++|"")*+(?:"[^",\r\n]|[\r\n])')
"""A quote that opens, and one that closes with more of the field after it, or none on its line.
Begins with the bare quote, so that text without quotes is passed over fast."""


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line that is not blank, without its line end, with its number from 1.

    A line ends where Arrow ends it: at LF, CR LF or a lone CR.
    """
    with open_bytes(path) as file:
        lines = (line for until_lf in file for line in until_lf.splitlines())
        for number, line in enumerate(lines, start=1):
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            if line:
                yield number, line


def fields_of(
    path: Path, delimiter: str, columns: int | None, needed: Sequence[int] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is not blank, with its number.

    Fails at the first line that is not UTF-8, has another number of `columns`, or has an
    empty field among those `needed`, which are all unless given; with `columns` unset any
    number will do.
    """
    for number, line in lines_of(path):
        if number == 1:
            _check_start(line, path)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"byte {line[error.start]:#04x} at column {error.start + 1} is not UTF-8",
                path=str(path),
                line=number,
                hint="convert the file to UTF-8",
            ) from error
        fields = text.split("\t") if delimiter == "\t" else _csv_fields(text, path, number)
        if columns is not None:
            _check_fields(fields, columns, needed, delimiter, path, number)
        yield number, fields


def _check_start(line: bytes, path: Path) -> None:
    """Refuse what is no text in UTF-8 from its first byte on."""
    if (told := unmarked_packing(line)) is not None:
        raise DataError("is compressed, but its name does not say so", path=str(path), hint=told)
    if line.startswith(_UTF_16):
        raise DataError(
            "is text in UTF-16; UTF-8 is read",
            path=str(path),
            hint="save it as UTF-8, which Excel calls 'CSV UTF-8', or convert it: "
            "`iconv -f UTF-16 -t UTF-8 FILE > NEW`",
        )


def _csv_fields(text: str, path: Path, number: int) -> list[str]:
    """The fields of a line; one that is quoted amiss would be taken for something else."""
    try:
        fields = next(csv.reader([text]))
    except csv.Error as error:
        raise DataError(
            f"cannot be read as CSV: {error}",
            path=str(path),
            line=number,
            hint="is a quote left open?",
        ) from error
    fault = _strict_fault(text)
    if "expected after" in fault:
        raise DataError(
            f"a name goes on after its closing quote: {text[:80]!r}",
            path=str(path),
            line=number,
            hint="end the name at its closing quote; a quote within quotes is written twice, "
            'as in "5"" pipe"',
        )
    if "unexpected end of data" in fault:
        raise DataError(
            f"a quote is not closed on its line: {text[:80]!r}",
            path=str(path),
            line=number,
            hint="every fact is one line, so that no name can hold a line end",
        )
    if [field.lstrip() for field in fields] != [
        field.lstrip() for field in next(csv.reader([text], skipinitialspace=True))
    ]:
        raise DataError(
            f"a space stands before a quote: {text[:80]!r}",
            path=str(path),
            line=number,
            hint="begin the quote right after the comma",
        )
    return fields


def _strict_fault(text: str) -> str:
    """What is wrong with the quotes of a line of CSV, as the parser says it; empty if nothing."""
    try:
        next(csv.reader([text], strict=True))
    except csv.Error as error:
        return str(error)
    return ""


def _check_fields(
    fields: list[str],
    columns: int,
    needed: Sequence[int] | None,
    delimiter: str,
    path: Path,
    number: int,
) -> None:
    what = "tab" if delimiter == "\t" else "comma"
    if len(fields) != columns:
        found = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        raise DataError(
            f"{found} found, {columns} {what}-separated ones expected: "
            f"{delimiter.join(fields)[:80]!r}",
            path=str(path),
            line=number,
            hint=_remedy(fields, columns, delimiter)
            or "a line is `head relation tail`; names may hold spaces, "
            + ("so tabs part them" if what == "tab" else "names with commas are quoted"),
        )
    empty = [place for place in needed or range(columns) if not fields[place]]
    if empty:
        raise DataError(
            f"field {empty[0] + 1} is empty; every line names head, relation and tail",
            path=str(path),
            line=number,
        )


_OTHER_DELIMITERS = {
    "\t": "its columns are parted by tabs: write commas, or let its name end in .tsv",
    ",": "its columns are parted by commas: write tabs, or let its name end in .csv",
    ";": "its columns are parted by semicolons: write tabs (.tsv) or commas (.csv) instead",
}


def _remedy(fields: list[str], columns: int, delimiter: str) -> str | None:
    """What to do about a line with another number of columns, where that can be told."""
    if fields[0].startswith("#"):
        return "if it is a comment, take it out: lines that begin with # are read as all others"
    if len(fields) > columns:
        quoted = "names with commas are quoted; " if delimiter == "," else ""
        return (
            f"{quoted}further columns, such as weights, are left out where the first line says "
            "what each holds: head, relation, tail, weight"
        )
    if len(fields) > 1:
        return None
    if fields[0].startswith("<") and fields[0].rstrip().endswith("."):
        return "it reads as N-Triples: let the file's name end in .nt"
    return next(
        (told for sign, told in _OTHER_DELIMITERS.items() if fields[0].count(sign) == columns - 1),
        None,
    )


def line_of_row(path: Path, row: int) -> int:
    """The line number of the `row`-th line that is not blank, counted from 0."""
    for index, (number, _) in enumerate(lines_of(path)):
        if index == row:
            return number
    raise AssertionError(f"{path} has no row {row}")


class QuoteWatch:
    """Looks for names that go on after their closing quote, or have none, in blocks of a CSV file.

    Where a quote is open to the end of a block, Arrow leaves the lines from there on out. What is
    found is a suspicion: `fields_of` tells. The first field of the file is left out, whose line
    is read for a header anyway.
    """

    def __init__(self) -> None:
        self.suspicious = False
        self._line = b""

    def look(self, block: bytes) -> None:
        """Take in the next block of the file; after the last one, a line end."""
        if b'"' in block or b'"' in self._line:
            self.suspicious |= _MISQUOTED.search(self._line + block) is not None
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._line = self._line + block if end < 0 else block[end:]
