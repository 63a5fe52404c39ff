"""Tables of answers to look at: as text for `print`, as HTML for notebooks.

Numbers are rounded here and nowhere else. The command line, which fits its tables to the
terminal, takes their rows from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from conekg.lines import columns, one_line

if TYPE_CHECKING:
    from conekg.answering.answer import Answer, RankedAnswer

HEADINGS = ("rank", "name", "score", "probability", "known or predicted", "inside")
_NO_ANSWERS = "no entity is left to answer with"
_NUMBERS = ("rank", "score", "probability")
"""The columns that are aligned to the right."""


def text_table(answer: Answer) -> str:
    """The question in plain words, and below it one line per answer."""
    rows = [HEADINGS, *answer_rows(answer, _titles(answer))]
    widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    lines = [one_line(answer.reading)]
    for row in rows if answer.answers else ():
        cells = (
            space + cell if heading in _NUMBERS else cell + space
            for heading, cell, width in zip(HEADINGS, row, widths, strict=True)
            for space in [" " * (width - columns(cell))]
        )
        lines.append(f"  {'  '.join(cells).rstrip()}")
    return "\n".join(lines if answer.answers else [*lines, f"  {_NO_ANSWERS}"])


def html_table(answer: Answer) -> str:
    """The answers as an HTML table, with the question in plain words as its caption."""
    head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in answer_rows(answer, _titles(answer))
    )
    if not answer.answers:
        body = f"<tr><td colspan='{len(HEADINGS)}'>{_NO_ANSWERS}</td></tr>"
    return (
        f"<table><caption>{escape(one_line(answer.reading))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def answer_rows(answer: Answer, title: Callable[[RankedAnswer], str]) -> list[tuple[str, ...]]:
    """The table's cells below `HEADINGS`, one row per answer; `title` gives its name."""
    return [
        (
            str(ranked.rank),
            title(ranked),
            f"{ranked.score:.2f}",
            "–" if ranked.probability is None else f"{100 * ranked.probability:.1f}%",
            ranked.standing,
            "–" if ranked.member is None else "yes" if ranked.member else "no",
        )
        for ranked in answer.answers
    ]


def _titles(answer: Answer) -> Callable[[RankedAnswer], str]:
    """The title of each answer: its label, with its name if another answer has that label too."""
    counts = Counter(ranked.label for ranked in answer.answers)
    return lambda ranked: one_line(
        f"{ranked.label} ({ranked.name})" if counts[ranked.label] > 1 else ranked.label
    )
