"""A batch of questions of which one fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from extras import need

need("fastapi")

import pytest

from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics
from conekg.serving.scoring import Scorer


class Fragile:
    """Answers a question by its own name, two at a time, and fails at `bad`."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def ask_in_parts(self, questions: Sequence[Any], most: int) -> Iterator[list[Any]]:
        assert most >= 2
        for start in range(0, len(questions), 2):
            part = list(questions[start : start + 2])
            self.begun += part
            if "bad" in part:
                raise ValueError("cannot answer that")
            yield part


@pytest.mark.parametrize(
    ("questions", "begun"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        # What had been answered before the failure is not asked again.
        (["a", "b", "bad", "c", "d"], ["a", "b", "bad", "c", "bad", "c", "d"]),
        (["bad"], ["bad"]),
    ],
)
def test_one_failing_question_fails_alone(questions: list[str], begun: list[str]) -> None:
    answerer = Fragile()
    scorer = Scorer(answerer, Limits(), Metrics(), cores=1)
    answers = [answer for part in scorer._ask_all(questions) for answer in part]  # type: ignore[arg-type]
    told = [str(answer) for answer in answers]
    assert told == ["cannot answer that" if name == "bad" else name for name in questions]
    assert answerer.begun == begun
