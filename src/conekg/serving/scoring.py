"""The scoring thread's work: questions in batches, explanations one by one.

Everything that touches the model runs on that one thread; the event loop only
parses, waits and writes. What must not happen is that one client's question
fails another's, so a failing batch is asked again one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from conekg.answering.answer import Answer, Question
from conekg.answering.engine import Understood
from conekg.serving.batcher import Batcher
from conekg.serving.errors import RequestTimeoutError
from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics

Value = TypeVar("Value")


class BatchAnswerer(Protocol):
    """What the scoring thread needs of an `Answerer`."""

    def ask_batch(self, questions: Sequence[Question | Understood]) -> list[Answer]:
        """The answers of many questions, in order."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Work that is not batched, such as an explanation."""

    run: Callable[[], object]


class Scorer:
    """Hands work to the scoring thread and waits for it, no longer than the time limit."""

    def __init__(self, answerer: BatchAnswerer, limits: Limits, metrics: Metrics) -> None:
        self._answerer = answerer
        self._timeout_s = limits.timeout_s
        self._batcher: Batcher[Understood | _Call, object] = Batcher(
            self._run, limits.batch_queries, metrics.observe_batch
        )

    def start(self) -> None:
        """Begin taking work; needs a running event loop."""
        self._batcher.start()

    async def close(self) -> None:
        """Finish all accepted work, then stop."""
        await self._batcher.close()

    async def ask(self, question: Understood) -> Answer:
        """The answer of one question, scored together with others that wait."""
        return cast(Answer, await self._submit(question))

    async def call(self, run: Callable[[], Value]) -> Value:
        """The value of `run`, called on the scoring thread."""
        return cast(Value, await self._submit(_Call(run)))

    async def _submit(self, job: Understood | _Call) -> object:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._batcher.submit(job)
        except TimeoutError:
            raise RequestTimeoutError(
                f"the request took longer than {self._timeout_s:g} s",
                hint="ask a smaller question, or try again when the server is less busy",
            ) from None

    def _run(self, jobs: Sequence[Understood | _Call]) -> list[object]:
        results: list[object] = [None] * len(jobs)
        asked: dict[int, Understood] = {}
        for place, job in enumerate(jobs):
            if isinstance(job, _Call):
                results[place] = _attempt(job.run)
            else:
                asked[place] = job
        for place, answer in zip(asked, self._ask_all(list(asked.values())), strict=True):
            results[place] = answer
        return results

    def _ask_all(self, questions: list[Understood]) -> Sequence[object]:
        if not questions:
            return []
        answers = _attempt(lambda: self._answerer.ask_batch(questions))
        if not isinstance(answers, Exception):
            return answers
        if len(questions) == 1:
            return [answers]
        return [self._ask_all([question])[0] for question in questions]


def _attempt(run: Callable[[], Value]) -> Value | Exception:
    """The value, or the exception as a value: it belongs to the client who asked."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001
        return error
