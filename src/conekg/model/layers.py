"""The small networks and tables that models share, initialised from a generator passed in.

PyTorch's own constructors draw from the global random state; these do not, so that a
seed determines a model whatever else ran before.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init


def uniform_table(
    rows: int, width: int, low: float, high: float, generator: torch.Generator
) -> nn.Parameter:
    """A parameter [rows, width] drawn from U(low, high)."""
    return nn.Parameter(torch.empty(rows, width).uniform_(low, high, generator=generator))


def linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """A linear layer with Xavier-uniform weights and PyTorch's default bias."""
    layer = skip_init(nn.Linear, inputs, outputs)
    assert isinstance(layer, nn.Linear)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    bound = 1.0 / math.sqrt(inputs)
    nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return layer


def perceptron(widths: tuple[int, ...], generator: torch.Generator) -> nn.Sequential:
    """Linear layers of the given widths with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [linear(inputs, outputs, generator), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DeepSet(nn.Module):
    """A function of a set that ignores its order: `outer(mean ReLU(inner(x)))`."""

    def __init__(self, inputs: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.inner = linear(inputs, hidden, generator)
        self.outer = linear(hidden, outputs, generator)

    def forward(self, members: Tensor) -> Tensor:
        """[rows, outputs] from members [operands, rows, inputs]."""
        result: Tensor = self.outer(torch.relu(self.inner(members)).mean(dim=0))
        return result
