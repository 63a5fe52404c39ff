"""Draws tables as pictures: their plots if they have some, else grouped bars.

Our numbers are in colour, the paper's in grey. matplotlib is an optional dependency: it is imported
only when a picture is drawn, and no window is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conekg.errors import ConfigError
from conekg.experiments.plot import Plot, Series
from conekg.experiments.table import Row, Table

OUR_COLOURS = (
    "#1f6feb", "#2da44e", "#bf3989", "#bc4c00", "#8250df", "#1b7c83",
    "#9a6700", "#57606a", "#54aeff", "#6fdd8b", "#ff80c8", "#ffa657",
)  # fmt: skip
"""As many colours as a table has structures at most; the first ones are the most distinct."""
PICTURES = frozenset({".png", ".svg", ".pdf"})
"""The file name endings of pictures."""
PAPER_COLOURS = ("#6e7781", "#8c959f", "#afb8c1", "#d0d7de", "#eaeef2")


def new_figure(width: float, height: float) -> Any:
    """An empty figure of that size in inches; ConfigError without matplotlib."""
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


def check_picture(path: Path) -> None:
    """Raise `ConfigError` if a picture cannot be drawn; called before its numbers are measured."""
    if path.suffix.lower() not in PICTURES:
        raise ConfigError(f"cannot draw {path}: use .png, .svg or .pdf")
    new_figure(1.0, 1.0)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the file's ending names."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def draw_tables(tables: Sequence[Table], path: Path) -> None:
    """Draw one picture of all tables: a panel for each plot, or of bars for a table without plots.

    Rows of differences from the paper are not drawn.
    """
    check_picture(path)
    panels = [panel for table in tables for panel in (table.plots or (table,))]
    columns = max((len(_drawn(panel)) for panel in panels if isinstance(panel, Table)), default=0)
    width, height = max(4.8, 1.2 + 0.6 * columns), 3.2 * len(panels)
    figure = new_figure(width, height)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for panel, axis in zip(panels, axes, strict=True):
        if isinstance(panel, Table):
            _draw_bars(panel, axis)
        else:
            draw_plot(panel, axis)
    # Legends stand beside the panels, in room of their own: they may be long and wide.
    figure.set_size_inches(width + _legend_width(figure), height)
    save_figure(figure, path)


def _legend_width(figure: Any) -> float:
    """The width of a figure's widest legend, in inches."""
    legends = (axis.get_legend() for axis in figure.axes)
    widths = (legend.get_window_extent().width for legend in legends if legend is not None)
    return float(max(widths, default=0.0) / figure.dpi)


def draw_plot(plot: Plot, panel: Any) -> None:
    """Draw a plot's curves and points on a panel."""
    for series, colour in zip(plot.series, _colours(plot.series), strict=True):
        match series.style:
            case "points":
                panel.scatter(series.x, series.y, color=colour, label=series.label, zorder=3)
            case "steps":
                panel.fill_between(series.x, series.y, step="post", color=colour, alpha=0.25)
                panel.step(series.x, series.y, where="post", color=colour, label=series.label)
            case "line" | "marked line":
                marker = "o" if series.style == "marked line" else ""
                panel.plot(
                    series.x, series.y, color=colour, marker=marker, ms=3, label=series.label
                )
    for mark in plot.marks:
        panel.axvline(mark, color=PAPER_COLOURS[1], linewidth=0.8, linestyle=":")
    if plot.log_x:
        panel.set_xscale("log")
    panel.set_xlabel(plot.x_label, fontsize=8)
    panel.set_ylabel(plot.y_label, fontsize=8)
    _finish(panel, plot.title)


def _draw_bars(table: Table, panel: Any) -> None:
    """Draw a table's rows as grouped bars, a group per column."""
    rows, columns = [row for row in table.rows if row.kind != "comparison"], _drawn(table)
    thickness = 0.8 / max(1, len(rows))
    for place, (row, colour) in enumerate(zip(rows, _colours(rows), strict=True)):
        shift = (place - (len(rows) - 1) / 2) * thickness
        at = [i for i, column in enumerate(columns) if column in row.values]
        heights = [float(row.values[columns[i]]) for i in at]
        panel.bar([i + shift for i in at], heights, thickness, label=row.label, color=colour)
    panel.set_xticks(range(len(columns)), columns)
    panel.set_xlim(-0.5, len(columns) - 0.5)
    panel.set_ylabel(table.unit, fontsize=8)
    _finish(panel, table.title)


def _drawn(table: Table) -> tuple[str, ...]:
    """The columns that are drawn."""
    return table.columns if table.drawn is None else table.drawn


def _finish(panel: Any, title: str) -> None:
    panel.set_title(title, fontsize=10, wrap=True)
    panel.spines[["top", "right"]].set_visible(False)
    if panel.get_legend_handles_labels()[0]:  # a table without rows has no legend
        panel.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _colours(drawn: Sequence[Row] | Sequence[Series]) -> list[str]:
    """The colour of each row or series, from the palette of its kind in turn."""
    counts = {"ours": 0, "paper": 0}
    colours = []
    for one in drawn:
        kind = "ours" if one.kind == "ours" else "paper"
        palette = OUR_COLOURS if kind == "ours" else PAPER_COLOURS
        colours.append(palette[counts[kind] % len(palette)])
        counts[kind] += 1
    return colours
