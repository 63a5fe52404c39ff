"""Messages of `fit`, `train` and `demo` while they work: choices, progress and the outcome."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from conekg.cli.console import ProgressReport, print_json, progress, say
from conekg.cli.run_json import training_facts
from conekg.lines import counted

if TYPE_CHECKING:
    from conekg.answering.calibration import Calibration
    from conekg.answering.stages import FitEvents
    from conekg.graph.knowledge_graph import Split
    from conekg.query.shape import Shape
    from conekg.training.loop import Outcome, Progress

INTERRUPTED = 130
"""The exit code of a command that was stopped by Ctrl-C, by the convention of shells."""


@contextmanager
def printed_events() -> Iterator[FitEvents]:
    """Events that are printed as they come, with one progress bar per stage."""
    from conekg.answering.stages import FitEvents

    class PrintedEvents(FitEvents):
        def __init__(self, stack: ExitStack) -> None:
            self._stack = stack
            self._stage = ""
            self._bar: ProgressReport | None = None
            self._found: dict[tuple[Split, str], int] = {}

        def fetching(self, what: str, done: float, total: float | None) -> None:
            self._open("fetching", "bytes").update(done, total, what)

        def noted(self, what: str) -> None:
            self._close()
            say(what)

        def chose(self, what: str, why: str) -> None:
            self._close()
            say(f"chose {what}: {why}")

        def sampling(self, split: Split, shape: Shape, found: int, wanted: int | None) -> None:
            bar = self._open(f"sampling {split} queries", "queries")
            self._found[split, shape.name] = found
            total = sum(count for (part, _), count in self._found.items() if part == split)
            bar.update(total, note=shape.name)

        def training(self, progress: Progress) -> None:
            self._open("training", "steps").update(progress.step, progress.steps, progress.note)

        def evaluating(self, done: int, total: int) -> None:
            self._open("evaluating", "queries").update(done, total)

        def calibrating(self, done: int, total: int) -> None:
            self._open("calibrating", "queries").update(done, total)

        def _open(self, stage: str, unit: str) -> ProgressReport:
            if self._bar is None or stage != self._stage:
                self._close()
                self._stage = stage
                self._bar = self._stack.enter_context(progress(stage, unit=unit))
            return self._bar

        def _close(self) -> None:
            self._stack.close()
            self._bar = None

    with ExitStack() as stack:
        yield PrintedEvents(stack)


@contextmanager
def interruption_reported(
    out: Path, continue_with: str, unmeasured: Mapping[str, None] | None = None
) -> Iterator[None]:
    """On Ctrl-C within the block, say whether there is a run to continue, and exit with 130.

    With `unmeasured`, how the training stands is also printed, for scripts: `unmeasured` are the
    keys of what the command would have measured.
    SIGTERM and a closed terminal have the same effect as Ctrl-C, in the main thread, where Python
    handles signals. During training steps, the training loop saves and stops by itself instead.
    """
    from conekg.training.interrupt import stop_signals
    from conekg.training.run import is_run

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in stop_signals():
            if number != signal.SIGINT:
                before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        if is_run(out):
            say(
                f"stopped; the run in {out} keeps what was trained; continue with `{continue_with}`"
            )
        else:
            say("stopped before there was a run; nothing was written")
        if unmeasured is not None:
            print_json(training_facts(out, None, continue_with) | dict(unmeasured))
        raise typer.Exit(INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def in_shell(path: str | Path) -> str:
    """A path as it is typed in a shell, quoted where needed."""
    return shlex.quote(str(path))


def report_outcome(outcome: Outcome, continue_with: str) -> None:
    """Say how training ended, and if it is not finished, by which command to continue."""
    minutes = outcome.seconds / 60
    if outcome.finished:
        score = outcome.best_score  # 0 without validation queries
        best = f"; best valid MRR {100 * score:.1f}" if score else ""
        say(f"trained {counted(outcome.step, 'step')} in {minutes:.1f} minutes{best}")
    else:
        say(
            f"stopped after {counted(outcome.step, 'step')} and {minutes:.1f} minutes "
            f"({outcome.reason}); "
            f"saved, continue with `{continue_with}`"
        )


def exit_if_interrupted(outcome: Outcome) -> None:
    """Exit with code 130 if the user interrupted the training.

    A script must not go on with half a model.
    """
    if outcome.reason == "interrupted":
        raise typer.Exit(INTERRUPTED)


def why_no_probabilities(run: Path, checkpoint: str = "best") -> str:
    """Why answers have no probabilities, and the command that fits them, if it is possible."""
    from conekg.training.run import open_run

    opened = open_run(run)
    if not opened.num_queries("valid"):
        return "no probabilities: the run has no validation queries to fit them on"
    choice = "" if checkpoint == "best" else f" --checkpoint {checkpoint}"
    return f"no probabilities: `conekg calibrate {in_shell(run)}{choice}` fits them"


def report_calibration(calibration: Calibration) -> None:
    """Say on how many queries a run was calibrated, and how far off its probabilities are."""
    say(
        f"calibrated on {counted(calibration.num_queries, 'validation query')}: the "
        f"probabilities are off by {100 * calibration.error:.1f} points on average"
    )
