"""Lines and fields of text files, compressed or not, with errors that name the line.

Large files are read by Arrow elsewhere. When something is wrong with one, this module reads it
again, slowly, to find the first bad line and say what to do about it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from conekg.errors import DataError
from conekg.graph.packed_file import open_bytes, unmarked_packing

DELIMITERS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
"""Endings of text files, with the character that separates their columns."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Bytes that some programs write before UTF-8 text; they are not part of the text."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""The bytes that UTF-16 text begins with."""

_MISQUOTED = re.compile(rb'"(?<=[,\r\n]")(?:[^"\r\n]++|"")*+(?:"[^",\r\n]|[\r\n])')
"""A field that opens with a quote and either goes on after the closing quote or has no closing
quote on its line. The pattern starts with the quote itself, so that text without quotes is
skipped fast."""


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line that is not empty, without its line end, with its number counted from 1.

    Lines end where they do for Arrow: at LF, CR LF or a lone CR.
    """
    with open_bytes(path) as file:
        lines = (line for until_lf in file for line in until_lf.splitlines())
        for number, line in enumerate(lines, start=1):
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            if line:
                yield number, line


def fields_of(
    path: Path,
    delimiter: str,
    columns: int | None,
    needed: Sequence[int] | None = None,
    *,
    line_format: str | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is not empty, with its line number.

    Raises `DataError` at the first line that is not UTF-8, does not have `columns` fields, or has
    an empty field among the indices `needed` (default: all). With `columns` None, a line may have
    any number of fields, and they may be empty. `line_format` describes a line in messages, such as
    "an id and a name"; without it a line is a named triple.
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
            _check_fields(fields, columns, needed, delimiter, path, number, line_format)
        yield number, fields


def _check_start(line: bytes, path: Path) -> None:
    """Raise `DataError` if a file's first bytes are those of a compressed file or of UTF-16."""
    if (remedy := unmarked_packing(line)) is not None:
        raise DataError("is compressed, but its name does not say so", path=str(path), hint=remedy)
    if line.startswith(_UTF_16):
        raise DataError(
            "is text in UTF-16; only UTF-8 is read",
            path=str(path),
            hint="save it as UTF-8, which Excel calls 'CSV UTF-8', or convert it: "
            "`iconv -f UTF-16 -t UTF-8 FILE > NEW`",
        )


def _csv_fields(text: str, path: Path, number: int) -> list[str]:
    """The fields of a CSV line; `DataError` if it has misplaced quotes.

    Python's `csv` and Arrow read such a line without complaint, but not as it was meant.
    """
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
            hint="every fact is one line, so a name cannot contain a line end",
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
    """The error of Python's strict CSV parser for a line; empty if there is none."""
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
    line_format: str | None,
) -> None:
    """Raise `DataError` for a line with the wrong number of fields or an empty field."""
    what = "tab" if delimiter == "\t" else "comma"
    if len(fields) != columns:
        found = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        if line_format is not None:
            hint = f"a line is {line_format}"
        else:
            rule = "so tabs separate them" if what == "tab" else "names with commas are quoted"
            hint = (
                _remedy(fields, columns, delimiter, is_first=number == 1)
                or f"a line is `head relation tail`; names may hold spaces, {rule}"
            )
        raise DataError(
            f"{found} found, {columns} {what}-separated ones expected: "
            f"{delimiter.join(fields)[:80]!r}",
            path=str(path),
            line=number,
            hint=hint,
        )
    empty = [index for index in needed or range(columns) if not fields[index]]
    if empty:
        rule = "every line names head, relation and tail"
        if line_format is not None:
            rule = f"a line is {line_format}"
        raise DataError(f"field {empty[0] + 1} is empty; {rule}", path=str(path), line=number)


_OTHER_DELIMITERS = {
    "\t": "its columns are separated by tabs: write commas, or let its name end in .tsv",
    ",": "its columns are separated by commas: write tabs, or let its name end in .csv",
    ";": "its columns are separated by semicolons: write tabs (.tsv) or commas (.csv) instead",
}


def _remedy(fields: list[str], columns: int, delimiter: str, *, is_first: bool) -> str | None:
    """What to do about a line with the wrong number of columns, if its fields give a clue."""
    if fields[0].startswith("#"):
        return "if it is a comment, remove it: lines that begin with # are read like all others"
    if len(fields) > columns:
        quoted = "names with commas are quoted; " if delimiter == "," else ""
        table = (
            "; a table with a row for each thing is written as facts first, one for each of its "
            "cells: the name of the row, the name of the column, the cell"
        )
        return (
            f"{quoted}further columns, such as weights, are ignored if the first line is a header "
            f"that names them all: head, relation, tail, weight{table if is_first else ''}"
        )
    if len(fields) > 1:
        return None
    if fields[0].startswith("<") and fields[0].rstrip().endswith("."):
        return "it reads as N-Triples: let the file's name end in .nt"
    return next(
        (
            remedy
            for other, remedy in _OTHER_DELIMITERS.items()
            if fields[0].count(other) == columns - 1
        ),
        None,
    )


def line_of_row(path: Path, row: int) -> int:
    """The line number, from 1, of the `row`-th line that is not empty, counted from 0."""
    for index, (number, _) in enumerate(lines_of(path)):
        if index == row:
            return number
    raise AssertionError(f"{path} has no row {row}")


class QuoteWatch:
    """Scans the blocks of a CSV file for fields with text after the closing quote, or without one.

    This is needed because Arrow silently drops lines if a quote is still open at the end of a
    block. `suspicious` only says that the file must be checked with `fields_of`. The file's first
    field is not scanned; its line is checked when it is read as a possible header.
    """

    def __init__(self) -> None:
        self.suspicious = False
        self._line = b""  # the part of the last line that has been seen so far

    def look(self, block: bytes) -> None:
        """Scan the next block of the file; after the last block, call this with a line end."""
        if b'"' in block or b'"' in self._line:
            self.suspicious |= _MISQUOTED.search(self._line + block) is not None
        end = max(block.rfind(b"\n"), block.rfind(b"\r"))
        self._line = self._line + block if end < 0 else block[end:]
