"""Lets idle OpenMP threads sleep instead of spin, so that busy threads can use their cores.

By default torch's OpenMP threads spin for a while after each operation. When the cores have other
work too, that costs more than it saves: on two busy cores, scoring a batch of 32 took four times as
long with spinning threads.
"""

from __future__ import annotations

import os


def let_idle_threads_sleep() -> None:
    """Tell OpenMP not to spin, unless OMP_WAIT_POLICY is already set.

    OpenMP reads this once, when torch is loaded: call it before anything imports torch.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
