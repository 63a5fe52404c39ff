"""The server's worker threads: for batches of questions, for explanations, and for slow texts.

The event loop parses short texts itself. Explanations and long texts have threads of their own,
because each may take as long as many questions, and no question should wait for them. If a batch
fails, its questions are asked again one by one, so that a question cannot fail those of others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar, cast

import torch

from conekg.answering.answer import Answer, Question
from conekg.answering.understand import Understood
from conekg.errors import UnknownNameError
from conekg.graph.vocabulary import without_suggestions
from conekg.serving.batcher import Batcher
from conekg.serving.errors import RequestTimeoutError, ServerBusyError, ServerStoppingError
from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics
from conekg.symbolic.workers import available_cores

Value = TypeVar("Value")

_PART_SIZE = 8
"""Questions of a batch that are searched together; their answers are sent while the next part is
worked on."""

_SHORT_TEXT = 200
"""Characters of the longest text that the event loop parses itself."""

_SHORT_TEXT_THREADS = 4
"""Threads that search for names similar to an unknown one, which takes seconds in a large graph."""


class BatchAnswerer(Protocol):
    """The part of an `Answerer` that the scoring threads use."""

    def ask_in_parts(
        self, questions: Sequence[Question | Understood], most: int
    ) -> Iterator[list[Answer]]:
        """The answers to many questions, in order, in parts of at most `most`."""


class Scorer:
    """Passes work to the threads and waits for the results."""

    def __init__(
        self,
        answerer: BatchAnswerer,
        limits: Limits,
        metrics: Metrics,
        cores: int | None = None,
    ) -> None:
        """`cores` is how many cores to use; by default all that are available."""
        self._answerer = answerer
        self._limits = limits
        self._explaining = 0
        self._num_cores = cores or available_cores()
        self._num_threads = min(limits.scoring_threads, self._num_cores)
        self._torch_threads = torch.get_num_threads()
        self._asks: Batcher[Understood, Answer] = Batcher(
            self._ask_all,
            limits.batch_queries,
            metrics.observe_batch,
            gather_s=limits.gather_s,
            threads=self._num_threads,
        )
        self._calls: Batcher[Callable[[], object], object] = Batcher(
            lambda jobs: [[_attempt(job) for job in jobs]], 1, name="conekg-explaining"
        )
        self._short_texts = ThreadPoolExecutor(_SHORT_TEXT_THREADS, "conekg-reading")
        self._long_texts = ThreadPoolExecutor(1, "conekg-reading-long")
        self._closing = False

    def start(self) -> None:
        """Begin taking work; needs a running event loop."""
        # Batches that are scored at the same time share the cores; more threads than cores would
        # only take turns.
        share = max(1, self._num_cores // self._num_threads)
        torch.set_num_threads(min(share, self._torch_threads))
        self._asks.start()
        self._calls.start()

    async def close(self) -> None:
        """Finish all accepted work, then stop."""
        self._closing = True
        await asyncio.gather(
            self._asks.close(),
            self._calls.close(),
            asyncio.to_thread(self._short_texts.shutdown),
            asyncio.to_thread(self._long_texts.shutdown),
        )
        torch.set_num_threads(self._torch_threads)

    async def read(self, run: Callable[[], Value], text: str) -> Value:
        """The value of `run`, which parses `text` or looks up names.

        Short texts take milliseconds and are read at once. Long texts, and the search for names
        similar to an unknown one, run on a thread. Work that is cancelled before a thread starts
        it, as by a time limit, is not done.
        """
        if self._closing:
            raise ServerStoppingError("the server is shutting down")
        threads = self._long_texts
        if is_quickly_read(text):
            with without_suggestions(), suppress(UnknownNameError):
                return run()
            threads = self._short_texts
        return await asyncio.get_running_loop().run_in_executor(threads, run)

    async def ask(self, question: Understood) -> Answer:
        """The answer to one question, scored together with others that are waiting."""
        return await self._asks.submit(question)

    async def explain(self, run: Callable[[], Value]) -> Value:
        """The value of `run`, called on the explanation thread, one call after the other."""
        if self._explaining >= self._limits.explanations:
            raise ServerBusyError(
                f"the server is working on {self._explaining} explanations",
                hint=f"try again in {self._limits.retry_after_s} s",
            )
        self._explaining += 1
        try:
            return cast(Value, await self._calls.submit(run))
        finally:
            self._explaining -= 1

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Raise RequestTimeoutError if the block takes longer than a request may."""
        timeout_s = self._limits.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                yield
        except TimeoutError:
            raise RequestTimeoutError(
                f"the request took longer than {timeout_s:g} s",
                hint="ask a smaller question, or try again when the server is less busy",
            ) from None

    def _ask_all(self, questions: Sequence[Understood]) -> Iterator[Sequence[Answer | Exception]]:
        answered = 0
        try:
            for answers in self._answerer.ask_in_parts(questions, _PART_SIZE):
                yield answers
                answered += len(answers)
        except Exception as error:  # noqa: BLE001  (raised for the client whose question failed)
            if len(questions) == 1:
                yield [error]
                return
            for question in questions[answered:]:
                yield from self._ask_all([question])


def is_quickly_read(text: str) -> bool:
    """Whether parsing a text takes milliseconds at most, provided that all its names are known.

    SPARQL takes a hundred times as long as the other notations; only SPARQL has braces.

    >>> is_quickly_read("France.borders"), is_quickly_read("SELECT ?x {:France :borders ?x}")
    (True, False)
    """
    return len(text) <= _SHORT_TEXT and "{" not in text


def _attempt(run: Callable[[], Value]) -> Value | Exception:
    """The value of `run`, or the exception it raised, for the client who asked."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001
        return error
