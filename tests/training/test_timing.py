"""Times are computed from a clock that the tests set."""

from __future__ import annotations

import pytest

from conekg.training import timing


class Counting:
    """An updater that takes a second a step, and four more for each of the first steps."""

    def __init__(self) -> None:
        self.steps = 0
        self.now = 0.0

    def step(self, learning_rate: float) -> None:
        assert learning_rate == 0.5
        self.steps += 1
        self.now += 1.0 if self.steps > timing.WARM_UP_STEPS else 5.0

    def take_loss(self) -> dict[str, float]:
        self.now += 0.5  # the wait for the device
        return {}


def test_the_time_per_step_leaves_out_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    updater = Counting()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: updater.now)
    assert timing.seconds_per_step(updater, 0.5, 10, repeats=3) == pytest.approx(1.05)  # type: ignore[arg-type]
    assert updater.steps == timing.WARM_UP_STEPS + 30


def test_one_slow_repeat_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    updater = Counting()
    times = iter([0.0, 20.0, 20.0, 30.0, 30.0, 1000.0])  # before and after each of three repeats
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(times))
    assert timing.seconds_per_step(updater, 0.5, 10, repeats=3) == pytest.approx(2.0)  # type: ignore[arg-type]
