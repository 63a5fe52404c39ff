"""Curves: isotonic fits against scipy, and measures of them by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from conekg.answering.curves import (
    expected_calibration_error,
    fit_curve,
    foreseen,
    is_clearly_less,
    mean_error,
    pool_adjacent_violators,
    surprise,
)


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(1, 4)), min_size=1, max_size=40))
def test_pooling_is_isotonic_regression(weighted: list[tuple[float, int]]) -> None:
    sequence, weights = (np.array(column) for column in zip(*weighted, strict=True))
    means, sizes = pool_adjacent_violators(sequence, weights)
    assert sizes.sum() == weights.sum()
    assert (np.diff(means) > 0).all()
    fitted = isotonic_regression(sequence, weights=weights).x
    np.testing.assert_allclose(np.repeat(means, sizes), np.repeat(fitted, weights), atol=1e-9)


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=40))
def test_a_curve_rises_and_stays_within_its_points(points: list[tuple[float, bool]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    curve = fit_curve(x, y)
    found = curve(np.linspace(-6, 6, 50))
    assert (np.diff(found) >= -1e-12).all()
    assert found.min() >= -1e-12
    assert found.max() <= 1 + 1e-12


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=30))
def test_points_of_equal_x_share_a_value(points: list[tuple[int, bool]]) -> None:
    """The least-squares fit of a rising function, whatever the order of the points."""
    x, y = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    places, owners, counts = np.unique(x, return_inverse=True, return_counts=True)
    best = isotonic_regression(np.bincount(owners, y) / counts, weights=counts).x
    backwards = fit_curve(x[::-1], y[::-1])
    curve = fit_curve(x, y)
    assert curve == backwards
    assert curve.x == tuple(sorted(set(curve.x)))
    # Pooled points have one knot, at their mean.
    blocks, members = np.unique(best.round(9), return_inverse=True)
    centers = np.bincount(members, places * counts) / np.bincount(members, counts)
    np.testing.assert_allclose(curve(centers), blocks, atol=1e-6)


def test_equal_scores_are_as_likely_as_they_are_true() -> None:
    curve = fit_curve(np.array([1.0, 1.0, 1.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0, 1.0]))
    assert curve([1.0, 2.0]).tolist() == [0.5, 1.0]


def test_a_curve_without_points_is_zero() -> None:
    assert fit_curve(np.empty(0), np.empty(0))([-3.0, 0.0, 3.0]).tolist() == [0.0, 0.0, 0.0]


def test_knots_rise_between_adjacent_floats() -> None:
    for number in range(2, 40):
        x = np.array([0.1] * number + [math.nextafter(0.1, 1)] * (number + 1))
        curve = fit_curve(x, np.repeat([0.0, 1.0], [number, number + 1]))
        assert list(curve.x) == sorted(curve.x)


def test_a_curve_recovers_a_rising_relation() -> None:
    generator = np.random.default_rng(0)
    scores = generator.uniform(-4, 4, 20_000)
    truth = 1 / (1 + np.exp(-scores))
    hits = (generator.uniform(size=len(scores)) < truth).astype(float)
    fitted = fit_curve(scores, hits)(scores)
    assert np.abs(fitted - truth).mean() < 0.03
    assert expected_calibration_error(fitted, hits) < 0.01
    assert expected_calibration_error(1 - fitted, hits) > 0.3


def test_expected_calibration_error_by_hand() -> None:
    probabilities = np.array([0.1, 0.1, 0.9, 0.9])
    hits = np.array([0.0, 1.0, 1.0, 1.0])
    # Two bins with half of the cases each: |0.1 - 0.5| and |0.9 - 1.0|.
    assert expected_calibration_error(probabilities, hits) == pytest.approx(0.25)
    assert expected_calibration_error(np.array([1.0]), np.array([1.0])) == 0.0
    # A probability of 1 is in the last bin.
    sure = expected_calibration_error(np.array([1.0, 0.95]), np.array([0.0, 1.0]))
    assert sure == pytest.approx((1.0 + 0.95 - 1.0) / 2)
    assert math.isnan(expected_calibration_error(np.empty(0), np.empty(0)))


def test_fifteen_bins_of_equal_width() -> None:
    """Gaps cancel out within a bin, such as from 8/15 to 9/15, but not across 10/15."""
    within = expected_calibration_error(np.array([0.54, 0.59]), np.array([0.0, 1.0]))
    assert within == pytest.approx((0.54 + 0.59 - 1.0) / 2)
    across = expected_calibration_error(np.array([0.62, 0.69]), np.array([1.0, 0.0]))
    assert across == pytest.approx((0.38 + 0.69) / 2)


def test_surprise_by_hand() -> None:
    found = surprise(np.array([0.5, 0.25]), np.array([1.0, 0.0]))
    assert found == pytest.approx([-math.log(0.5), -math.log(0.75)])
    assert surprise(np.array([0.0]), np.array([1.0])) == pytest.approx(-math.log(1e-4))
    assert surprise(np.array([1.0]), np.array([0.0])) == pytest.approx(-math.log(1e-4))


def test_the_mean_error_ignores_nan() -> None:
    assert mean_error([0.25, math.nan, 0.75]) == 0.5
    assert math.isnan(mean_error([math.nan]))
    assert math.isnan(mean_error([]))


def test_each_half_is_predicted_by_the_other() -> None:
    x, y = np.array([1.0, 2.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.25, 0.5])
    half = np.array([True, True, False, False])
    assert foreseen(x, y, half).tolist() == [0.25, 0.5, 0.0, 1.0]


def test_clearly_less_is_by_more_than_the_standard_error() -> None:
    """The differences 0 and 2 have a mean of 1, with a standard error of 1."""
    ones = np.ones(2)
    assert not is_clearly_less(np.array([1.0, -1.0]), ones)
    assert is_clearly_less(np.array([0.99, -1.0]), ones)
    assert not is_clearly_less(ones, ones)
    assert not is_clearly_less(ones[:1], 2 * ones[:1]), "one case has no spread"
