import errno
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from conekg.errors import (
    CheckpointError,
    ConeKGError,
    ConfigError,
    StoreError,
    TrainingDivergedError,
)
from conekg.evaluation.evaluate import evaluate
from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.model.catalog import MODELS, ModelEntry, model_config
from conekg.model.gqe import Gqe, GqeConfig
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS
from conekg.sampling.sample import sample_query_set
from conekg.training import checkpoint_writer, loop
from conekg.training.checkpoint import load_checkpoint, save_checkpoint
from conekg.training.loop import pick_device, train
from conekg.training.loss_watch import LossWatch
from conekg.training.recipe import Pool
from conekg.training.run import create_run
from conekg.training.run_lock import held_for_training
from conekg.training.tracking import read_metrics
from conekg.training.updater import EagerUpdater
from tiny import tiny_graph, tiny_queries, tiny_recipe, tiny_run

CPU = torch.device("cpu")
TRAIN_A_RUN = """
import sys
from conekg.training.loop import train
from conekg.training.run import open_run
train(open_run(sys.argv[1]))
"""


def parameters(run, which="last"):
    return load_checkpoint(run.checkpoint_folder(which)).parameters


def assert_equal_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def test_a_killed_run_continues_bit_for_bit(tmp_path):
    """The process is killed by SIGKILL between two checkpoints, then another process resumes."""
    settings = {"steps": 90, "checkpoint_every": 7, "log_every": 5}
    unbroken = tiny_run(tmp_path / "unbroken", **settings)
    train(unbroken, device=CPU)

    killed = tiny_run(tmp_path / "killed", **settings)
    command = [sys.executable, "-c", TRAIN_A_RUN, str(killed.folder)]
    process = subprocess.Popen(command, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    manifest = killed.checkpoint_folder("last") / "checkpoint.json"
    give_up = time.monotonic() + 120
    while not manifest.exists():
        assert process.poll() is None, "training ended before it could be killed"
        assert time.monotonic() < give_up
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    step = load_checkpoint(killed.checkpoint_folder("last")).step
    assert 7 <= step < 90

    outcome = train(killed, device=CPU)
    assert outcome.finished
    assert_equal_bits(parameters(unbroken), parameters(killed))
    steps = [line["step"] for line in read_metrics(killed.folder)]
    assert steps == sorted(set(steps)), "no step is logged twice"
    assert steps[-1] == 90


@pytest.mark.parametrize("model", list(MODELS))
def test_every_model_resumes_as_if_never_stopped(tmp_path, model, monkeypatch):
    unbroken = tiny_run(tmp_path / "unbroken", model)
    train(unbroken, device=CPU)
    stopped = tiny_run(tmp_path / "stopped", model)
    # The time is up after the fifth step, where there is neither a checkpoint nor a drop.
    ticks = iter([*[0.0] * 6, *[1e9] * 100])
    with monkeypatch.context() as patch:
        patch.setattr(loop.time, "monotonic", lambda: next(ticks))
        outcome = train(stopped, device=CPU, max_minutes=1)
    assert (outcome.finished, outcome.reason) == (False, "time is up")
    assert 0 < outcome.step < 12
    assert train(stopped, device=CPU).finished
    assert_equal_bits(parameters(unbroken), parameters(stopped))


class TiedGqe(Gqe):
    """A model that uses one network for two things, under two names."""

    name = "tied"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.second_attention = self.attention


def test_a_model_that_uses_weights_twice_is_saved_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setitem(MODELS, "tied", ModelEntry(TiedGqe, GqeConfig, "tied"))
    runs = []
    for folder, model in (("tied", "tied"), ("plain", "gqe")):
        config = model_config(model, {"dim": 8})
        recipe = replace(tiny_recipe("gqe"), model=model, config=config)
        runs.append(create_run(tmp_path / folder, tiny_graph(), recipe, tiny_queries()))
    tied, plain = runs
    assert not train(tied, device=CPU, max_minutes=0).finished
    assert train(tied, device=CPU).finished
    assert train(plain, device=CPU).finished
    found, expected = parameters(tied), parameters(plain)
    assert_equal_bits({name: found[name] for name in expected}, expected)
    assert len(found) == len(expected) + 4
    for name in found.keys() - expected.keys():
        assert torch.equal(found[name], found[name.removeprefix("second_")]), name
    model = tied.load_model()
    assert model.second_attention is model.attention


def test_a_minute_has_sixty_seconds(tmp_path, monkeypatch):
    run = tiny_run(tmp_path / "run", steps=4, checkpoint_every=100)
    ticks = iter([0.0, 59.0, *[61.0] * 100])  # the start, then the end of each step
    with monkeypatch.context() as patch:
        patch.setattr(loop.time, "monotonic", lambda: next(ticks))
        outcome = train(run, device=CPU, max_minutes=1)
    assert (outcome.step, outcome.reason, outcome.seconds) == (2, "time is up", 61.0)


def test_time_before_a_stop_counts(tmp_path):
    run = tiny_run(tmp_path / "run", steps=4, checkpoint_every=100)
    stopped = train(run, device=CPU, max_minutes=0)
    assert (stopped.step, stopped.finished) == (1, False)
    manifest = run.checkpoint_folder("last") / "checkpoint.json"
    content = json.loads(manifest.read_text())
    assert 0 < content["seconds"] <= stopped.seconds
    manifest.write_text(json.dumps(content | {"seconds": 1000.0}))
    resumed = train(run, device=CPU)
    assert 1000 < json.loads(manifest.read_text())["seconds"] <= resumed.seconds < 1100


class KilledError(Exception):
    """Stands for the end of the process in the middle of a training."""


def train_and_be_killed(run, device, at_step):
    """Train until a step is reported, and stop there without saving."""

    def kill(progress):
        if progress.step >= at_step:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        ticks = iter(range(0, 10**6, 10))  # ten seconds a tick: every step is reported
        patch.setattr(loop.time, "monotonic", lambda: float(next(ticks)))
        with pytest.raises(KilledError):
            train(run, device=device, report=kill)


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["box", "beta"])  # for ConE's dropout see test_fused.py
def test_a_gpu_run_resumes_as_if_never_stopped(tmp_path, model):
    """Both parts replay a graph. Equal up to rounding: products may be split differently."""
    device = torch.device("cuda")
    settings = {"steps": 24, "checkpoint_every": 14, "drops_at": ()}
    unbroken = tiny_run(tmp_path / "unbroken", model, **settings)
    train(unbroken, device=device)
    stopped = tiny_run(tmp_path / "stopped", model, **settings)
    train_and_be_killed(stopped, device, at_step=15)
    assert load_checkpoint(stopped.checkpoint_folder("last")).step == 14
    assert train(stopped, device=device).finished
    theirs = parameters(stopped)
    for name, value in parameters(unbroken).items():
        if name != "attention.2.bias":  # ignored by a softmax: moved by rounding alone
            torch.testing.assert_close(theirs[name], value, atol=5e-4, rtol=1e-2, msg=name)
    *_, logged = read_metrics(stopped.folder)
    assert 0 < logged["peak_memory_gib"] < 4


