"""The precision of matrix products, as a recipe's `precision` sets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

Precision = Literal["float32", "tf32", "bfloat16"]


@contextmanager
def matrix_precision(precision: Precision, device: torch.device) -> Iterator[None]:
    """Compute matrix products on a GPU in the given precision, with sums in float32.

    On a CPU, where reduced precision is slower, every choice means float32. Weights,
    moments, angles and distances are always float32.
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
    """Copies of the weights of a model's linear layers in another data type, for matrix products.

    Autocast would make such copies in every update before the products can begin. These are
    renewed after the weights have changed, in parallel with other work.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        """Copies all linear layers within `model`, but not its tables of relations and entities."""
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
        """Copy the weights again; with `moved_only`, only those that have a gradient."""
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
        """The copies by parameter name; their gradients go to the original weights."""
        stand_in: Callable[[Tensor, Tensor], Tensor] = _StandIn.apply
        return {
            name: stand_in(weight, self._copies[name]) for name, weight in self._weights.items()
        }


class _StandIn(torch.autograd.Function):
    """Returns the second tensor, a copy of the first, but sends the gradient to the first."""

    @staticmethod
    def forward(_: Any, weight: Tensor, copy: Tensor) -> Tensor:
        return copy.view_as(copy)

    @staticmethod
    def backward(_: Any, *gradients: Any) -> Any:
        return gradients[0].float(), None
