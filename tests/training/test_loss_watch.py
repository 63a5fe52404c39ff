"""The definition of a collapse, which does not depend on how often losses are reported."""

import math

import pytest

from conekg.errors import TrainingDivergedError
from conekg.training.loss_watch import LossWatch

NOTHING = 0.69


def steps(watch, every=50):
    """A function that shows its arguments to the watch as losses, `every` steps apart."""
    step = 0

    def show(*losses):
        nonlocal step
        for loss in losses:
            step += every
            watch.check(loss if isinstance(loss, dict) else {"path": loss}, step, 0.1)

    return show


def test_a_bad_moment_and_a_slow_start_are_no_collapse():
    slow = steps(LossWatch(NOTHING))
    slow(*[0.9, 0.93 * NOTHING, 0.9] * 20)
    barely = steps(LossWatch(NOTHING))
    barely(0.88 * NOTHING, *[0.995 * NOTHING] * 4)
    with pytest.raises(TrainingDivergedError, match="collapsed"):
        barely(0.995 * NOTHING)
    watch = steps(LossWatch(NOTHING))
    watch(0.3, *[0.7] * 4, 0.3, *[{"path": 0.7, "other": 0.69}] * 4)
    with pytest.raises(TrainingDivergedError, match=r"collapsed: 0\.6950 at step 550") as caught:
        watch({"path": 0.7, "other": 0.69})
    assert "lower the learning rate, now 0.1" in str(caught.value.hint)
    assert "the last checkpoint may already be collapsed" in str(caught.value.hint)
    nearly = steps(LossWatch(NOTHING))
    nearly(0.88 * NOTHING, *[0.98 * NOTHING] * 20)


def test_pools_are_judged_by_their_mean():
    show = steps(LossWatch(NOTHING))
    show({"path": 0.3, "other": 0.5}, *[{"path": 0.6, "other": 0.8}] * 4)
    with pytest.raises(TrainingDivergedError, match="collapsed"):
        show({"path": 0.6, "other": 0.8})


def test_a_report_without_losses_is_ignored():
    watch = LossWatch(NOTHING)
    steps(watch)(0.3, {}, {})
    for step in range(200, 450, 50):
        watch.see({"path": 0.7}, step)
    watch.check({}, 450, 0.1)
    with pytest.raises(TrainingDivergedError, match="collapsed"):
        watch.check({"path": 0.7}, 500, 0.1)


@pytest.mark.parametrize("every", [1, 7, 50, 500])
def test_a_noisy_loss_is_no_collapse_however_often_it_is_reported(every):
    """Losses vary between 0.55 and 0.8 by chance; nothing was learnt, so nothing collapses."""
    noisy = [0.55, 0.8, 0.75, 0.7, 0.72, 0.71, 0.69, 0.74, 0.7, 0.6]
    means = [
        sum(noisy[(start + k) % 10] for k in range(every)) / every
        for start in range(0, 2000, every)
    ]
    show = steps(LossWatch(NOTHING), every=every)
    show(*means)


@pytest.mark.parametrize("every", [1, 7, 50, 500])
def test_a_collapse_is_seen_however_often_losses_are_reported(every):
    show = steps(LossWatch(NOTHING), every=every)
    show(*[0.3] * math.ceil(60 / every))
    with pytest.raises(TrainingDivergedError, match="collapsed"):
        show(*[0.7] * math.ceil(400 / every))


def test_a_loss_that_is_not_finite_raises_at_once():
    told = "the loss of pool 'path' is nan at step 1"
    with pytest.raises(TrainingDivergedError, match=told) as caught:
        steps(LossWatch(None), every=1)(math.nan)
    assert "--set training.learning_rate" in str(caught.value.hint)
    assert "the last checkpoint is from before this" in str(caught.value.hint)


def test_without_an_uninformed_loss_nothing_collapses():
    steps(LossWatch(None))(0.1, *[5.0] * 20)