def test_training_lines_have_the_peak_memory_of_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3 * 2**29)
    assert loop._peak_memory(torch.device("cuda")) == {"peak_memory_gib": 1.5}
    run = tiny_run(tmp_path / "run", steps=2, log_every=1)
    train(run, device=CPU)
    assert all("peak_memory_gib" not in line for line in read_metrics(run.folder))


def test_a_run_resumed_at_a_drop_equals_the_unbroken_one(tmp_path):
    unbroken = tiny_run(tmp_path / "unbroken", steps=8, checkpoint_every=100)
    train(unbroken, device=CPU)
    # Drops at 4 and 6.
    stopped = tiny_run(tmp_path / "stopped", steps=8, checkpoint_every=4, log_every=1)
    train_and_be_killed(stopped, CPU, at_step=5)
    assert load_checkpoint(stopped.checkpoint_folder("last")).step == 4
    assert [line["step"] for line in read_metrics(stopped.folder)] == [1, 2, 3, 4, 5]
    train(stopped, device=CPU)
    assert_equal_bits(parameters(unbroken), parameters(stopped))
    assert [line["step"] for line in read_metrics(stopped.folder)] == [*range(1, 9)]


@pytest.mark.parametrize(("fresh_moments", "count"), [(True, 2), (False, 8)])
def test_moments_are_forgotten_at_a_drop_where_the_recipe_says_so(tmp_path, fresh_moments, count):
    """Adam counts its updates, one a step here, from where it last began: drops are at 4 and 6."""
    settings = {"steps": 8, "drops_at": (0.5, 0.75), "fresh_moments": fresh_moments}
    run = tiny_run(tmp_path / "run", **settings)
    assert len(run.recipe.training.cycle) == 1
    train(run, device=CPU)
    assert load_checkpoint(run.checkpoint_folder("last")).optimizer["entity:step"] == count


