"""Initial weights: ranges, and no global randomness."""

from __future__ import annotations

import math

import pytest
import torch

from conekg.model.layers import DeepSet, apply_to_each, linear, perceptron, uniform_table


def test_linear_layers_start_as_published() -> None:
    layer = linear(300, 500, torch.Generator().manual_seed(0))
    xavier = math.sqrt(6.0 / (300 + 500))
    assert 0.99 * xavier < float(layer.weight.detach().abs().max()) <= xavier
    bias_bound = 1 / math.sqrt(300)
    assert 0.9 * bias_bound < float(layer.bias.detach().abs().max()) <= bias_bound
    assert 0.9 * bias_bound < -float(layer.bias.detach().min())
    assert float(layer.bias.detach().mean()) == pytest.approx(0.0, abs=0.1 * bias_bound)
    spread = float(layer.weight.detach().std())
    assert spread == pytest.approx(xavier / math.sqrt(3), rel=0.02)


def test_tables_are_uniform_in_their_range() -> None:
    table = uniform_table(200, 50, 0.0, 0.5, torch.Generator().manual_seed(0)).detach()
    assert table.shape == (200, 50)
    assert (table.min() >= 0) & (table.max() <= 0.5)
    assert float(table.mean()) == pytest.approx(0.25, abs=0.01)


def test_a_perceptron_has_no_activation_at_its_end() -> None:
    network = perceptron((3, 4, 4, 2), torch.Generator().manual_seed(0))
    kinds = [type(layer).__name__ for layer in network]
    assert kinds == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert [layer.out_features for layer in network if hasattr(layer, "out_features")] == [4, 4, 2]


def test_a_deep_set_ignores_order_but_not_content() -> None:
    function = DeepSet(3, 4, 2, torch.Generator().manual_seed(0))
    members = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(function(members), function(members.flip(0)))
    assert not torch.allclose(function(members), function(members[:2]))


def test_a_network_runs_once_for_several_inputs() -> None:
    network = perceptron((3, 4, 2), torch.Generator().manual_seed(0))
    parts = [torch.randn(2, 5, 3), torch.randn(3, 1, 3), torch.randn(4, 0, 3)]
    together = apply_to_each(network, parts)
    assert [tuple(part.shape) for part in together] == [(2, 5, 2), (3, 1, 2), (4, 0, 2)]
    for ours, part in zip(together, parts, strict=True):
        torch.testing.assert_close(ours, network(part))


def test_the_global_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    perceptron((3, 4, 2), torch.Generator().manual_seed(0))
    table = uniform_table(3, 4, 0.0, 1.0, torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)
    again = uniform_table(3, 4, 0.0, 1.0, torch.Generator().manual_seed(0))
    assert torch.equal(table, again)
