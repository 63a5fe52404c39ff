"""The training loop, to be read from top to bottom.

It knows steps, checkpoints and when to stop; what a step does to the parameters is the
updater's, what a validation measures is the caller's.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from traceback import clear_frames
from typing import Literal

import torch

from conekg.errors import CheckpointError, ConeKGError, ConfigError, TrainingDivergedError
from conekg.graph.place import check_place
from conekg.model.interface import QueryModel
from conekg.training.batches import load_training_data
from conekg.training.checkpoint import Checkpoint, has_checkpoint, load_checkpoint
from conekg.training.checkpoint_writer import CheckpointWriter
from conekg.training.interrupt import StopRequest
from conekg.training.loss import UNINFORMED_LOSS
from conekg.training.loss_watch import LossWatch
from conekg.training.run import CHECKPOINTS, Run, Which, check_weights
from conekg.training.run_lock import held_for_training
from conekg.training.schedule import forgets_moments_at, learning_rate_at
from conekg.training.tracking import Tracker, read_metrics
from conekg.training.updater import Updater, make_updater

logger = logging.getLogger(__name__)

Validate = Callable[[QueryModel], Mapping[str, float]]
"""Measures a model on validation queries; `score` decides which checkpoint is best."""

SCORE = "score"


@dataclass(frozen=True)
class Progress:
    """Where a run stands, for whoever watches it."""

    step: int
    steps: int
    losses: Mapping[str, float]
    """The mean loss of each pool since the last report."""
    validation: Mapping[str, float] = field(default_factory=dict)
    """What the last validation measured."""

    @property
    def note(self) -> str:
        """Losses and validation score in a few words; empty before there are any."""
        single = len(self.losses) == 1
        losses = " ".join(
            f"{loss:.4f}" if single else f"{pool} {loss:.4f}" for pool, loss in self.losses.items()
        )
        score = self.validation.get("score")
        parts = [f"loss {losses}"] if losses else []
        if score:
            parts.append(f"valid MRR {100 * score:.1f}")
        return " · ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    step: int
    finished: bool
    """False when it was interrupted or ran out of time; `--resume` continues it."""
    reason: Literal["finished", "interrupted", "time is up"]
    seconds: float
    best_score: float | None


def check_max_minutes(value: float | None) -> None:
    """Refuse what is no number of minutes, before any work is done for it."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 0):  # refuses NaN as well
        raise ConfigError(
            f"max_minutes = {value!r}: a number of minutes is needed, 0 or more", key="max_minutes"
        )


