"""The paper's Figures 1b, 2, 3 and 4, drawn anew: cones, operators, structures and averages.

Operators are drawn by applying those of an untrained ConE of one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from conekg.errors import ConfigError
from conekg.experiments.experiment import Experiment, Tables
from conekg.experiments.options import Options
from conekg.experiments.picture import new_figure, save_figure
from conekg.experiments.published import place_of
from conekg.experiments.structure_figure import draw_structures
from conekg.experiments.table import Row, Table
from conekg.graph.place import make_folder
from conekg.model.catalog import build_model
from conekg.model.cone import angle, cone_distance
from conekg.model.interface import Region
from conekg.training.run import Run

FIRST, SECOND, RESULT, POINT = "#1f6feb", "#2da44e", "#cf222e", "#24292f"

_TICKS = ((0.0, "0"), (math.pi / 2, "π/2"), (math.pi, "π"), (3 * math.pi / 2, "−π/2"))
"""Ticks of the polar axes. All are positive: matplotlib cuts the axis to a sector for negative
ones."""


def figures(runs: Sequence[Run], options: Options) -> Tables:
    """Draws every figure into the folder `options.out`; the table lists the files."""
    if options.out is None:
        raise ConfigError("figures needs --out FOLDER, the folder to draw into", key="out")
    make_folder(options.out)
    drawn = [
        (draw_cones, "cones.png", "subfig:cones", 4),
        (draw_operators, "operators.png", "fig:models", 5),
        (draw_structures, "structures.png", "fig:queries", 14),
        (draw_averages, "averages.png", "fig:intersect", 2),
    ]
    for done, (draw, name, _, _) in enumerate(drawn):
        draw(options.out / name)
        options.progress(done + 1, len(drawn))
    table = Table(
        title=f"Figures in {options.out}",
        columns=("panels",),
        rows=tuple(
            Row(f"{name} ({place_of(label)})", {"panels": panels})
            for _, name, label, panels in drawn
        ),
        paper=", ".join(label for _, _, label, _ in drawn),
        unit="number of panels",
        notes=("Operators are those of an untrained ConE with d = 1 and seed 3.",),
        digits=0,
    )
    return (table,)


def draw_cones(path: Path) -> None:
    """A ray, a sector-cone, the full circle, and a union of two cones (Figure 1b)."""
    figure = new_figure(11, 3.1)
    panels = figure.subplots(1, 4, subplot_kw={"projection": "polar"})
    titles = ("aperture 0: an entity", "aperture 0.6π", "aperture 2π: everything", "a union")
    cones = [[(0.7, 0.0)], [(0.7, 0.3 * math.pi)], [(0.7, math.pi)]]
    cones.append([(0.7, 0.15 * math.pi), (3.4, 0.25 * math.pi)])
    for panel, title, sectors in zip(panels, titles, cones, strict=True):
        _prepare(panel, title)
        for (axis, half), colour in zip(sectors, (FIRST, SECOND), strict=False):
            draw_sector(panel, axis, half, colour)
    save_figure(figure, path)


def draw_operators(path: Path) -> None:
    """Projection, intersection, union, complement and distance for d = 1 (Figure 2)."""
    model = build_model("cone", 2, 2, {"dim": 1, "hidden": 16, "gamma": 1.0}, seed=3).eval()
    first, second = _region(0.4, 0.6), _region(1.5, 0.8)
    with torch.no_grad():
        stacked = tuple(torch.stack(parts) for parts in zip(first, second, strict=True))
        results = {
            "projection": model.project(first, torch.tensor([0])),
            "intersection": model.intersect(stacked),
            "complement": model.negate(first),
        }
        distance = _distances(first, torch.tensor([2.2]))
    figure = new_figure(13.5, 3.1)
    panels = figure.subplots(1, 5, subplot_kw={"projection": "polar"})
    titles = ("projection", "intersection", "union", "complement", "distance")
    for panel, title in zip(panels, titles, strict=True):
        _prepare(panel, title)
        draw_sector(panel, *_numbers(first), FIRST)
        if title in ("intersection", "union"):
            draw_sector(panel, *_numbers(second), SECOND)
        if title in results:
            draw_sector(panel, *_numbers(results[title]), RESULT, height=0.7)
    outside, inside = distance
    panels[4].plot([2.2, 2.2], [0.0, 1.0], color=POINT, linewidth=2)
    panels[4].plot([1.0, 2.2], [1.0, 1.0], color=RESULT, linewidth=1.5)
    panels[4].plot([0.4, 1.0], [1.0, 1.0], color=FIRST, linewidth=1.5)
    panels[4].set_title(f"distance: {outside:.2f} outside, {inside:.2f} inside", fontsize=10)
    figure.supxlabel("blue, green: what is given    red: what the operator makes of it", fontsize=8)
    save_figure(figure, path)


def draw_averages(path: Path) -> None:
    """The ordinary average of two axes near π points to 0, the semantic one to π (Figure 4)."""
    epsilon = 0.5
    axes = torch.tensor([math.pi - epsilon, -math.pi + epsilon])
    ordinary = float(axes.mean())
    semantic = float(angle(torch.cos(axes).mean(), torch.sin(axes).mean()))
    figure = new_figure(6.2, 3.3)
    panels = figure.subplots(1, 2, subplot_kw={"projection": "polar"})
    for panel, title, average in zip(
        panels, ("ordinary average", "semantic average"), (ordinary, semantic), strict=True
    ):
        _prepare(panel, title)
        for axis, colour in zip(axes.tolist(), (FIRST, SECOND), strict=True):
            draw_sector(panel, axis, 0.0, colour)
        draw_sector(panel, average, 0.0, RESULT)
    save_figure(figure, path)


def draw_sector(panel: Any, axis: float, half: float, colour: str, height: float = 1.0) -> None:
    """Draw a cone on a polar axis: a filled sector with an arrow at its axis, or an arrow alone."""
    if half > 0:
        panel.bar(axis, height, width=2 * half, color=colour, alpha=0.28, linewidth=0)
        for edge in (axis - half, axis + half):
            if half < math.pi:
                panel.plot([edge, edge], [0.0, height], color=colour, linewidth=1)
    panel.annotate(
        "",
        xy=(axis, height),
        xytext=(axis, 0.0),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkB": 0},
    )


def _distances(region: Region, point: torch.Tensor) -> tuple[float, float]:
    """The outside and the inside distance (ConE, Section 4.3) of one point."""
    axis, half_aperture = region
    outside = float(cone_distance(point, axis, half_aperture, 0.0))
    return outside, float(cone_distance(point, axis, half_aperture, 1.0)) - outside


def _region(axis: float, half: float) -> Region:
    return torch.tensor([[axis]]), torch.tensor([[half]])


def _numbers(region: Region) -> tuple[float, float]:
    return float(region[0]), float(region[1])


def _prepare(panel: Any, title: str) -> None:
    panel.set_title(title, fontsize=10)
    panel.set_ylim(0.0, 1.0)
    panel.set_yticks([])
    panel.set_xticks([at for at, _ in _TICKS], [name for _, name in _TICKS], fontsize=8)
    panel.grid(visible=False)


FIGURES = Experiment(
    name="figures",
    paper=("subfig:cones", "fig:models", "fig:queries", "fig:intersect"),
    counted="figures",
    summary="cones, operators for d = 1, the fourteen structures and the averages, drawn",
    run=figures,
    options=("out",),
    needs_runs=False,
)
