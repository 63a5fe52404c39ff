"""The training loop, to be read from top to bottom.

It decides when to log, validate, save and stop. The updater decides what a step does to the
parameters, and the caller what a validation measures.
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

from conekg.errors import (
    CheckpointError,
    ConeKGError,
    ConfigError,
    TrainingDivergedError,
    lack_of_memory,
)
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
"""Measures a model on validation queries; the measure `SCORE` decides which checkpoint is best."""

SCORE = "score"


@dataclass(frozen=True)
class Progress:
    """What a run reports while it trains."""

    step: int
    steps: int
    losses: Mapping[str, float]
    """The last logged mean loss of each pool; empty before the first."""
    validation: Mapping[str, float] = field(default_factory=dict)
    """What the last validation measured; empty before the first."""

    @property
    def note(self) -> str:
        """Losses and validation score in a few words; empty before there are any."""
        single = len(self.losses) == 1
        losses = " ".join(
            f"{loss:.4f}" if single else f"{pool} {loss:.4f}" for pool, loss in self.losses.items()
        )
        score = self.validation.get(SCORE)
        parts = [f"loss {losses}"] if losses else []
        if score:
            parts.append(f"valid MRR {100 * score:.1f}")
        return " · ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    step: int
    finished: bool
    """Whether all steps are done; if not, `--resume` continues the run."""
    reason: Literal["finished", "interrupted", "time is up"]
    seconds: float
    """Training time, that before earlier stops included."""
    best_score: float | None


def check_max_minutes(value: float | None) -> None:
    """Raise `ConfigError` unless `value` is None or a number of minutes, 0 or more."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and value >= 0):  # refuses NaN as well
        raise ConfigError(
            f"max_minutes = {value!r}: a number of minutes is needed, 0 or more", key="max_minutes"
        )


@contextmanager
def _explain_lack_of_memory(purpose: str, hint: str) -> Iterator[None]:
    """Turn a lack of memory into a `ConeKGError`, and free what the failed work had allocated."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        detail = lack_of_memory(error)
        if detail is None:
            raise
        clear_frames(error.__traceback__)
        raise ConeKGError(
            f"there is not enough memory to {purpose}{detail and ': '}{detail}", hint=hint
        ) from error


@_explain_lack_of_memory(
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
    """Train the run's model from its last checkpoint, or from the start, to the recipe's end.

    Checkpoints, metrics and the best model are written to the run's folder. After Ctrl-C or
    `max_minutes`, the training stops early and is saved, so that it can be resumed.
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
    _replay_logged_losses(watch, run, state.step)
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
            state, is_best = _with_best_score(state, validation)
            save(state, best=is_best)
            # Logged last: if this is interrupted, the next resume validates again.
            writer.wait()
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

            if stopping or _is_due(state.step, recipe.log_every, recipe.checkpoint_every):
                losses = updater.take_loss()
                watch.check(losses, state.step, learning_rate)  # before a checkpoint is replaced
                measured = losses | {"learning_rate": learning_rate} | _peak_memory(device)
                tracker.log("train", state.step, measured)
            if validate and (is_last or _is_due(state.step, recipe.validate_every)):
                _check_weights(model, state.step)
                try:
                    validation = _validate(run, model, validate, state.step)
                except BaseException:  # also Ctrl-C, if the user does not wait for the end
                    save(state)
                    writer.wait()
                    raise
                tracker.log("valid", state.step, validation)
                state, is_best = _with_best_score(state, validation)
            is_due = stopping or _is_due(state.step, recipe.checkpoint_every)
            save(state, best=is_best, last=is_due)
            # Reported last, so that a checkpoint that is saved here includes the validation.
            if now - last_report > 0.2 or stopping:
                last_report = now
                try:
                    report(Progress(state.step, recipe.steps, losses, validation))
                except (OSError, SystemExit):  # such as a closed pipe or a full disk
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
    """The device of that name; `auto` is the first GPU if there is one, otherwise the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")  # unknown to torch: refused below like other devices
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"unknown device {name!r}; there are auto, cpu and cuda", key="device")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ConfigError(
            f"device {name!r} was asked for, but torch finds {count} GPUs; use auto",
            key="device",
        )
    if device.index:  # the Triton kernels would be launched on the first GPU
        raise ConfigError(
            f"device {name!r} is not the first GPU; set CUDA_VISIBLE_DEVICES={device.index} to "
            "make it the first, and use auto",
            key="device",
        )
    return device


def _check_weights(model: QueryModel, step: int) -> None:
    """Raise `TrainingDivergedError` if a weight is NaN or infinite.

    Called before a model is validated or saved: the last loss was that of the weights before the
    last update.
    """
    spoilt = model.spoilt_weights()
    if spoilt is not None:
        raise TrainingDivergedError(
            f"the weights {spoilt!r} are not all finite numbers after step {step}",
            hint="lower the learning rate (--set training.learning_rate=...) or raise the margin "
            "(--set model.gamma=...); the last checkpoint is from before this",
        )


def _peak_memory(device: torch.device) -> dict[str, float]:
    """The most memory of a GPU that this process has had allocated so far; nothing for a CPU."""
    if device.type != "cuda":
        return {}
    return {"peak_memory_gib": torch.cuda.max_memory_allocated(device) / 2**30}


def _replay_logged_losses(watch: LossWatch, run: Run, until: int) -> None:
    """Let the watch see the losses that earlier processes of the run logged up to a step."""
    for line in read_metrics(run.folder):
        if line["kind"] == "train" and int(line["step"]) <= until:
            watch.see(
                {pool: float(line[pool]) for pool in run.recipe.training.cycle if pool in line},
                int(line["step"]),
            )


def _restore(run: Run, model: QueryModel, updater: Updater) -> Checkpoint:
    """Load the last checkpoint of the run, else its best, else begin at step 0.

    The weights and the optimizer state are loaded into `model` and `updater`; the returned
    checkpoint holds only the progress.
    """
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
    """Start to write the wanted checkpoints in the background; raise if an earlier one failed."""
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
    """Whether the validation after a step is due but not logged: it failed or was interrupted."""
    recipe = run.recipe.training
    if step == 0 or not (step == recipe.steps or _is_due(step, recipe.validate_every)):
        return False
    logged = read_metrics(run.folder)
    return not any(line["kind"] == "valid" and line["step"] == step for line in logged)


def _validate(run: Run, model: QueryModel, validate: Validate, step: int) -> dict[str, float]:
    """What the caller measures; a lack of memory names the setting that helps."""
    with _explain_lack_of_memory(
        f"validate after step {step}",
        "the training so far is saved; continue with --resume when there is more memory, or with "
        f"a lower validate_queries in {run.folder / 'recipe.toml'}",
    ):
        model.eval()
        with torch.no_grad():
            measured = dict(validate(model))
        model.train()
    assert SCORE in measured, "a validation reports the score that decides which model is best"
    return measured


def _with_best_score(state: Checkpoint, validation: Mapping[str, float]) -> tuple[Checkpoint, bool]:
    """The state with the best score so far, and whether it is that of this validation.

    Of equal scores the later one counts as best: if there is nothing to measure and all scores
    are equal, the best checkpoint is the one that was trained longest.
    """
    if state.best_score is not None and validation[SCORE] < state.best_score:
        return state, False
    return replace(state, best_score=validation[SCORE]), True


def _is_due(step: int, *periods: int | None) -> bool:
    return any(period is not None and step % period == 0 for period in periods)
