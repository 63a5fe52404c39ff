"""What can be asked of an experiment: one frozen set of options for all of them.

Each experiment names the options it looks at; the command refuses the others, so that
none is ever without effect.
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
    """Which queries of the runs are used."""
    checkpoint: Which = "best"
    """Which weights of the runs are used."""
    max_queries: int | None = None
    """At most so many queries of each structure, evenly spaced ones; all when left out."""
    pairs: int | None = None
    """How many random pairs of sets, or queries of each kind; the paper's number when left out."""
    seed: int = 0
    """Determines everything that is drawn."""
    steps: int = 5
    """How many training steps are timed at once."""
    queries: Path | None = None
    """Other queries than the runs' own: a query set, or a BetaE or Query2Box folder."""
    out: Path | None = None
    """The folder that files are written to."""
    device: torch.device = field(default_factory=pick_device)
    progress: Callable[[int, int], None] = lambda done, total: None
    """Hears how many units of work are done, of how many."""
