"""Pictures of a query: an indented tree for terminals, and an SVG computation graph.

In the computation graph data flows from the entities on the left to the answers on the right. An
arrow with a relation's name is a projection; an arrow without one leads from an operand to its
operator.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never
from xml.sax.saxutils import escape, quoteattr

from conekg.graph.vocabulary import Vocabulary, directed
from conekg.lines import columns, one_line
from conekg.query.render import name_of, render_query
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold

COLUMN_WIDTH, ROW_HEIGHT, MARGIN, RADIUS = 150, 52, 16, 13
"""Pixels; a column is wider if the name of a relation needs it."""
CHARACTER_WIDTH = 7.2
"""Pixels; a generous estimate for 12-pixel sans-serif type. Wide characters count as two."""
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Control characters, which a name may contain but XML may not, even escaped."""


def draw_tree(query: Query, vocabulary: Vocabulary) -> str:
    """The query as an indented tree with one line per node, the root at the top.

    >>> from conekg.graph.vocabulary import NameTable
    >>> names = Vocabulary(NameTable("entity", ["a", "b"]), NameTable("relation", ["r"]))
    >>> print(draw_tree(Anchor(0).project(0) & ~Anchor(1), names))
    and
    ├─ via r
    │  └─ a
    └─ not
       └─ b
    """

    def draw(node: Query, operands: tuple[list[str], ...]) -> list[str]:
        lines = [one_line(_caption(node, vocabulary))]
        for index, branch in enumerate(operands):
            is_last = index == len(operands) - 1
            lines.append(f"{'└─' if is_last else '├─'} {branch[0]}")
            lines += [f"{'   ' if is_last else '│  '}{line}" for line in branch[1:]]
        return lines

    lines: list[str] = fold(query, draw)
    return "\n".join(lines)


def draw_svg(query: Query, vocabulary: Vocabulary) -> str:
    """The query's computation graph as one SVG element, drawn in the CSS colour `currentColor`."""
    placed = place(query)
    lefts = _columns(placed, vocabulary)
    width = lefts[-1] + RADIUS + MARGIN
    height = 2 * MARGIN + ROW_HEIGHT * (1 + max(node.row for node in placed))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f"aria-label={quoteattr(_legible(render_query(query, vocabulary, labels=True)))} "
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="sans-serif" font-size="12" fill="currentColor" stroke="currentColor">'
    ]

    def center(node: Placed) -> tuple[float, float]:
        return lefts[node.column], MARGIN + ROW_HEIGHT * (node.row + 0.5)

    for node in placed:
        for operand in node.operands:
            parts.append(_arrow(node, center(placed[operand]), center(node), vocabulary))
    for node in placed:
        parts.append(_mark(node, center(node), _label(node.query, vocabulary)))
    return "\n".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class Placed:
    """A node of the graph with its position; columns are counted from the entities on the left."""

    query: Query
    column: int
    row: float
    operands: tuple[int, ...]
    """The indices of its operands in the list of nodes."""


def place(query: Query) -> list[Placed]:
    """The nodes with their positions, in the order of `subtrees`.

    Each leaf has a row of its own; every other node is in the middle of its operands' rows.
    """
    placed: list[Placed] = []
    num_leaves = 0

    def visit(node: Query, operands: tuple[int, ...]) -> int:
        nonlocal num_leaves
        if operands:
            row = sum(placed[operand].row for operand in operands) / len(operands)
            column = 1 + max(placed[operand].column for operand in operands)
        else:
            row, column = float(num_leaves), 0
            num_leaves += 1
        placed.append(Placed(node, column, row, operands))
        return len(placed) - 1

    fold(query, visit)
    return placed


def _columns(placed: Sequence[Placed], vocabulary: Vocabulary) -> list[float]:
    """The x coordinate of each column's centre, such that all names fit.

    Entity names are left of the first column, relation names between two columns.
    """
    widths = [RADIUS * 2.0] + [float(COLUMN_WIDTH)] * max(node.column for node in placed)
    for node in placed:
        needed = 0.0
        if isinstance(node.query, Project):  # the name is on the arrow from the column before
            needed = _width(_relation(node.query.relation_id, vocabulary)) + 2 * RADIUS
        elif node.column == 0:
            needed = _width(_label(node.query, vocabulary))
        widths[node.column] = max(widths[node.column], needed)
    return [MARGIN + left for left in accumulate(widths)]


def _arrow(
    node: Placed,
    start: tuple[float, float],
    stop: tuple[float, float],
    vocabulary: Vocabulary,
) -> str:
    """The arrow from one operand to `node`, with the relation's name if it is a projection."""
    (x1, y1), (x2, y2) = start, stop
    bend = (x1 + x2) / 2
    line = (
        f'<path class="edge" fill="none" d="M{x1 + RADIUS:.0f},{y1:.1f} '
        f'C{bend:.0f},{y1:.1f} {bend:.0f},{y2:.1f} {x2 - RADIUS:.0f},{y2:.1f}"/>'
    )
    if not isinstance(node.query, Project):
        return line
    relation = _relation(node.query.relation_id, vocabulary)
    return line + (
        f'<text class="relation" stroke="none" text-anchor="middle" x="{bend:.0f}" '
        f'y="{(y1 + y2) / 2 - 6:.1f}">{escape(_legible(relation))}</text>'
    )


def _mark(node: Placed, center: tuple[float, float], label: str) -> str:
    """A dot and a name for a leaf, a circle with a sign for other nodes."""
    x, y = center
    if not node.operands:
        return (
            f'<circle class="anchor" cx="{x:.0f}" cy="{y:.1f}" r="4"/>'
            f'<text class="entity" stroke="none" text-anchor="end" x="{x - 8:.0f}" '
            f'y="{y + 4:.1f}">{escape(_legible(label))}</text>'
        )
    return (
        f'<circle class="set" fill="none" cx="{x:.0f}" cy="{y:.1f}" r="{RADIUS}"/>'
        f'<text class="sign" stroke="none" text-anchor="middle" x="{x:.0f}" '
        f'y="{y + 4:.1f}">{label}</text>'
    )


def _label(node: Query, vocabulary: Vocabulary) -> str:
    """The text at a node of the graph; a projection has none, its name is on its arrow."""
    match node:
        case Anchor(entity_id):
            return name_of(vocabulary.entities, entity_id, labels=True)
        case Universe():
            return "everything"
        case _:
            return sign_of(node)


def sign_of(node: Query) -> str:
    """The logical sign of an operator; empty for entities, `*` and projections.

    >>> sign_of(Anchor(0) & Anchor(1)), sign_of(Anchor(0))
    ('∧', '')
    """
    match node:
        case And():
            return "∧"
        case Or():
            return "∨"
        case Not():
            return "¬"
        case Anchor() | Universe() | Project():
            return ""
    assert_never(node)


def _caption(node: Query, vocabulary: Vocabulary) -> str:
    """The text of a node in the tree of lines."""
    match node:
        case Project(_, relation_id):
            return f"via {_relation(relation_id, vocabulary)}"
        case And():
            return "and"
        case Or():
            return "or"
        case Not():
            return "not"
        case Anchor() | Universe():
            return _label(node, vocabulary)
    assert_never(node)


def _relation(relation_id: int, vocabulary: Vocabulary) -> str:
    return directed(name_of(vocabulary.relations, relation_id >> 1, labels=True), relation_id)


def _width(label: str) -> float:
    return 8 + CHARACTER_WIDTH * columns(label)


def _legible(text: str) -> str:
    """The text with characters that XML forbids replaced."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
