"""Measures the time of a training step, for the benchmarks and `conekg reproduce speed`."""

from __future__ import annotations

import statistics
import time

from conekg.training.updater import Updater

WARM_UP_STEPS = 5
"""Steps before the time is taken, which fill caches, compile and, in the fourth step, capture the
graph of a GPU."""

REPEATS = 5
"""How many times the steps are timed; the result is the median."""


def seconds_per_step(
    updater: Updater, learning_rate: float, steps: int, *, repeats: int = REPEATS
) -> float:
    """The seconds per training step after a warm-up: the median of `repeats` means over `steps`."""
    for _ in range(WARM_UP_STEPS):
        updater.step(learning_rate)
    updater.take_loss()  # waits for the device
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(steps):
            updater.step(learning_rate)
        updater.take_loss()
        times.append((time.perf_counter() - started) / steps)
    return statistics.median(times)