@pytest.mark.parametrize("every", [None, 3])
def test_a_run_is_validated_every_so_often_and_at_its_end(tmp_path, every):
    run = tiny_run(tmp_path / "run", steps=7, validate_every=every)
    train(run, device=CPU, validate=lambda model: {"score": 0.5})
    measured = [line["step"] for line in read_metrics(run.folder) if line["kind"] == "valid"]
    assert measured == ([3, 6, 7] if every else [7])


def test_validating_a_model_does_not_change_its_training(tmp_path):
    """The model is validated without dropout, and trained with it before and after."""
    seen = []

    def measure(model):
        seen.append((model.training, torch.is_grad_enabled()))
        return {"score": 0.5}

    plain, measured = (
        tiny_run(tmp_path / name, steps=6, validate_every=2) for name in ("plain", "measured")
    )
    assert plain.recipe.config.dropout > 0
    train(plain, device=CPU)
    train(measured, device=CPU, validate=measure)
    assert seen == [(False, False)] * 3
    assert_equal_bits(parameters(plain), parameters(measured))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_saves_and_ends_cleanly(tmp_path, number):
    run = tiny_run(tmp_path / "run", steps=10_000, checkpoint_every=10_000)
    asked = []

    def interrupt(progress):
        if not asked:
            asked.append(progress.step)
            signal.raise_signal(number)

    before = signal.signal(number, signal.SIG_DFL)  # background processes may ignore the signal
    try:
        outcome = train(run, device=CPU, report=interrupt)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert (outcome.finished, outcome.reason) == (False, "interrupted")
    assert load_checkpoint(run.checkpoint_folder("last")).step == outcome.step


@pytest.mark.parametrize("ending", [BrokenPipeError, OSError(errno.EIO, "its end"), SystemExit])
def test_a_report_that_fails_loses_no_work(tmp_path, ending):
    run = tiny_run(tmp_path / "run", steps=10_000, checkpoint_every=10_000)
    seen = []

    def fail(progress):
        seen.append(progress.step)
        raise ending

    with pytest.MonkeyPatch.context() as patch:
        ticks = itertools.count(0.0, 0.15)  # a step a tick: the second is reported
        patch.setattr(loop.time, "monotonic", lambda: next(ticks))
        with pytest.raises((OSError, SystemExit)):
            train(run, device=CPU, report=fail)
    assert load_checkpoint(run.checkpoint_folder("last")).step == seen[0] == 2
    again = train(run, device=CPU, max_minutes=0.0)
    assert again.step == seen[0] + 1


def test_a_report_that_fails_at_the_last_step_loses_no_validation(tmp_path):
    """No later step would validate the model again."""
    run = tiny_run(tmp_path / "run", steps=3)

    def fail(progress):
        if progress.step == progress.steps:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        train(run, device=CPU, report=fail, validate=lambda model: {"score": 0.5})
    outcome = train(run, device=CPU, validate=lambda model: {"score": 0.5})
    assert (outcome.finished, outcome.step, outcome.best_score) == (True, 3, 0.5)
    assert load_checkpoint(run.checkpoint_folder("best")).step == 3


class Scores:
    """A validation that returns the next score, or raises it if it is an error."""

    def __init__(self, *found):
        self.left = list(found)

    def __call__(self, model):
        assert not model.training
        score = self.left.pop(0)
        if isinstance(score, BaseException):
            raise score
        return {"score": score}


