"""The small networks and tables that models share, initialised from a generator passed in.

PyTorch's own constructors draw from the global random state; these do not, so that a
seed determines a model whatever else ran before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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


def apply_to_each(network: Callable[[Tensor], Tensor], parts: Sequence[Tensor]) -> list[Tensor]:
    """The network's outputs for each part [..., inputs], from one run over the rows of all."""
    if len(parts) == 1:
        return [network(parts[0])]
    results = network(torch.cat([part.flatten(0, -2) for part in parts]))
    pieces = torch.split(results, [part.shape[:-1].numel() for part in parts])
    return [
        piece.reshape(*part.shape[:-1], results.shape[-1])
        for piece, part in zip(pieces, parts, strict=True)
    ]


class DeepSet(nn.Module):
    """A function of a set that ignores its order: `outer(mean ReLU(inner(x)))`."""

    def __init__(self, inputs: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.inner = linear(inputs, hidden, generator)
        self.outer = linear(hidden, outputs, generator)

    def forward(self, members: Tensor) -> Tensor:
        """[rows, outputs] from members [operands, rows, inputs]."""
        return self.of_each([members])[0]

    def of_each(self, sets: Sequence[Tensor]) -> list[Tensor]:
        """`forward` for several sets, whose numbers of members may differ; each layer runs once."""
        inner = apply_to_each(self.inner, sets)
        return apply_to_each(self.outer, [torch.relu(hidden).mean(dim=0) for hidden in inner])
