"""The distances of the kernels' geometries, written out from the papers in float64."""

import math

import torch
from torch import Tensor

from conekg.model.kernels import geometry

RANGE = 0.4
CENTER_WEIGHT = 0.02


def plain_distance(
    kind: int, entities: Tensor, first: Tensor, second: Tensor, ids: Tensor
) -> Tensor:
    """[rows, candidates] from regions (first, second) to their candidates."""
    rows = entities[ids]
    a, b = first[:, None], second[:, None].expand_as(rows)
    if kind == geometry.CONE:
        gap = math.pi * torch.tanh(rows / RANGE) - a
        inside = torch.sin(gap / 2).abs() < torch.sin(b / 2).abs()
        edges = torch.sin((gap + b) / 2).abs(), torch.sin((gap - b) / 2).abs()
        outer = torch.where(inside, 0.0, torch.minimum(*edges))
        inner = torch.minimum(torch.sin(gap / 2).abs(), torch.sin(b / 2).abs())
        return (outer + CENTER_WEIGHT * inner).sum(-1)
    if kind == geometry.BOX:
        delta = (rows - a).abs()
        inner = torch.minimum(delta, b).abs()
        return (torch.relu(delta - b) + CENTER_WEIGHT * inner).sum(-1)
    if kind == geometry.POINT:
        return (rows - a).abs().sum(-1)
    return -(rows * a).sum(-1)


def random_inputs(kind: int, entities: int, rows: int, dim: int, seed: int) -> list[Tensor]:
    """A table of entities and the two components of regions, in float64.

    Half apertures may exceed π, as with dropout, and half sizes of boxes may be negative.
    """
    generator = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64) * (high - low) + low

    table = uniform(-0.8, 0.8, entities, dim)
    if kind == geometry.CONE:
        first, second = uniform(-math.pi, math.pi, rows, dim), uniform(0, 1.2 * math.pi, rows, dim)
    else:
        first, second = uniform(-1, 1, rows, dim), uniform(-0.2, 0.8, rows, dim)
    return [table, first, second]