@pytest.mark.parametrize("error", [MemoryError("Unable to allocate 2 GiB"), KeyboardInterrupt()])
@pytest.mark.parametrize(("failing", "before"), [(5, ()), (12, (0.2, 0.6))])
def test_a_failed_validation_loses_no_step_and_is_repeated(tmp_path, error, failing, before):
    """Also after the twelfth step, which is the last, so that no later step is validated."""
    settings = {"steps": 12, "validate_every": 5, "checkpoint_every": 100, "log_every": 3}
    unbroken = tiny_run(tmp_path / "unbroken", **settings)
    train(unbroken, device=CPU, validate=Scores(0.2, 0.6, 0.4))
    run = tiny_run(tmp_path / "run", **settings)
    with pytest.raises((ConeKGError, KeyboardInterrupt)) as told:
        train(run, device=CPU, validate=Scores(*before, error))
    if isinstance(error, MemoryError):
        assert told.value.message == (
            f"there is not enough memory to validate after step {failing}: Unable to allocate 2 GiB"
        )
        assert "validate_queries" in told.value.hint
        assert str(run.folder / "recipe.toml") in told.value.hint
    assert load_checkpoint(run.checkpoint_folder("last")).step == failing
    left = Scores(*(0.2, 0.6, 0.4)[len(before) :])
    outcome = train(run, device=CPU, validate=left)
    assert (outcome.finished, outcome.best_score, left.left) == (True, 0.6, [])
    validated = []
    for each in (unbroken, run):
        assert load_checkpoint(each.checkpoint_folder("last")).best_score == 0.6
        validated.append([line for line in read_metrics(each.folder) if line["kind"] == "valid"])
    assert validated[0] == validated[1]
    assert [line["step"] for line in validated[0]] == [5, 10, 12]
    for which in ("last", "best"):
        assert_equal_bits(parameters(unbroken, which), parameters(run, which))
    assert train(run, device=CPU, validate=Scores()).finished, "nothing is left to be validated"


def test_the_memory_of_a_failed_validation_is_freed_before_saving(tmp_path, monkeypatch):
    """Otherwise there may be no room for the copy of the weights."""
    run = tiny_run(tmp_path / "run", steps=4)
    held, real = [], checkpoint_writer.save_checkpoint

    def fail(model):
        scores = np.zeros(3)
        held.append(weakref.ref(scores))
        raise MemoryError(f"no room beside {len(scores)} scores")

    def save(*arguments):
        assert held.pop()() is None
        real(*arguments)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", save)
    with pytest.raises(ConeKGError, match="no room beside 3 scores"):
        train(run, device=CPU, validate=fail)
    assert load_checkpoint(run.checkpoint_folder("last")).step == 4


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """The first checkpoint is not written before the eighth step is done."""
    run = tiny_run(tmp_path / "run", steps=12, checkpoint_every=4, validate_every=4)
    done, real, written = threading.Event(), checkpoint_writer.save_checkpoint, []

    def save_late(folder, checkpoint):
        assert done.wait(30)
        real(folder, checkpoint)
        written.append((folder.name, checkpoint.step))

    step = EagerUpdater.step

    def step_and_tell(updater, rate):
        step(updater, rate)
        if updater._steps == 8:
            assert not written
            done.set()

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_writer, "save_checkpoint", save_late)
        patch.setattr(EagerUpdater, "step", step_and_tell)
        train(run, device=CPU, validate=Scores(0.2, 0.1, 0.3))
    assert written == [("best", 4), ("last", 4), ("last", 8), ("best", 12), ("last", 12)]
    unbroken = tiny_run(tmp_path / "unbroken", steps=12)
    train(unbroken, device=CPU)
    assert_equal_bits(parameters(unbroken), parameters(run))


@pytest.mark.parametrize("score", [0.5, MemoryError()])
def test_a_checkpoint_that_cannot_be_written_is_an_error(tmp_path, monkeypatch, score):
    """Also if a validation failed: its error would say that the training is saved."""

    def refuse(folder, checkpoint):
        raise CheckpointError(f"no room for step {checkpoint.step}")

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", refuse)
    run = tiny_run(tmp_path / "run", steps=8, checkpoint_every=100, validate_every=4)
    with pytest.raises(CheckpointError, match="no room for step 4"):
        train(run, device=CPU, validate=Scores(score, 0.6))


