"""Answers as CSV, for spreadsheets: one row an answer, each with the question it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conekg.answering.answer import Answer

Cell = str | int | float | None
"""None is an empty cell."""

COLUMNS = (
    "question",
    "rank",
    "name",
    "label",
    "score",
    "probability",
    "known or predicted",
    "inside",
)
"""The first row; questions of a file have their line before it."""


def header(from_file: bool) -> tuple[str, ...]:
    """The names of the columns."""
    return ("line", *COLUMNS) if from_file else COLUMNS


def answer_rows(question: str, answer: Answer, line: int | None) -> Iterator[tuple[Cell, ...]]:
    """The answers to a question as it was asked; `line` is where it stands in a file."""
    place = () if line is None else (line,)
    for ranked in answer.answers:
        yield (
            *place,
            question,
            ranked.rank,
            ranked.name,
            ranked.label,
            ranked.score,
            ranked.probability,
            ranked.standing,
            None if ranked.member is None else "yes" if ranked.member else "no",
        )
