"""Output of the commands: results go to standard output, everything else to standard error.

Progress is a bar with rate and time left on a terminal. Elsewhere it is a plain line now and then,
so that logs stay readable.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, Protocol

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from conekg.errors import ConeKGError
from conekg.lines import one_line
from conekg.query.tokens import quote

PLAIN_INTERVAL_S = 10.0
"""Seconds between progress lines when standard error is not a terminal."""

_WIDEST = 10_000
"""Largest width, in characters, of a table that is printed in its full width."""


def messages() -> Console:
    """A console on standard error, for status, progress and errors.

    A new one for each message, so that it follows a redirection of `sys.stderr`.
    """
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a message about what is going on, on standard error."""
    messages().print(Text(text))


def warn(text: str) -> None:
    """Print a warning on standard error."""
    messages().print(Text.assemble(("warning: ", "bold yellow"), text))


def print_error(error: ConeKGError) -> None:
    """Print an error on standard error: what was wrong, and below it what to do."""
    console = messages()
    console.print(Text.assemble(("error: ", "bold red"), error.message))
    if error.hint:
        console.print(Text(error.hint, style="cyan"))


def escape_what_cannot_be_printed() -> None:
    """Print characters that standard output's encoding lacks as escapes, instead of failing.

    Names may be in any script, and not every terminal or locale uses UTF-8.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print one JSON document on standard output; names are not escaped if the encoding allows."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    # Use JSON's own escapes: those of `escape_what_cannot_be_printed` are not valid in JSON.
    ascii_only = not encoding.lower().startswith("utf")
    typer.echo(json.dumps(value, ensure_ascii=ascii_only, indent=indent))


def print_csv(rows: Iterable[Iterable[str | int | float | None]]) -> None:
    """Print rows of CSV on standard output; None is an empty cell.

    Always in UTF-8, whatever the terminal's encoding, because CSV has no escapes.
    """
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    # As bytes: a text stream may change line ends, also those within names.
    typer.echo(text.getvalue().encode("utf-8", "backslashreplace"), nl=False)


def print_text(text: str) -> None:
    """Print a line of a result on standard output, without formatting."""
    typer.echo(text)


def listed(names: Iterable[str], notes: Iterable[str] = ()) -> str:
    """Names separated by commas; a name that contains a comma and a space is in quotes.

    Each name is followed by its note in brackets, outside the quotes, if it has one.
    """
    quoted = (one_line(quote(name) if ", " in name else name) for name in names)
    pairs = zip_longest(quoted, notes, fillvalue="")
    return ", ".join(f"{name} ({note})" if note else name for name, note in pairs)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on standard output; columns of numbers are aligned to the right."""
    # A `Text`, because rich would take brackets in a graph's name for markup.
    whole_title = Text(one_line(title), style="table.title")
    table = Table(title=whole_title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console = Console(highlight=False)
    if _has_width(console) and _width(console, table) > console.width:
        _fold_headings(table)
    print_fitting(table)


def _fold_headings(table: Table) -> None:
    """Let no column be wider than its cells and the words of its heading need."""
    for column in table.columns:
        texts = (*str(column.header).split(), *map(str, column.cells))
        column.max_width = max(map(cell_len, texts), default=1)


def print_fitting(table: Table) -> None:
    """Print a table on standard output, folding cells to fit a terminal.

    In a file or a pipe every row is one line, so that names can be searched for.
    """
    console = Console(highlight=False)
    if _has_width(console):
        console.print(table)
    else:
        print_whole(table)


def print_whole(table: Table) -> None:
    """Print a table on standard output in its full width, even if the terminal is narrower.

    For tables of numbers, which are unreadable when they are cut or folded.
    """
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, _width(console, table))
    console.print(table)


def _has_width(console: Console) -> bool:
    """Whether lines have an end: on a terminal, or where the environment says how long they are."""
    return console.is_terminal or "COLUMNS" in os.environ


def _width(console: Console, table: Table) -> int:
    """How many columns of a terminal a table needs so that nothing is folded."""
    return console.measure(table, options=console.options.update_width(_WIDEST)).maximum


class ProgressReport(Protocol):
    """Receives the progress of long work."""

    def update(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report how much is done, of how much, and what is going on now."""


@contextmanager
def progress(
    description: str, total: float | None = None, unit: str = "items"
) -> Iterator[ProgressReport]:
    """A progress report on standard error, for the duration of the block."""
    console = messages()
    if not console.is_terminal:
        report = _PlainReport(description, total, unit)
        yield report
        report.finish()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(unit),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
    )
    with Progress(*columns, console=console) as bars:
        yield _BarReport(bars, bars.add_task(description, total=total, note=""))


class _RateColumn(ProgressColumn):
    """Work per second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """The current rate, or a dash before there is one."""
        speed = task.finished_speed or task.speed
        return Text("–" if speed is None else f"{_number(speed)} {self.unit}/s")


class _BarReport:
    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def update(self, done: float, total: float | None = None, note: str = "") -> None:
        if total is not None:
            self._bars.update(self._task, total=total)
        self._bars.update(self._task, completed=done, note=note)


class _PlainReport:
    """Progress as plain lines, at most one every `PLAIN_INTERVAL_S` and one at the end.

    The rate counts from the first report, like that of a bar, because resumed work begins with much
    of it done.
    """

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._started = self._last_line = time.monotonic()
        self._done, self._note = 0.0, ""
        self._first: tuple[float, float] | None = None  # how much was done at first, and when
        self._printed: tuple[float, str] | None = None

    def update(self, done: float, total: float | None = None, note: str = "") -> None:
        now = time.monotonic()
        self._done, self._note = done, note
        self._first = self._first or (done, now)
        self._total = self._total if total is None else total
        if now - self._last_line >= PLAIN_INTERVAL_S:
            self._line()

    def finish(self) -> None:
        if self._done and self._printed != (self._done, self._note):
            self._line()

    def _line(self) -> None:
        self._last_line = time.monotonic()
        self._printed = (self._done, self._note)
        parts = [f"{self._done:,.0f}"]
        if self._total:
            parts[0] += f" of {self._total:,.0f} ({self._done / self._total:.0%})"
        rate = self._rate()
        if rate > 0:
            parts.append(f"{_number(rate)} {self._unit}/s")
        if self._total and rate > 0 and self._done < self._total:
            parts.append(f"{_duration((self._total - self._done) / rate)} left")
        else:
            parts.append(f"{_duration(self._last_line - self._started)} elapsed")
        if self._note:
            parts.append(self._note)
        say(f"{self._description}: {', '.join(parts)}")

    def _rate(self) -> float:
        """Work per second since the first report; 0 if there was only one."""
        if self._first is None:
            return 0.0
        done, when = self._first
        return (self._done - done) / max(self._last_line - when, 1e-9)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _number(rate: float) -> str:
    """A rate with four digits, or all digits before the point; never in scientific notation."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("%", "").strip("-+ ").isdigit()
