"""The statistics of the paper's tables: correlations, ROC curves and the area under them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def average_ranks(values: ArrayLike) -> Floats:
    """[n] ranks from 1; equal values share the mean of their ranks.

    >>> average_ranks([10, 30, 10]).tolist()
    [1.5, 3.0, 1.5]
    """
    array = np.asarray(values, dtype=np.float64)
    _, places, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[places]
    return ranks


def pearson(first: ArrayLike, second: ArrayLike) -> float | None:
    """Pearson's correlation; None if it is undefined: a side is constant or not finite."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    # Scaled to [-1, 1], so that the squares below neither overflow nor underflow.
    x, y = (side / np.abs(side).max() for side in (x - x.mean(), y - y.mean()))
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Spearman's rank correlation: Pearson's of the average ranks; None if that is undefined."""
    if np.isnan(first).any() or np.isnan(second).any():
        return None  # NaN has no rank
    return pearson(average_ranks(first), average_ranks(second))


def correlations(columns: Mapping[str, tuple[Floats, Floats]]) -> dict[str, dict[str, float]]:
    """Spearman's and Pearson's correlation of each pair of columns, without undefined ones.

    >>> correlations({"2p": (np.array([1.0, 2.0]), np.array([3.0, 9.0]))})
    {'spearman': {'2p': 1.0}, 'pearson': {'2p': 1.0}}
    """
    return {
        kind: {
            name: value for name, pair in columns.items() if (value := correlate(*pair)) is not None
        }
        for kind, correlate in (("spearman", spearman), ("pearson", pearson))
    }


def roc_auc(positive: ArrayLike, negative: ArrayLike) -> float | None:
    """The share of pairs in which the positive exceeds the negative, ties counting half.

    None if there are no pairs, or with NaN.

    >>> roc_auc([3, 4], [1, 3])
    0.875
    """
    high, low = np.asarray(positive, dtype=np.float64), np.asarray(negative, dtype=np.float64)
    if len(high) == 0 or len(low) == 0 or np.isnan(high).any() or np.isnan(low).any():
        return None
    # The Mann-Whitney statistic: the sum of the positives' ranks less its least possible value.
    ranks = average_ranks(np.concatenate([high, low]))[: len(high)]
    excess = ranks.sum() - len(high) * (len(high) + 1) / 2
    return float(excess / (len(high) * len(low)))


def roc_curve(positive: ArrayLike, negative: ArrayLike, points: int = 200) -> tuple[Floats, Floats]:
    """The false and the true positive rates at falling thresholds, from (0, 0) to (1, 1).

    A value counts as positive at or above the threshold. The thresholds are the distinct values; if
    there are more than `points`, evenly spaced ones among them.

    >>> false, true = roc_curve([3, 4], [1, 3])
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    high, low = (np.sort(np.asarray(side, dtype=np.float64)) for side in (positive, negative))
    thresholds = np.unique(np.concatenate([high, low]))[::-1]
    if len(thresholds) > points:
        # The lowest threshold stays, so that the curve ends at (1, 1).
        thresholds = thresholds[np.linspace(0, len(thresholds) - 1, points).round().astype(int)]
    shares = [1.0 - np.searchsorted(side, thresholds) / len(side) for side in (low, high)]
    false, true = (np.concatenate([[0.0], share]) for share in shares)
    return false, true
