"""Tables of results, ours beside the paper's: for a terminal, as Markdown and as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from conekg.experiments.plot import Kind, Plot
from conekg.experiments.published import place_of

Cell = float | int | bool

_ABSENT = "–"


@dataclass(frozen=True)
class Row:
    """A line of a table; columns without a value are absent from `values`."""

    label: str
    values: Mapping[str, Cell]
    kind: Kind = "ours"


@dataclass(frozen=True)
class Table:
    """What an experiment measured, with the paper's numbers beside it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    paper: str
    """The label of the paper's table, or of the section with the numbers; several by commas."""
    unit: str
    notes: tuple[str, ...] = ()
    """What a reader needs to know about the numbers: definitions, choices, what is missing."""
    digits: int = 1
    """Decimals in the shown table."""
    drawn: tuple[str, ...] | None = None
    """The columns that are drawn as bars, if others have another unit; all by default."""
    plots: tuple[Plot, ...] = ()
    """What a picture of the table shows instead of bars."""

    def row(self, label: str) -> Row:
        """The row of that label."""
        return next(row for row in self.rows if row.label == label)

    @property
    def place(self) -> str:
        """Where the paper has what the table repeats, such as `Table 1`."""
        return ", ".join(map(place_of, self.paper.split(", ")))

    def to_json(self) -> dict[str, Any]:
        """The table as plain data, unrounded."""
        return {
            "title": self.title,
            "paper": self.paper,
            "place": self.place,
            "unit": self.unit,
            "columns": list(self.columns),
            "rows": [
                {"label": row.label, "kind": row.kind, "values": dict(row.values)}
                for row in self.rows
            ],
            "notes": list(self.notes),
            "plots": [plot.to_json() for plot in self.plots],
        }

    def to_markdown(self, shown_elsewhere: Sequence[str] = ()) -> str:
        """The table as Markdown, with its notes as a list below it, less those shown elsewhere."""
        lines = [
            f"## {self.title}",
            "",
            f"{self.unit}; the paper's {self.place} (`{self.paper}`).",
            "",
            "| | " + " | ".join(self.columns) + " |",
            "|---" * (len(self.columns) + 1) + "|",
        ]
        for row in self.rows:
            label = row.label.replace("|", r"\|")
            lines.append(f"| {label} | " + " | ".join(self._cells(row)) + " |")
        own = [note for note in self.notes if note not in shown_elsewhere]
        if own:
            lines += ["", *(f"- {note}" for note in own)]
        return "\n".join(lines) + "\n"

    def to_rich(self) -> RichTable:
        """The table for a terminal, without its notes, which are longer than the table is wide."""
        # Text, not markup: a folder's name may have square brackets.
        title = f"{self.title} ({self.unit}; the paper's {self.place})"
        table = RichTable(title=Text(title, style="table.title"))
        table.add_column("", no_wrap=True)
        for column in self.columns:
            table.add_column(column, justify="right", no_wrap=True)
        kind: Kind | None = None
        for row in self.rows:
            if kind is not None and row.kind != kind:
                table.add_section()
            kind = row.kind
            table.add_row(Text(row.label), *self._cells(row))
        return table

    def _cells(self, row: Row) -> list[str]:
        return [self._cell(row.values.get(column), row.kind) for column in self.columns]

    def _cell(self, value: Cell | None, kind: Kind) -> str:
        if value is None:
            return _ABSENT
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return f"{value:,}"
        if 0 < abs(value) < 0.5 * 10**-self.digits:
            # Would be rounded to zero: shown with two digits, but a difference as zero.
            return f"{0:.{self.digits}f}" if kind == "comparison" else f"{value:.2g}"
        return f"{value:.{self.digits}f}"


def difference(ours: Mapping[str, Cell], theirs: Mapping[str, float]) -> dict[str, float]:
    """Our values minus theirs, in every column that both have."""
    return {column: ours[column] - theirs[column] for column in ours if column in theirs}


def common_notes(tables: Sequence[Table]) -> tuple[str, ...]:
    """The notes that several tables share, to be shown once; none for a single table."""
    if len(tables) < 2:
        return ()
    return tuple(n for n in tables[0].notes if all(n in table.notes for table in tables[1:]))


def common_heading(tables: Sequence[Table]) -> str:
    """The heading of the notes that all tables share."""
    return f"{'Both' if len(tables) == 2 else 'All'} tables:"


def tables_markdown(title: str, tables: Sequence[Table]) -> str:
    """A Markdown page of all tables of an experiment, with the notes that they share at its end."""
    common = common_notes(tables)
    parts = [f"# {title}", "", *(table.to_markdown(common) for table in tables)]
    if common:
        parts += [common_heading(tables), "", *(f"- {note}" for note in common), ""]
    return "\n".join(parts)
