"""The fourteen structures as computation graphs, from the same shapes everything else uses.

Data flows from the anchors on the left to the answers on the right: an arrow is a
projection, a dashed one carries its operand unchanged, and a node says what it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

from conekg.experiments.picture import new_figure, save_figure
from conekg.query.shape import (
    NEGATION_STRUCTURES,
    POSITIVE_STRUCTURES,
    STRUCTURES,
    TRAINED_STRUCTURES,
)
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold

FOURTEEN = (
    *TRAINED_STRUCTURES,
    *(n for n in (*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES) if n not in TRAINED_STRUCTURES),
)
"""The structures of the literature, those that are trained on first."""

_MARKS = {"anchor": "#1f6feb", "node": "#8c959f", "answer": "#cf222e"}


@dataclass(frozen=True)
class Node:
    """A node of a drawing: where it is, what it says, and what it is made from."""

    column: int
    row: float
    text: str
    is_anchor: bool
    parts: tuple[Node, ...]
    arrow: str
    """How the parts arrive: by a `projection`, or as they are (`operand`)."""


def place(query: Query) -> Node:
    """The drawing of a query: leaves on rows of their own, parents in the middle of theirs."""
    next_row = iter(range(1000))

    def draw(node: Query, parts: tuple[Node, ...]) -> Node:
        column = 1 + max((part.column for part in parts), default=-1)
        row = sum(p.row for p in parts) / len(parts) if parts else float(next(next_row))
        match node:
            case Anchor() | Universe():
                return Node(column, row, "", True, parts, "operand")
            case Project():
                return Node(column, row, "", False, parts, "projection")
            case And():
                return Node(column, row, "∧", False, parts, "operand")
            case Or():
                return Node(column, row, "∨", False, parts, "operand")
            case Not():
                return Node(column, row, "¬", False, parts, "operand")
        assert_never(node)

    return fold(query, draw)


def draw_structures(path: Path) -> None:
    """All fourteen, the trained ones first; the others test generalisation (Figure 3)."""
    figure = new_figure(12, 6.5)
    panels = figure.subplots(3, 5).ravel()
    for panel, name in zip(panels, FOURTEEN, strict=False):
        root = place(STRUCTURES[name].template)
        _draw(panel, root, is_root=True)
        trained = name in TRAINED_STRUCTURES
        panel.set_title(name if trained else f"{name} (not trained)", fontsize=10)
        _center(panel, root.column, max(leaf.row for leaf in _leaves(root)))
    _draw_legend(panels[len(FOURTEEN)])
    for panel in panels:
        panel.axis("off")
    save_figure(figure, path)


def _leaves(node: Node) -> list[Node]:
    return [leaf for part in node.parts for leaf in _leaves(part)] if node.parts else [node]


def _center(panel: Any, last_column: float, last_row: float) -> None:
    """One scale for all panels, each drawing in the middle of its own."""
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


def _draw(panel: Any, node: Node, *, is_root: bool = False) -> None:
    for part in node.parts:
        _draw(panel, part)
        style = {"arrowstyle": "-|>", "shrinkA": 9, "shrinkB": 9, "color": "#57606a"}
        if node.arrow == "operand":
            style |= {"linestyle": "dashed", "arrowstyle": "-"}
        panel.annotate(
            "", xy=(node.column, node.row), xytext=(part.column, part.row), arrowprops=style
        )
    kind = "anchor" if node.is_anchor else "answer" if is_root else "node"
    panel.scatter([node.column], [node.row], s=170, color=_MARKS[kind], zorder=3)
    panel.text(node.column, node.row, node.text, ha="center", va="center", color="white", zorder=4)
