"""Answers as CSV, for spreadsheets: one row per answer, each with its question."""

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
"""The header row; for the questions of a file, a column `line` comes before these."""


def header(from_file: bool) -> tuple[str, ...]:
    """The names of the columns."""
    return ("line", *COLUMNS) if from_file else COLUMNS


def answer_rows(question: str, answer: Answer, line: int | None) -> Iterator[tuple[Cell, ...]]:
    """The rows of a question's answers; `line` is the question's line if it is from a file."""
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
