import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.evaluation.metrics import Metrics, averages_of, mean_metrics, metrics_of
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES

half_ranks = st.integers(2, 60).map(lambda twice: twice / 2)


@given(st.lists(st.lists(half_ranks, min_size=1, max_size=6), min_size=1, max_size=6))
def test_answers_are_averaged_within_queries_first(queries):
    found = metrics_of(
        np.array([rank for query in queries for rank in query]),
        np.array([len(query) for query in queries]),
    )

    def mean_of_means(value):
        return sum(sum(map(value, q)) / len(q) for q in queries) / len(queries)

    assert found.mrr == pytest.approx(mean_of_means(lambda rank: 1 / rank))
    assert found.hits_at_1 == pytest.approx(mean_of_means(lambda rank: rank <= 1))
    assert found.hits_at_3 == pytest.approx(mean_of_means(lambda rank: rank <= 3))
    assert found.hits_at_10 == pytest.approx(mean_of_means(lambda rank: rank <= 10))


def test_a_query_with_many_answers_counts_no_more_than_one_with_one():
    metrics = metrics_of(np.array([1.0, 2.0, 2.0, 2.0, 2.0]), np.array([1, 4]))
    assert metrics.mrr == pytest.approx(0.75)


def test_averages_are_over_the_structures_of_the_paper():
    def constant(value):
        return Metrics(value, value, value, value)

    measured = {name: constant(i / 100) for i, name in enumerate(POSITIVE_STRUCTURES)}
    measured |= {name: constant(0.5) for name in NEGATION_STRUCTURES}
    measured["2u-DM"] = constant(1.0)  # belongs to no average
    averages = averages_of(measured)
    assert averages["avg_p"].mrr == pytest.approx(0.04)
    assert averages["avg_n"].mrr == pytest.approx(0.5)
    assert averages_of({"2u-DM": constant(1.0)}) == {}
    assert mean_metrics([]) is None
