"""Metrics from ranks: the mean over a query's hard answers, then queries, then structures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.graph.adjacency import LongArray
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES

METRICS = ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")
"""The names of the metrics, in the order of a table."""

AVERAGES: dict[str, tuple[str, ...]] = {
    "avg_p": POSITIVE_STRUCTURES,
    "avg_n": NEGATION_STRUCTURES,
}
"""Which structures an average is taken over."""


@dataclass(frozen=True)
class Metrics:
    """Averages of reciprocal ranks and of hits, each between 0 and 1."""

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float


def metrics_of(ranks: NDArray[np.float64], answers_per_query: LongArray) -> Metrics:
    """The metrics of queries, from the ranks of their hard answers, query by query.

    Every query must have at least one hard answer. All queries have equal weight, however many
    hard answers they have.
    """
    starts = np.cumsum(answers_per_query) - answers_per_query

    def mean(values: NDArray[np.float64]) -> float:
        return float((np.add.reduceat(values, starts) / answers_per_query).mean())

    return Metrics(
        mrr=mean(1.0 / ranks),
        hits_at_1=mean((ranks <= 1).astype(np.float64)),
        hits_at_3=mean((ranks <= 3).astype(np.float64)),
        hits_at_10=mean((ranks <= 10).astype(np.float64)),
    )


def mean_metrics(metrics: Iterable[Metrics]) -> Metrics | None:
    """The mean of each metric; None without any metrics."""
    collected = list(metrics)
    if not collected:
        return None
    return Metrics(*(float(np.mean([getattr(m, name) for m in collected])) for name in METRICS))


def averages_of(by_structure: Mapping[str, Metrics]) -> dict[str, Metrics]:
    """avg_p and avg_n over those of their structures that were measured; absent if none was."""
    averages = {}
    for name, structures in AVERAGES.items():
        average = mean_metrics(by_structure[s] for s in structures if s in by_structure)
        if average is not None:
            averages[name] = average
    return averages