def test_the_best_model_by_validation_is_kept(tmp_path):
    run = tiny_run(tmp_path / "run", validate_every=3)
    scores = iter([0.2, 0.5, 0.4, 0.1])
    seen = []

    def validate(model):
        assert not model.training
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return {"score": next(scores)}

    outcome = train(run, device=CPU, validate=validate)
    assert outcome.best_score == 0.5
    assert load_checkpoint(run.checkpoint_folder("best")).step == 6
    assert_equal_bits(run.load_model("best").state_dict(), seen[1])
    assert_equal_bits(run.load_model("last").state_dict(), seen[3])
    validations = [line for line in read_metrics(run.folder) if line["kind"] == "valid"]
    assert [line["step"] for line in validations] == [3, 6, 9, 12]


def test_of_equally_good_models_the_later_is_kept(tmp_path):
    """As on a graph too small to hold out queries, where every validation measures nothing."""
    run = tiny_run(tmp_path / "run", validate_every=3)
    train(run, device=CPU, validate=lambda model: {"score": 0.0})
    assert load_checkpoint(run.checkpoint_folder("best")).step == 12


def test_a_finished_run_stays_as_it_is(tmp_path):
    run = tiny_run(tmp_path / "run")
    train(run, device=CPU)
    before = parameters(run)
    outcome = train(run, device=CPU)
    assert (outcome.step, outcome.finished) == (12, True)
    assert_equal_bits(before, parameters(run))


def test_a_run_depends_on_its_seed_and_on_no_other_random_state(tmp_path):
    runs = [tiny_run(tmp_path / f"{i}", seed=seed) for i, seed in enumerate((1, 1, 2))]
    for run in runs:
        torch.rand(7)  # other users of torch's random numbers make no difference
        train(run, device=CPU)
    assert_equal_bits(parameters(runs[0]), parameters(runs[1]))
    assert not torch.equal(parameters(runs[0])["entity"], parameters(runs[2])["entity"])


def test_training_leaves_the_random_state_of_torch_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(tiny_run(tmp_path / "run", steps=2), device=CPU)
    assert torch.equal(torch.rand(3), expected)


def test_a_loss_that_is_not_finite_stops_the_run_and_leaves_the_checkpoint(tmp_path, monkeypatch):
    run = tiny_run(tmp_path / "run", steps=8)
    real = loop.make_updater

    def poisoned(model, *arguments):
        updater = real(model, *arguments)
        step = updater.step

        def poison(rate):
            step(rate)
            if int(updater.state()["steps"]) == 6:
                with torch.no_grad():
                    model.entity.fill_(torch.nan)

        updater.step = poison
        return updater

    monkeypatch.setattr(loop, "make_updater", poisoned)
    with pytest.raises(TrainingDivergedError, match="nan at step 8") as error:
        train(run, device=CPU)
    assert "learning rate" in error.value.hint
    checkpoint = load_checkpoint(run.checkpoint_folder("last"))
    assert checkpoint.step == 4
    assert all(value.isfinite().all() for value in checkpoint.parameters.values())


def spoil(monkeypatch, after_step):
    """Make one weight NaN after a step, as an overflow in the last update would."""
    real = EagerUpdater.step

    def step(updater, rate):
        real(updater, rate)
        if updater._steps == after_step:
            updater._model.entity.data[3, 0] = torch.nan

    monkeypatch.setattr(EagerUpdater, "step", step)


@pytest.mark.parametrize("validated", [False, True])
def test_weights_that_are_not_finite_are_neither_measured_nor_saved(
    tmp_path, monkeypatch, validated
):
    """The last loss is still finite: it is that of the weights before the last update."""
    run = tiny_run(tmp_path / "run", steps=8)
    seen = []
    validate = (lambda model: seen.append(model) or {"score": 1.0}) if validated else None
    spoil(monkeypatch, 8)
    with pytest.raises(TrainingDivergedError, match="'entity' are not all finite") as error:
        train(run, device=CPU, validate=validate)
    assert "step 8" in error.value.message
    assert "learning_rate" in error.value.hint
    assert load_checkpoint(run.checkpoint_folder("last")).step == 4
    assert not seen


def test_a_checkpoint_of_weights_that_are_not_finite_is_not_continued(tmp_path):
    run = tiny_run(tmp_path / "run", steps=8)
    train(run, device=CPU, max_minutes=0)
    folder = run.checkpoint_folder("last")
    checkpoint = load_checkpoint(folder)
    checkpoint.parameters["relation_axis"][2, 1] = torch.inf
    save_checkpoint(folder, checkpoint)
    with pytest.raises(CheckpointError, match="'relation_axis' are not all finite") as error:
        train(run, device=CPU)
    assert str(folder) in error.value.message


