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
    pool_adjacent_violators,
    surprise,
)

values = st.lists(st.floats(-5, 5), min_size=1, max_size=40)


@given(values)
def test_pooling_is_isotonic_regression(sequence: list[float]) -> None:
    means, sizes = pool_adjacent_violators(np.array(sequence))
    assert sizes.sum() == len(sequence)
    assert (np.diff(means) > 0).all()
    fitted = isotonic_regression(np.array(sequence)).x
    np.testing.assert_allclose(np.repeat(means, sizes), fitted, atol=1e-9)


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=40))
def test_a_curve_rises_and_stays_within_its_points(points: list[tuple[float, bool]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    curve = fit_curve(x, y)
    found = curve(np.linspace(-6, 6, 50))
    assert (np.diff(found) >= -1e-12).all()
    assert found.min() >= -1e-12
    assert found.max() <= 1 + 1e-12


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
    # Two bins of half the cases each: |0.1 - 0.5| and |0.9 - 1.0|.
    assert expected_calibration_error(probabilities, hits) == pytest.approx(0.25)
    assert expected_calibration_error(np.array([1.0]), np.array([1.0])) == 0.0
    assert math.isnan(expected_calibration_error(np.empty(0), np.empty(0)))


def test_surprise_by_hand() -> None:
    found = surprise(np.array([0.5, 0.25]), np.array([1.0, 0.0]))
    assert found == pytest.approx([-math.log(0.5), -math.log(0.75)])
    assert surprise(np.array([0.0]), np.array([1.0])) == pytest.approx(-math.log(1e-4))


def test_each_half_is_foreseen_by_the_other() -> None:
    x, y = np.array([1.0, 2.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.25, 0.5])
    half = np.array([True, True, False, False])
    assert foreseen(x, y, half).tolist() == [0.25, 0.5, 0.0, 1.0]


def test_less_is_clear_beyond_the_standard_error() -> None:
    """Of differences 0 and 2 the mean is 1, and so is its standard error."""
    ones = np.ones(2)
    assert not is_clearly_less(np.array([1.0, -1.0]), ones)
    assert is_clearly_less(np.array([0.99, -1.0]), ones)
    assert not is_clearly_less(ones, ones)
    assert not is_clearly_less(ones[:1], 2 * ones[:1]), "one case has no spread"
