"""How matrix products are taken: the one meaning of a recipe's `precision`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

Precision = Literal["float32", "tf32", "bfloat16"]


@contextmanager
def matrix_precision(precision: Precision, device: torch.device) -> Iterator[None]:
    """Take matrix products on a GPU in the given precision, sums in float32.

    On a CPU, where reduced precision is slower, every choice means float32. Weights,
    moments, angles and distances are float32 always.
    """
    if precision == "float32" or device.type != "cuda":
        yield
    elif precision == "bfloat16":
        with torch.autocast("cuda", torch.bfloat16):
            yield
    else:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


class ReducedWeights:
    """Copies of a model's layers in another kind of number, for products to read.

    Autocast makes such copies anew in every update, before anything can begin. These are
    renewed when the weights have moved, beside other work.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Copies all linear layers within `model`; relation and entity tables stay as they are."""
        self._weights: dict[str, nn.Parameter] = {
            f"{prefix}.{name}": parameter
            for prefix, layer in model.named_modules()
            if isinstance(layer, nn.Linear)
            for name, parameter in layer.named_parameters(recurse=False)
        }
        self._copies = {
            name: weight.detach().to(dtype, copy=True) for name, weight in self._weights.items()
        }

    def renew(self, *, moved_only: bool = False) -> None:
        """Copy the weights again; with `moved_only`, those that an update has a gradient for."""
        names = [
            name
            for name, weight in self._weights.items()
            if weight.grad is not None or not moved_only
        ]
        if names:
            torch._foreach_copy_(
                [self._copies[name] for name in names],
                [self._weights[name].detach() for name in names],
            )

    def stand_ins(self) -> dict[str, Tensor]:
        """The copies by parameter name; gradients by them go to the weights."""
        stand_in: Callable[[Tensor, Tensor], Tensor] = _StandIn.apply
        return {
            name: stand_in(weight, self._copies[name]) for name, weight in self._weights.items()
        }


class _StandIn(torch.autograd.Function):
    """The second of two tensors, differentiated as the first, of which it is a copy."""

    @staticmethod
    def forward(_: Any, weight: Tensor, copy: Tensor) -> Tensor:
        return copy.view_as(copy)

    @staticmethod
    def backward(_: Any, *gradients: Any) -> Any:
        return gradients[0].float(), None
