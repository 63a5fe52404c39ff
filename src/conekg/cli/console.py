"""What commands say and how: results to standard output, everything else to standard error.

Progress is a bar with rate and time left on a terminal, and a plain line now and then
elsewhere, so that logs stay readable. `--json` output is one JSON document.
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
from typing import Any, Protocol

import typer
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

PLAIN_INTERVAL_S = 10.0
"""Seconds between progress lines when standard error is not a terminal."""

_WIDEST = 10_000
"""Characters a line of a table may have."""


def messages() -> Console:
    """The console for status, progress and errors, on standard error; made anew so that
    redirection is respected."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Tell the user what is going on, on standard error."""
    messages().print(Text(text))


def warn(text: str) -> None:
    """Tell the user about something they should know but that stops nothing."""
    messages().print(Text.assemble(("warning: ", "bold yellow"), text))


def print_error(error: ConeKGError) -> None:
    """One clear message on standard error: what was wrong, and below it what to do."""
    console = messages()
    console.print(Text.assemble(("error: ", "bold red"), error.message))
    if error.hint:
        console.print(Text(error.hint, style="cyan"))


def escape_what_cannot_be_printed() -> None:
    """Let signs that the encoding of standard output lacks be printed as escapes, not fail.

    Names are of any script, and not every terminal or locale is UTF-8.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON document on standard output, names unescaped where it can hold them."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    # JSON has escapes of its own: those of the stream would spoil it.
    ascii_only = not encoding.lower().startswith("utf")
    typer.echo(json.dumps(value, ensure_ascii=ascii_only, indent=indent))


def print_csv(rows: Iterable[Iterable[str | int | float | None]]) -> None:
    """Rows of CSV on standard output; None is an empty cell.

    Always UTF-8, whatever the terminal's encoding: CSV has no escapes for what that lacks.
    """
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    # As bytes: a text stream may change the line ends, which names can have too.
    typer.echo(text.getvalue().encode("utf-8", "backslashreplace"), nl=False)


def print_text(text: str) -> None:
    """A line of result on standard output, exactly as it is."""
    typer.echo(text)


def listed(names: Iterable[str]) -> str:
    """Names in a row, parted by commas; those that have such commas themselves in quotes."""
    return ", ".join(f'"{name}"' if ", " in name else name for name in map(one_line, names))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output; columns of numbers are aligned to the right."""
    whole_title = Text(one_line(title), style="table.title")  # a graph's name may have brackets
    table = Table(title=whole_title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    print_fitting(table)


def print_fitting(table: Table) -> None:
    """A table on standard output: not wider than a terminal, elsewhere with every row one line.

    In a file or a pipe names are searched for, and a folded one is not found.
    """
    console = Console(highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        console.print(table)
    else:
        print_whole(table)


def print_whole(table: Table) -> None:
    """A table on standard output, as wide as it is.

    Numbers cut off to fit a narrow terminal are no numbers.
    """
    console = Console(highlight=False, soft_wrap=True)
    needed = console.measure(table, options=console.options.update_width(_WIDEST)).maximum
    console.width = max(console.width, needed)
    console.print(table)


class ProgressReport(Protocol):
    """What long work is handed to report through."""

    def update(self, done: float, total: float | None = None, note: str = "") -> None:
        """Say how much is done, of how much, and what is going on now."""


@contextmanager
def progress(
    description: str, total: float | None = None, unit: str = "items"
) -> Iterator[ProgressReport]:
    """A progress report that lasts as long as the block."""
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

    The rate counts from the first report, as a bar's does: work that is resumed has much done
    by then.
    """

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._started = self._last_line = time.monotonic()
        self._done, self._note = 0.0, ""
        self._first: tuple[float, float] | None = None  # how much was done, and when
        self._told: tuple[float, str] | None = None

    def update(self, done: float, total: float | None = None, note: str = "") -> None:
        now = time.monotonic()
        self._done, self._note = done, note
        self._first = self._first or (done, now)
        self._total = self._total if total is None else total
        if now - self._last_line >= PLAIN_INTERVAL_S:
            self._line()

    def finish(self) -> None:
        if self._done and self._told != (self._done, self._note):
            self._line()

    def _line(self) -> None:
        self._last_line = time.monotonic()
        self._told = (self._done, self._note)
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
        """Work per second since the first report; 0 where that is the only one."""
        if self._first is None:
            return 0.0
        done, when = self._first
        return (self._done - done) / max(self._last_line - when, 1e-9)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _number(rate: float) -> str:
    """A rate to four digits or its whole part, never as a power of ten."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").replace("%", "").strip("-+ ").isdigit()