def train_with_losses(run, losses, monkeypatch, **options):
    """Train a run whose updater reports the given losses, one after the other."""
    real, reports = loop.make_updater, iter(losses)

    def reporting(*arguments):
        updater = real(*arguments)
        updater.take_loss = lambda: {"everything": next(reports)}
        return updater

    with monkeypatch.context() as patch:
        patch.setattr(loop, "make_updater", reporting)
        return train(run, device=CPU, **options)


def test_a_resumed_run_remembers_the_losses_before_the_stop(tmp_path, monkeypatch):
    monkeypatch.setattr(LossWatch, "span", 1)
    run = tiny_run(tmp_path / "run", steps=9, log_every=1, checkpoint_every=1)
    for losses in ([0.3], [0.3], [0.7], [0.7], [0.7], [0.7]):  # stopped after each step
        assert not train_with_losses(run, losses, monkeypatch, max_minutes=0).finished
    with pytest.raises(TrainingDivergedError, match=r"collapsed: 0\.7000 at step 7"):
        train_with_losses(run, [0.7], monkeypatch)
    slow = tiny_run(tmp_path / "slow", steps=9, log_every=1, checkpoint_every=1)
    assert not train_with_losses(slow, [0.7], monkeypatch, max_minutes=0).finished
    assert train_with_losses(slow, [0.7] * 8, monkeypatch).finished


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path):
    run = tiny_run(tmp_path / "run", steps=4)
    with (
        held_for_training(run.folder),
        pytest.raises(CheckpointError, match="is already being trained"),
    ):
        train(run, device=CPU)
    assert train(run, device=CPU).finished, "the lock was released"


@pytest.mark.parametrize("minutes", [-1, float("nan"), "1", True])
def test_an_invalid_number_of_minutes_is_refused(tmp_path, minutes):
    run = tiny_run(tmp_path / "run", steps=4)
    with pytest.raises(ConfigError, match="a number of minutes is needed"):
        train(run, device=CPU, max_minutes=minutes)


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore of it"),
            ": CUDA out of memory. Tried to allocate 2 GiB.",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"),
            ": DefaultCPUAllocator: can't allocate memory: you tried to",
        ),
        (
            RuntimeError("DefaultCPUAllocator: not enough memory: you tried to"),  # on Windows
            ": DefaultCPUAllocator: not enough memory: you tried to",
        ),
        (MemoryError("Unable to allocate 2 GiB"), ": Unable to allocate 2 GiB"),
        (MemoryError(), ""),
    ],
)
def test_a_lack_of_memory_names_the_settings_that_help(tmp_path, monkeypatch, error, detail):
    run = tiny_run(tmp_path / "run")

    def fail(*_):
        raise error

    monkeypatch.setattr(loop, "make_updater", fail)
    with pytest.raises(ConeKGError) as told:
        train(run, device=CPU)
    assert told.value.message == f"there is not enough memory to train{detail}"
    assert "training.batch_size" in told.value.hint