@contextmanager
def _lack_of_memory_told(purpose: str, hint: str) -> Iterator[None]:
    """Say for what there was too little memory, and let go of what was in it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_lack = isinstance(error, MemoryError | torch.OutOfMemoryError)
        # Of a CPU's memory torch has no error of its own.
        if not is_lack and "can't allocate memory" not in str(error):
            raise
        clear_frames(error.__traceback__)
        said, _, _ = str(error).partition("\n")  # Python itself says nothing of its own
        raise ConeKGError(
            f"there is not enough memory to {purpose}{said and ': '}{said}", hint=hint
        ) from error


@_lack_of_memory_told(
    "train",
    "start a run with a lower training.batch_size, training.negatives or model.dim (--set); "
    "earlier checkpoints are untouched",
)
def train(
    run: Run,
    *,
    device: torch.device | None = None,
    validate: Validate | None = None,
    max_minutes: float | None = None,
    report: Callable[[Progress], None] = lambda _: None,
) -> Outcome:
    """Train the run's model from its last checkpoint, or from nothing, to the recipe's end.

    Checkpoints, metrics and the best model go to the run's folder. Ctrl-C and `max_minutes`
    end it early, saved and ready to be resumed.
    """
    check_max_minutes(max_minutes)
    device = device or pick_device()
    check_place(run.folder / CHECKPOINTS)
    with held_for_training(run.folder):
        return _train(run, device, validate, max_minutes, report)


def _train(
    run: Run,
    device: torch.device,
    validate: Validate | None,
    max_minutes: float | None,
    report: Callable[[Progress], None],
) -> Outcome:
    recipe = run.recipe.training
    data = load_training_data(run.graph, run.queries("train"), recipe, device)
    model = run.new_model().to(device)
    updater = make_updater(model, data, recipe, device)
    state = _restore(run, model, updater)
    watch = LossWatch(None if model.has_own_loss else UNINFORMED_LOSS)
    _show_logged_losses(watch, run, state.step)
    started = time.monotonic()
    deadline = math.inf if max_minutes is None else started + 60.0 * max_minutes
    last_report, losses, validation = started, dict[str, float](), dict[str, float]()

    with (
        StopRequest() as stop,
        Tracker(run.folder, from_step=state.step) as tracker,
        CheckpointWriter() as writer,
    ):
        save = partial(_save, run, model, updater, writer, started)
        if validate and _lacks_validation(run, state.step):
            validation = _validate(run, model, validate, state.step)
            state, is_best = _judged(state, validation)
            save(state, best=is_best)
            writer.wait()  # what is in no log is made up for
            tracker.log("valid", state.step, validation)
        while state.step < recipe.steps:
            if forgets_moments_at(recipe, state.step):
                updater.reset_moments()
            learning_rate = learning_rate_at(recipe, state.step)
            updater.step(learning_rate)
            now = time.monotonic()
            state, is_best = replace(state, step=state.step + 1), False
            is_last = state.step == recipe.steps
            stopping = is_last or stop.requested or now > deadline

            if stopping or _due(state.step, recipe.log_every, recipe.checkpoint_every):
                losses = updater.take_loss()
                watch.check(losses, state.step, learning_rate)  # before anything is overwritten
                tracker.log("train", state.step, losses | {"learning_rate": learning_rate})
            if validate and (is_last or _due(state.step, recipe.validate_every)):
                _check_weights(model, state.step)
                try:
                    validation = _validate(run, model, validate, state.step)
                except BaseException:  # also of who will not wait for its end
                    save(state)
                    writer.wait()
                    raise
                tracker.log("valid", state.step, validation)
                state, is_best = _judged(state, validation)
            is_due = stopping or _due(state.step, recipe.checkpoint_every)
            save(state, best=is_best, last=is_due)
            # At the end of a step: what is saved here counts as done, its validation included.
            if now - last_report > 0.2 or stopping:
                last_report = now
                try:
                    report(Progress(state.step, recipe.steps, losses, validation))
                except (OSError, SystemExit):  # nobody reads what is printed, or its disk is full
                    save(state)
                    writer.wait()
                    raise
            if stopping:
                break

    finished = state.step >= recipe.steps
    reason: Literal["finished", "interrupted", "time is up"] = (
        "finished" if finished else "interrupted" if stop.requested else "time is up"
    )
    seconds = state.seconds + time.monotonic() - started
    return Outcome(state.step, finished, reason, seconds, state.best_score)


def pick_device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is the first GPU where there is one, otherwise the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")  # what torch does not know is refused as what we do not
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"unknown device {name!r}; there are auto, cpu and cuda", key="device")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ConfigError(
            f"device {name!r} was asked for, but torch finds {count} GPUs; leave it to auto",
            key="device",
        )
    if device.index:  # kernels would be launched on the first
        raise ConfigError(
            f"device {name!r} is not the first GPU; make it so by CUDA_VISIBLE_DEVICES="
            f"{device.index} and leave the choice to auto",
            key="device",
        )
    return device


def _check_weights(model: QueryModel, step: int) -> None:
    """Raise TrainingDivergedError where weights are not all finite numbers.

    Asked before a model is measured or saved: a loss tells of the weights before the update.
    """
    spoilt = model.spoilt_weights()
    if spoilt is not None:
        raise TrainingDivergedError(
            f"the weights {spoilt!r} are not all finite numbers after step {step}",
            hint="lower the learning rate (--set training.learning_rate=...) or raise the margin "
            "(--set model.gamma=...); the last checkpoint is from before this",
        )


def _show_logged_losses(watch: LossWatch, run: Run, until: int) -> None:
    """Let the watch see what the run logged up to a step, in whichever process that was."""
    for line in read_metrics(run.folder):
        if line["kind"] == "train" and int(line["step"]) <= until:
            watch.see(
                {pool: float(line[pool]) for pool in run.recipe.training.cycle if pool in line},
                int(line["step"]),
            )


def _restore(run: Run, model: QueryModel, updater: Updater) -> Checkpoint:
    """Where the run stands: its last checkpoint, else its best, else the start."""
    for which in ("last", "best"):
        folder = run.checkpoint_folder(which)
        if has_checkpoint(folder):
            checkpoint = load_checkpoint(folder)
            try:
                model.load_state_dict(checkpoint.parameters)
                updater.load_state(checkpoint.optimizer)
            except (RuntimeError, KeyError) as error:
                raise CheckpointError(
                    f"the checkpoint in {folder} is of another model than recipe.toml says: "
                    f"{error}",
                    hint="restore both from one copy of the run, or start a new one",
                ) from error
            check_weights(model, folder)
            logger.info("continuing from step %d (%s)", checkpoint.step, folder)
            return replace(checkpoint, parameters={}, optimizer={})
    return Checkpoint(0, {}, {})


def _save(
    run: Run,
    model: QueryModel,
    updater: Updater,
    writer: CheckpointWriter,
    started: float,
    state: Checkpoint,
    *,
    best: bool = False,
    last: bool = True,
) -> None:
    """Have those checkpoints of a run written beside what follows; raise what failed before."""
    writer.check()
    wanted: dict[Which, bool] = {"best": best, "last": last}
    folders = [run.checkpoint_folder(which) for which, is_wanted in wanted.items() if is_wanted]
    if not folders:
        return
    _check_weights(model, state.step)
    parameters = {name: value.detach() for name, value in model.state_dict().items()}
    seconds = state.seconds + time.monotonic() - started
    complete = replace(state, parameters=parameters, optimizer=updater.state(), seconds=seconds)
    writer.save(*folders, checkpoint=complete)


def _lacks_validation(run: Run, step: int) -> bool:
    """Whether the validation after a step is due and not logged: it failed, or was cut short."""
    recipe = run.recipe.training
    if step == 0 or not (step == recipe.steps or _due(step, recipe.validate_every)):
        return False
    logged = read_metrics(run.folder)
    return not any(line["kind"] == "valid" and line["step"] == step for line in logged)


def _validate(run: Run, model: QueryModel, validate: Validate, step: int) -> dict[str, float]:
    """What the caller measures; a lack of memory is told with the setting that helps."""
    with _lack_of_memory_told(
        f"validate after step {step}",
        "what was trained is saved; continue with --resume when there is more, or with a lower "
        f"validate_queries in {run.folder / 'recipe.toml'}",
    ):
        model.eval()
        with torch.no_grad():
            measured = dict(validate(model))
        model.train()
    assert SCORE in measured, "a validation reports the score that decides which model is best"
    return measured


def _judged(state: Checkpoint, validation: Mapping[str, float]) -> tuple[Checkpoint, bool]:
    """The state with the best score so far, and whether that is this validation's.

    Of equals the later: where nothing can be measured, that is the trained one.
    """
    if state.best_score is not None and validation[SCORE] < state.best_score:
        return state, False
    return replace(state, best_score=validation[SCORE]), True


def _due(step: int, *periods: int | None) -> bool:
    return any(period is not None and step % period == 0 for period in periods)
