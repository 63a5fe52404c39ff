import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.training.loss import UNINFORMED_LOSS, negative_sampling_loss, subsampling_weights

logit = st.floats(-30, 30)


def log_sigmoid(x):
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(
            st.tuples(
                st.lists(logit, min_size=3, max_size=3),
                st.lists(logit, min_size=k, max_size=k),
                st.floats(0.1, 1),
            ),
            min_size=1,
            max_size=5,
        )
    )
)
def test_equals_the_formula_written_out(rows):
    total = sum(weight for *_, weight in rows)
    positive = -sum(w * sum(map(log_sigmoid, ps)) / len(ps) for ps, _, w in rows) / total
    negative = -sum(w * sum(log_sigmoid(-n) for n in ns) / len(ns) for _, ns, w in rows) / total
    loss = negative_sampling_loss(
        torch.tensor([p for p, _, _ in rows], dtype=torch.float64),
        torch.tensor([n for _, n, _ in rows], dtype=torch.float64),
        torch.tensor([w for *_, w in rows], dtype=torch.float64),
    )
    assert float(loss) == pytest.approx((positive + negative) / 2, rel=1e-12)


def test_a_model_that_knows_nothing_pays_log_two():
    loss = negative_sampling_loss(torch.zeros(3, 1), torch.zeros(3, 2), torch.ones(3))
    assert float(loss) == pytest.approx(UNINFORMED_LOSS)


def test_weights_fall_with_the_number_of_answers():
    weights = subsampling_weights(torch.tensor([0, 5, 96]))
    assert weights.tolist() == pytest.approx([0.5, 1 / 3, 0.1])
    assert subsampling_weights(torch.tensor([0, 5, 96]), 0.0).tolist() == [1.0, 1.0, 1.0]
    assert subsampling_weights(torch.tensor([0, 5]), 1.0).tolist() == pytest.approx([1 / 4, 1 / 9])


def test_a_temperature_weighs_negatives_by_how_likely_they_seem():
    rows, weights = [[3.0, -1.0, 0.5], [-2.0, 4.0, 1.0]], [0.75, 0.25]
    logits = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    loss = negative_sampling_loss(
        torch.zeros(2, 1, dtype=torch.float64),
        logits,
        torch.tensor(weights, dtype=torch.float64),
        adversarial_temperature=2.0,
    )
    totals = [sum(math.exp(2 * x) for x in row) for row in rows]
    negative = -sum(
        weight * math.exp(2 * x) / total * log_sigmoid(-x)
        for row, weight, total in zip(rows, weights, totals, strict=True)
        for x in row
    )
    assert loss.item() == pytest.approx((math.log(2) + negative) / 2, rel=1e-12)
    (gradient,) = torch.autograd.grad(loss, logits)
    # The weights themselves are not learnt through: only −log σ(−ℓ) is differentiated.
    for found, row, weight, total in zip(gradient.tolist(), rows, weights, totals, strict=True):
        expected = [weight * math.exp(2 * x) / total / (1 + math.exp(-x)) / 2 for x in row]
        assert found == pytest.approx(expected, rel=1e-12)
