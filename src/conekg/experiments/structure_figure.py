"""Figure 3: the fourteen structures as computation graphs, drawn from `STRUCTURES`.

The graphs run from the anchors on the left to the answers on the right. An arrow is a
projection, a dashed line passes an operand on unchanged, and a node has the sign of its operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conekg.experiments.picture import new_figure, save_figure
from conekg.query.picture import Placed, place, sign_of
from conekg.query.shape import (
    NEGATION_STRUCTURES,
    POSITIVE_STRUCTURES,
    STRUCTURES,
    TRAINED_STRUCTURES,
)
from conekg.query.tree import Project

FOURTEEN = (
    *TRAINED_STRUCTURES,
    *(n for n in (*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES) if n not in TRAINED_STRUCTURES),
)
"""The structures of the literature, first those that models are trained on."""

_MARKS = {"anchor": "#1f6feb", "node": "#8c959f", "answer": "#cf222e"}


def draw_structures(path: Path) -> None:
    """Draw all fourteen, first the trained ones; the others test generalisation (Figure 3)."""
    figure = new_figure(12, 6.5)
    panels = figure.subplots(3, 5).ravel()
    for panel, name in zip(panels, FOURTEEN, strict=False):
        nodes = place(STRUCTURES[name].template)
        _draw(panel, nodes)
        trained = name in TRAINED_STRUCTURES
        panel.set_title(name if trained else f"{name} (not trained)", fontsize=10)
        _center(panel, nodes[-1].column, max(node.row for node in nodes))
    _draw_legend(panels[len(FOURTEEN)])
    for panel in panels:
        panel.axis("off")
    save_figure(figure, path)


def _center(panel: Any, last_column: float, last_row: float) -> None:
    """Set the same scale for every panel, with its drawing in the middle."""
    panel.set_xlim(last_column / 2 - 2.4, last_column / 2 + 2.4)
    panel.set_ylim(last_row / 2 + 1.5, last_row / 2 - 1.5)


def _draw_legend(panel: Any) -> None:
    texts = {"anchor": "an entity of the query", "node": "a set on the way", "answer": "answers"}
    for row, (kind, text) in enumerate(texts.items()):
        panel.scatter([0], [row], s=90, color=_MARKS[kind])
        panel.text(0.4, row, text, va="center", fontsize=9)
    panel.text(-0.2, 3, "→  a relation     - -  as it is", va="center", fontsize=9)
    panel.set_xlim(-1, 4.5)
    panel.set_ylim(3.8, -0.8)


def _draw(panel: Any, nodes: Sequence[Placed]) -> None:
    for node in nodes:
        style = {"arrowstyle": "-|>", "shrinkA": 9, "shrinkB": 9, "color": "#57606a"}
        if not isinstance(node.query, Project):
            style |= {"linestyle": "dashed", "arrowstyle": "-"}
        for operand in node.operands:
            start = (nodes[operand].column, nodes[operand].row)
            panel.annotate("", xy=(node.column, node.row), xytext=start, arrowprops=style)
        kind = "anchor" if not node.operands else "answer" if node is nodes[-1] else "node"
        panel.scatter([node.column], [node.row], s=170, color=_MARKS[kind], zorder=3)
        sign = sign_of(node.query)
        panel.text(node.column, node.row, sign, ha="center", va="center", color="white", zorder=4)
