"""The options of experiments: one frozen class for all of them.

Each experiment names the options that it uses; the command refuses the others, so that no option
is ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from conekg.graph.knowledge_graph import Split
from conekg.training.loop import pick_device
from conekg.training.run import Which


@dataclass(frozen=True)
class Options:
    """How an experiment is done; the defaults are the paper's sizes."""

    split: Split = "test"
    """Which of the runs' queries are used."""
    checkpoint: Which = "best"
    """Which of the runs' weights are used."""
    max_queries: int | None = None
    """The most queries of each structure, evenly spaced; all by default."""
    pairs: int | None = None
    """How many random pairs of sets, or queries of each kind, are drawn; by default as many as in
    the paper."""
    seed: int = 0
    """The seed of everything that is drawn."""
    steps: int = 5
    """How many training steps are timed together."""
    queries: Path | None = None
    """Queries to use instead of the runs' own: a query set, or a BetaE or Query2Box folder."""
    out: Path | None = None
    """The folder that files are written to."""
    device: torch.device = field(default_factory=pick_device)
    progress: Callable[[int, int], None] = lambda done, total: None
    """Called with the units of work done and in all."""
