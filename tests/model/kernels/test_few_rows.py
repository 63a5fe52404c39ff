"""Products of few rows, compared with those of the library."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.model.catalog import build_model
from conekg.model.cone import ConeConfig
from conekg.model.kernels import few_rows
from conekg.model.kernels.few_rows import (
    MOST_ROWS,
    FewRowsLinear,
    few_rows_linear,
    has_wide_vectors,
    lay_out_for_few_rows,
    multiply,
    pack,
)


@given(st.integers(1, MOST_ROWS), st.integers(1, 40), st.integers(1, 70), st.integers(0, 9))
def test_products_are_the_library_s(rows: int, inputs: int, outputs: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, inputs)).astype(np.float32)
    weight = draw.normal(size=(outputs, inputs)).astype(np.float32)
    panels = pack(weight)
    start = np.zeros(len(panels) * 32, dtype=np.float32)
    start[:outputs] = draw.normal(size=outputs)
    found = multiply(x, panels, start)[:rows, :outputs]
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + start[:outputs]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(5,), (2, 6), (MOST_ROWS + 1,), (0,), (3, 0)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_of_any_leading_shape(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(50, 36, bias=bias)
    fast = FewRowsLinear(layer)
    inputs = torch.randn(*shape, 50)
    with torch.inference_mode():
        found = fast(inputs)
        torch.testing.assert_close(found, layer(inputs), rtol=1e-5, atol=1e-5)
        apart = fast(torch.randn(*shape, 100)[..., ::2])  # not contiguous
    assert found.shape == apart.shape == (*shape, 36)
    assert fast.state_dict().keys() == layer.state_dict().keys()


def test_copies_of_a_layer_are_aligned_for_vector_loads() -> None:
    """A plain copy of an array need not be aligned, and aligned loads from it crash."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(200, 160)
    fast = FewRowsLinear(layer)
    inputs = torch.randn(5, 200)
    for copied in (deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert copied._panels.ctypes.data % few_rows._LARGE_PAGE == 0
        assert copied._panels is not fast._panels
        with torch.inference_mode():
            torch.testing.assert_close(copied(inputs), layer(inputs), rtol=1e-5, atol=1e-5)
        assert copied.state_dict().keys() == layer.state_dict().keys()


def test_the_rows_of_a_batch_do_not_change_each_other() -> None:
    """An answer must not depend on the other questions of its batch."""
    torch.manual_seed(1)
    fast = FewRowsLinear(torch.nn.Linear(64, 64))
    inputs = torch.randn(30, 64)
    with torch.inference_mode():
        together = fast(inputs)
        for row in range(29):
            assert torch.equal(fast(inputs[row : row + 2])[0], together[row])


def test_gradients_reach_inputs_weights_and_bias() -> None:
    layer = torch.nn.Linear(8, 4)
    fast = FewRowsLinear(layer)
    inputs = torch.randn(3, 8, requires_grad=True)
    fast(inputs).sum().backward()
    assert inputs.grad is not None
    assert layer.weight.grad is not None
    layer.weight.requires_grad_(False)
    assert fast(inputs.detach()).requires_grad, "the bias is trained alone"


def test_other_layers_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    double = torch.nn.Linear(4, 4).double()
    assert few_rows_linear(double) is double
    small = torch.nn.Linear(512, 512)
    assert few_rows_linear(small) is small
    single = torch.nn.Linear(1024, 512)
    assert isinstance(few_rows_linear(single), FewRowsLinear) == has_wide_vectors()
    monkeypatch.setattr(few_rows, "has_wide_vectors", lambda: False)
    assert few_rows_linear(single) is single


class _Doubled(torch.nn.Linear):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 2.0 * super().forward(inputs)


def test_a_subclass_of_linear_keeps_its_own_forward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("conekg.model.kernels.few_rows.LEAST_BYTES", 0)
    network = torch.nn.Sequential(_Doubled(16, 8), torch.nn.Linear(8, 4))
    inputs = torch.randn(5, 16)
    with torch.inference_mode():
        before = network(inputs)
    lay_out_for_few_rows(network)
    with torch.inference_mode():
        torch.testing.assert_close(network(inputs), before)
    assert isinstance(network[1], FewRowsLinear) == has_wide_vectors()


def test_the_layout_of_weights_changes_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conekg.model.kernels.few_rows.LEAST_BYTES", 0)
    model = build_model("cone", 30, 4, ConeConfig(dim=8, hidden=12), 0).eval()
    region = model.project(model.anchor(torch.arange(5)), torch.arange(5) % 4)
    lay_out_for_few_rows(model)
    assert not model.projection[0].weight.is_contiguous()
    with torch.inference_mode():  # without gradients, FewRowsLinear uses its own product
        again = model.project(model.anchor(torch.arange(5)), torch.arange(5) % 4)
    for before, after in zip(region, again, strict=True):
        torch.testing.assert_close(before, after)
