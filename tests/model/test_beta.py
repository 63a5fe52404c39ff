"""BetaE's formulas against scipy and numerical integration, and its two ways of scoring."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from torch.distributions import Beta, kl_divergence

from conekg.model.beta import divergence, entropy, query_constant, regularize
from small_models import small_model

parameters = st.floats(0.3, 8.0)


def tensors(*values: float) -> list[torch.Tensor]:
    return [torch.tensor(value, dtype=torch.float64) for value in values]


@given(a=parameters, b=parameters, c=parameters, d=parameters)
def test_divergence_is_that_of_torch(a: float, b: float, c: float, d: float) -> None:
    entity, query = Beta(*tensors(a, b)), Beta(*tensors(c, d))
    expected = float(kl_divergence(entity, query))
    assert float(divergence(*tensors(a, b, c, d))) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_divergence_is_the_integral() -> None:
    entity, query = stats.beta(2.0, 3.5), stats.beta(1.5, 1.2)

    def integrand(x: float) -> float:
        return float(entity.pdf(x) * (entity.logpdf(x) - query.logpdf(x)))

    expected, _ = integrate.quad(integrand, 0, 1)
    assert float(divergence(*tensors(2.0, 3.5, 1.5, 1.2))) == pytest.approx(expected)


@given(a=parameters, b=parameters)
def test_entropy_is_that_of_scipy(a: float, b: float) -> None:
    expected = float(stats.beta(a, b).entropy())
    assert float(entropy(*tensors(a, b))) == pytest.approx(expected, abs=1e-9)


def test_the_uniform_distribution_has_no_entropy() -> None:
    assert float(entropy(*tensors(1.0, 1.0))) == pytest.approx(0.0, abs=1e-15)


def test_regularized_weights_are_positive_and_bounded() -> None:
    raw = torch.tensor([-5.0, -0.95, 0.0, 2.0, 1e12])
    torch.testing.assert_close(regularize(raw), torch.tensor([0.05, 0.05, 1.0, 3.0, 1e9]))


def test_projection_is_the_formula() -> None:
    model = small_model("beta")
    alpha, beta = model.anchor(torch.tensor([1]))
    torch.testing.assert_close(
        torch.cat([alpha, beta], dim=1)[0], (model.entity[1] + 1).clamp(min=0.05)
    )
    new_alpha, new_beta = model.project((alpha, beta), torch.tensor([2]))
    values = torch.cat([alpha[0], beta[0], model.relation[2]])
    for index, layer in enumerate(list(model.projection)[::2]):
        values = layer.weight @ values + layer.bias
        if index < 2:
            values = values.clamp(min=0)
    expected = (values + 1).clamp(0.05, 1e9)
    torch.testing.assert_close(torch.cat([new_alpha[0], new_beta[0]]), expected)


def test_intersection_weighs_both_parameters_alike() -> None:
    model = small_model("beta")
    generator = torch.Generator().manual_seed(0)
    alpha = torch.rand(3, 2, 5, dtype=torch.float64, generator=generator) + 0.1
    beta = torch.rand(3, 2, 5, dtype=torch.float64, generator=generator) + 0.1
    new_alpha, new_beta = model.intersect((alpha, beta))
    first, _, second = model.attention
    for row in range(2):
        scores = [
            second.weight
            @ (first.weight @ torch.cat([alpha[i, row], beta[i, row]]) + first.bias).clamp(min=0)
            + second.bias
            for i in range(3)
        ]
        for j in range(5):
            weights = [math.exp(float(score[j])) for score in scores]
            for new, old in ((new_alpha, alpha), (new_beta, beta)):
                mean = sum(w * float(old[i, row, j]) for i, w in enumerate(weights)) / sum(weights)
                assert float(new[row, j]) == pytest.approx(mean)


def test_negation_takes_reciprocals() -> None:
    model = small_model("beta")
    alpha, beta = model.negate(tuple(torch.tensor([[v]]) for v in (4.0, 0.5)))
    assert (float(alpha), float(beta)) == (0.25, 2.0)


def test_features_reproduce_the_direct_formula() -> None:
    model = small_model("beta")
    region = model.project(model.anchor(torch.tensor([0, 3])), torch.tensor([1, 2]))
    direct = model.distance_to_all(region)
    features, constants = model.scoring_features()
    product = constants - torch.cat(region, dim=-1) @ features.t()
    torch.testing.assert_close(product + query_constant(*region)[:, None], direct)
    assert (direct > 0).all()


def test_an_entity_diverges_from_itself_by_nothing() -> None:
    model = small_model("beta")
    all_ids = torch.arange(8)
    distances = model.distance_to_all(model.anchor(all_ids))
    assert distances.diagonal().abs().max() < 1e-12
    assert (distances.fill_diagonal_(1.0) > 0).all()


def test_size_grows_as_the_distribution_flattens() -> None:
    model = small_model("beta", dim=1)
    sharp, flat = (tuple(torch.tensor([[v]]).double() for v in pair) for pair in ((9, 9), (1, 1)))
    assert float(model.size(sharp)) < float(model.size(flat))