def test_other_errors_are_not_taken_for_a_lack_of_memory(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(loop, "make_updater", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        train(tiny_run(tmp_path / "run"), device=CPU)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    run = tiny_run(tmp_path / "run")
    train(run, device=CPU)
    recipe = (run.folder / "recipe.toml").read_text()
    (run.folder / "recipe.toml").write_text(recipe.replace("dim = 32", "dim = 31"))
    with pytest.raises(CheckpointError, match="another model"):
        train(replace(run), device=CPU)


def test_a_damaged_last_checkpoint_leaves_the_best(tmp_path):
    run = tiny_run(tmp_path / "run", validate_every=6)
    scores = iter([1.0, 0.5])
    train(run, device=CPU, validate=lambda model: {"score": next(scores)})
    (weights,) = run.checkpoint_folder("last").glob("parameters-*")
    weights.write_bytes(b"")
    with pytest.raises(CheckpointError, match="truncated"):
        train(run, device=CPU)
    for path in run.checkpoint_folder("last").iterdir():
        path.unlink()
    outcome = train(run, device=CPU)
    assert outcome.finished
    assert load_checkpoint(run.checkpoint_folder("last")).step == 12


def pairs(count=12):
    """Heads with one tail per relation, which every model can overfit, even a translation."""
    facts = [(i, relation, (relation + 1) * count + i) for i in range(count) for relation in (0, 1)]
    nothing = np.zeros((0, 3), dtype=np.int32)
    names = [f"e{i}" for i in range(3 * count)]
    vocabulary = Vocabulary(NameTable("entity", names), NameTable("relation", ["a", "b"]))
    train_edges = with_inverses(np.array(facts, dtype=np.int32))
    return KnowledgeGraph(
        "pairs", vocabulary, {"train": train_edges, "valid": nothing, "test": nothing}
    )


OVERFITTING_STEPS = 400
OVERFITTING = {
    "cone": {"dim": 64, "hidden": 64, "gamma": 2.0},
    "gqe": {"dim": 32, "gamma": 6.0},
    "box": {"dim": 32, "gamma": 6.0},
    "beta": {"dim": 32, "hidden": 64, "gamma": 6.0},
    "emql": {"dim": 24, "top_k": 16, "sketch_width": 32, "sketch_depth": 5},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"), [(model, {}) for model in MODELS] + [("cone", {"projection": "rotation"})]
)
def test_every_model_overfits_a_tiny_graph(tmp_path, model, options):
    """A model that can learn ranks the answers to its own training links first."""
    graph = pairs()
    queries = sample_query_set(
        graph, "train", PRESETS["small"], 0, shapes=[STRUCTURES["1p"], STRUCTURES["2p"]], count=24
    ).query_set
    recipe = tiny_recipe(model, steps=OVERFITTING_STEPS, batch_size=48, negatives=12)
    training = replace(
        recipe.training,
        learning_rate=2e-3 if model in ("cone", "beta") else 1e-2,
        pools=(Pool("path", (("1p", 2.0), ("2p", 1.0))),),
        cycle=("path",),
        checkpoint_every=10_000,
        log_every=100,
    )
    config = model_config(model, OVERFITTING[model] | options)
    recipe = replace(recipe, config=config, training=training)
    run = create_run(tmp_path / "run", graph, recipe, {"train": queries})
    train(run, device=CPU)
    links = replace(queries, blocks=(queries.block("1p"),))
    trained = evaluate(run.load_model("last"), links, num_entities=graph.num_entities)
    untrained = evaluate(run.new_model(), links, num_entities=graph.num_entities)
    assert trained.mean("mrr") > 0.95
    assert untrained.mean("mrr") < trained.mean("mrr")


@pytest.mark.parametrize("minutes", [-1.0, float("nan")])
def test_an_invalid_number_of_minutes_is_refused_before_any_step(tmp_path, minutes):
    run = tiny_run(tmp_path / "run")
    with pytest.raises(ConfigError, match="max_minutes = ") as caught:
        train(run, device=CPU, max_minutes=minutes)
    assert caught.value.key == "max_minutes"
    assert not run.checkpoint_folder("last").exists()


def test_a_read_only_folder_is_refused_before_any_step(tmp_path, monkeypatch, request):
    run = tiny_run(tmp_path / "run")
    request.getfixturevalue("read_only")
    monkeypatch.setattr(loop, "load_training_data", lambda *_: pytest.fail("this takes a while"))
    with pytest.raises(StoreError, match=f"Read-only file system in {run.folder}"):
        train(run, device=CPU)


def test_picks_a_device():
    assert pick_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device("cpu").type == "cpu"
    for name in ("gpu", "cuda:99", "meta", "", "cuda:x"):
        with pytest.raises(ConfigError, match=re.escape(repr(name))):
            pick_device(name)


def test_another_gpu_than_the_first_is_chosen_by_the_environment(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("cuda:0").type == "cuda"
    with pytest.raises(ConfigError, match="CUDA_VISIBLE_DEVICES=1"):
        pick_device("cuda:1")


def test_metrics_are_json_lines(tmp_path):
    run = tiny_run(tmp_path / "run")
    train(run, device=CPU)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [4, 8, 12]
    pools = set(run.recipe.training.cycle)
    assert all(pools | {"learning_rate"} <= line.keys() for line in lines)
