"""How long a training step takes: the one clock of benchmarks and of `conekg reproduce speed`."""

from __future__ import annotations

import statistics
import time

from conekg.training.updater import Updater

WARM_UP_STEPS = 5
"""Steps before the clock starts: compilation, caches, and the graph of a GPU, which is captured
in the fourth."""

REPEATS = 5
"""How many times the steps are timed; the median counts."""


def seconds_per_step(
    updater: Updater, learning_rate: float, steps: int, *, repeats: int = REPEATS
) -> float:
    """The median over `repeats` of the mean time of `steps` training steps, warmed up."""
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
