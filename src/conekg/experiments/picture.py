"""Pictures of tables: grouped bars, ours in colour and the paper's in grey.

matplotlib is an extra; it is imported when a picture is asked for, and never opens a
window.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conekg.errors import ConfigError
from conekg.experiments.table import Row, Table

OUR_COLOURS = ("#1f6feb", "#2da44e", "#bf3989", "#bc4c00", "#8250df")
PAPER_COLOURS = ("#6e7781", "#8c959f", "#afb8c1", "#d0d7de", "#eaeef2")


def new_figure(width: float, height: float) -> Any:
    """An empty figure of that size in inches, without a window."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError(
            "pictures need matplotlib, which is not installed: pip install 'conekg[plot]'"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure; the file's ending says in which format."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"cannot draw {path}: {error}; use .png, .svg or .pdf") from error


def draw_tables(tables: Sequence[Table], path: Path) -> None:
    """One picture of all tables, a panel each; differences are left to the tables."""
    width = max(6.0, 1.2 + 0.8 * max(len(table.columns) for table in tables))
    figure = new_figure(width, 3.2 * len(tables))
    panels = figure.subplots(len(tables), 1, squeeze=False)[:, 0]
    for table, panel in zip(tables, panels, strict=True):
        _draw_bars(table, panel)
    save_figure(figure, path)


def _draw_bars(table: Table, panel: Any) -> None:
    rows = [row for row in table.rows if row.kind != "comparison"]
    thickness = 0.8 / max(1, len(rows))
    for place, (row, colour) in enumerate(zip(rows, _colours(rows), strict=True)):
        shift = (place - (len(rows) - 1) / 2) * thickness
        at = [i for i, column in enumerate(table.columns) if column in row.values]
        heights = [float(row.values[table.columns[i]]) for i in at]
        panel.bar([i + shift for i in at], heights, thickness, label=row.label, color=colour)
    panel.set_xticks(range(len(table.columns)), table.columns)
    panel.set_xlim(-0.5, len(table.columns) - 0.5)
    panel.set_title(table.title, fontsize=10)
    panel.set_ylabel(table.unit, fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _colours(rows: Sequence[Row]) -> list[str]:
    counts = {"ours": 0, "paper": 0}
    colours = []
    for row in rows:
        palette = OUR_COLOURS if row.kind == "ours" else PAPER_COLOURS
        kind = "ours" if row.kind == "ours" else "paper"
        colours.append(palette[counts[kind] % len(palette)])
        counts[kind] += 1
    return colours
