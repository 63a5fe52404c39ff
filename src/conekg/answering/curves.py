"""Isotonic regression, and the measures by which calibration compares and chooses curves.

Works on NumPy arrays alone; queries and models are left to `calibrate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_BINS = 15
"""Bins of the expected calibration error."""


@dataclass(frozen=True)
class Curve:
    """A function that never falls, linear between its knots and constant beyond them."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, values: FloatArray | Sequence[float]) -> FloatArray:
        """The function at each value."""
        return np.interp(values, self.x, self.y)


def fit_curve(x: FloatArray, y: FloatArray) -> Curve:
    """The least-squares rising curve through points in any order; 0 everywhere without points."""
    if len(x) == 0:
        return Curve((0.0,), (0.0,))
    # A curve has one value at each x: points of equal x become their mean, with their number.
    _, owners, counts = np.unique(x, return_inverse=True, return_counts=True)
    means, sizes = pool_adjacent_violators(np.bincount(owners, y) / counts, counts)
    centers = np.add.reduceat(np.sort(x), np.cumsum(sizes) - sizes) / sizes
    # Rounding may put neighbouring centers out of order.
    knots = np.maximum.accumulate(centers)
    return Curve(tuple(knots.tolist()), tuple(means.tolist()))


def pool_adjacent_violators(
    values: FloatArray, weights: NDArray[np.int64]
) -> tuple[FloatArray, NDArray[np.int64]]:
    """(means, sizes) of the blocks of the isotonic regression of a weighted sequence.

    Neighbouring blocks whose means do not rise are merged until all rise; the size of a block
    is the sum of its weights.
    """
    means: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, size = value, weight
        while means and means[-1] >= mean:
            size += sizes[-1]
            mean += (means.pop() - mean) * sizes.pop() / size
        means.append(mean)
        sizes.append(size)
    return np.array(means), np.array(sizes, dtype=np.int64)


def foreseen(x: FloatArray, y: FloatArray, half: NDArray[np.bool_]) -> FloatArray:
    """[n] two-fold cross-validation: the value at each x of the curve fitted on the other half."""
    found = np.empty(len(x))
    for seen in (half, ~half):
        found[~seen] = fit_curve(x[seen], y[seen])(x[~seen])
    return found


def expected_calibration_error(probabilities: FloatArray, hits: FloatArray) -> float:
    """The mean gap between probability and frequency over 15 bins, weighted by the bins' counts.

    NaN without any probabilities.
    """
    if len(hits) == 0:
        return math.nan
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, probabilities - hits, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(hits))


def surprise(probabilities: FloatArray, hits: FloatArray) -> FloatArray:
    """[n] the negative log-likelihood, in nats, of each outcome under its probability.

    Probabilities are clipped to [0.0001, 0.9999], so that one wrong certainty is not infinite.
    """
    likely = np.clip(probabilities, 1e-4, 1 - 1e-4)
    return -np.where(hits > 0, np.log(likely), np.log1p(-likely))


def is_clearly_less(values: FloatArray, others: FloatArray) -> bool:
    """Whether `values` are smaller than `others` on average, by more than one standard error.

    The standard error is that of the mean of their pairwise differences; False for fewer than
    two pairs.
    """
    if len(values) < 2:
        return False
    gains = others - values
    return bool(gains.mean() > gains.std(ddof=1) / math.sqrt(len(gains)))


def mean_error(errors: Sequence[float]) -> float:
    """The mean of the errors that are not NaN; NaN if all are."""
    known = [error for error in errors if not math.isnan(error)]
    return sum(known) / len(known) if known else math.nan
