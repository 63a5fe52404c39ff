"""Weights in reduced precision are used by matrix products only; the originals are trained."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call

from conekg.model.layers import perceptron
from conekg.training.precision import Precision, ReducedWeights, matrix_precision


def test_stand_ins_compute_in_their_own_precision_and_send_gradients_to_the_weights() -> None:
    network = perceptron((6, 8, 3), torch.Generator().manual_seed(0))
    reduced = ReducedWeights(network, torch.bfloat16)
    inputs = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    result = functional_call(network, reduced.stand_ins(), (inputs.bfloat16(),))
    assert result.dtype == torch.bfloat16
    exact = network(inputs)
    torch.testing.assert_close(result.float(), exact, atol=0.05, rtol=0.05)
    result.float().square().sum().backward()
    ours = {name: weight.grad for name, weight in network.named_parameters()}
    network.zero_grad()
    exact.square().sum().backward()
    for name, weight in network.named_parameters():
        grad = ours[name]
        assert grad is not None
        assert grad.dtype == torch.float32
        assert weight.grad is not None
        assert weight.grad.abs().max() > 0
        torch.testing.assert_close(grad, weight.grad, atol=0.1, rtol=0.1, msg=name)


def test_copies_follow_the_weights_when_renewed() -> None:
    network = perceptron((2, 2), torch.Generator().manual_seed(0))
    reduced = ReducedWeights(network, torch.bfloat16)
    with torch.no_grad():
        network[0].weight.fill_(1.5)
        network[0].bias.fill_(2.5)
    assert not (reduced.stand_ins()["0.weight"] == 1.5).any()
    network[0].weight.grad = torch.zeros(2, 2)
    reduced.renew(moved_only=True)
    assert (reduced.stand_ins()["0.weight"] == 1.5).all()
    assert not (reduced.stand_ins()["0.bias"] == 2.5).any()
    reduced.renew()
    assert (reduced.stand_ins()["0.bias"] == 2.5).all()


def test_the_precision_of_products_is_restored_even_after_an_error() -> None:
    def fail() -> None:
        with matrix_precision("tf32", torch.device("cuda")):
            raise KeyError(torch.get_float32_matmul_precision())

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with pytest.raises(KeyError, match=r"^'high'$"):
            fail()
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_on_a_cpu_every_choice_means_float32(precision: Precision) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 9, 9, generator=generator)
    expected = a @ b
    before = torch.get_float32_matmul_precision()
    with matrix_precision(precision, torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == before
        assert torch.equal(a @ b, expected)
