import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from conekg.experiments.statistics import average_ranks, pearson, roc_auc, roc_curve, spearman

numbers = st.integers(-4, 4).map(float)
pairs = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=30)


@given(st.lists(numbers, min_size=1, max_size=30))
def test_ranks_are_scipys(values):
    assert average_ranks(values).tolist() == stats.rankdata(values).tolist()


@given(pairs)
def test_correlations_are_scipys(points):
    x, y = np.array(points).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert pearson(x, y) is None
        assert spearman(x, y) is None
    else:
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)


@given(st.lists(numbers, min_size=1, max_size=15), st.lists(numbers, min_size=1, max_size=15))
def test_the_area_is_the_share_of_pairs_in_order(positive, negative):
    won = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    assert roc_auc(positive, negative) == pytest.approx(sum(won) / len(won))


@given(st.lists(numbers, min_size=1, max_size=15), st.lists(numbers, min_size=1, max_size=15))
def test_the_area_is_that_under_the_curve(positive, negative):
    false, true = roc_curve(positive, negative)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    area = np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2)
    assert area == pytest.approx(roc_auc(positive, negative))


def test_a_long_curve_is_thinned_and_still_whole():
    values = np.random.default_rng(0).normal(size=(2, 5000))
    false, true = roc_curve(values[0] + 1, values[1], points=50)
    assert len(false) == len(true) == 51
    assert (false[-1], true[-1]) == (1, 1)
    area = np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2)
    assert area == pytest.approx(roc_auc(values[0] + 1, values[1]), abs=2e-3)


def test_nan_has_no_statistic():
    """NaN has no rank, but sorting would give it one, and so a plausible correlation."""
    nan, infinite = float("nan"), float("inf")
    for points in ([1.0, 2.0, nan], [nan, nan, nan]):
        assert pearson(points, [1.0, 2.0, 3.0]) is None
        assert pearson([1.0, 2.0, 3.0], points) is None
        assert spearman([1.0, 2.0, 3.0], points) is None
        assert spearman(points, [1.0, 2.0, 3.0]) is None
    assert roc_auc([1.0, nan], [0.0]) is None
    assert roc_auc([1.0], [nan]) is None
    assert pearson([1.0, 2.0, infinite], [1.0, 2.0, 3.0]) is None
    assert pearson([1.0, 2.0, 3.0], [1.0, 2.0, infinite]) is None
    assert spearman([1.0, 2.0, infinite], [1.0, 2.0, 3.0]) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_correlations_do_not_depend_on_the_unit(scale):
    x, y = np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.0, 1.0, 5.0, 5.0])
    expected = stats.pearsonr(x, y).statistic
    assert pearson(scale * x, y) == pytest.approx(expected)
    assert pearson(x, -scale * y) == pytest.approx(-expected)


def test_empty_input_has_no_statistic():
    assert roc_auc([], [1.0]) is None
    assert pearson([1.0], [2.0]) is None
