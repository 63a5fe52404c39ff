"""The exact lengths of arcs of a circle and of their intersections.

A sector-cone of half aperture h is an arc of length 2h. Two arcs can overlap in two
pieces, so an overlap is summed over shifts of one arc by whole turns against the other.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from conekg.model.cone import wrap

_TURN = 2.0 * math.pi
_SHIFTS = (-_TURN, 0.0, _TURN)
"""The shifts at which arcs can overlap, for axes at most π apart and half apertures up to π."""

Arc = tuple[Tensor, Tensor]
"""Axes and half apertures, in radians; shapes broadcast."""


def length(arc: Arc) -> Tensor:
    """The length of each arc."""
    return 2.0 * arc[1]


def overlap(first: Arc, second: Arc) -> Tensor:
    """The length of first ∩ second, elementwise."""
    distance = wrap(second[0] - first[0])
    total = torch.zeros_like(distance + first[1] + second[1])
    for shift in _SHIFTS:
        low = torch.maximum(-first[1], distance + shift - second[1])
        high = torch.minimum(first[1], distance + shift + second[1])
        total += torch.relu(high - low)
    return total


def overlap_of_three(first: Arc, second: Arc, third: Arc) -> Tensor:
    """The length of first ∩ second ∩ third, elementwise."""
    to_second, to_third = wrap(second[0] - first[0]), wrap(third[0] - first[0])
    total = torch.zeros_like(to_second + to_third + first[1] + second[1] + third[1])
    for one, other in itertools.product(_SHIFTS, _SHIFTS):
        low = torch.maximum(to_second + one - second[1], to_third + other - third[1])
        high = torch.minimum(to_second + one + second[1], to_third + other + third[1])
        total += torch.relu(torch.minimum(first[1], high) - torch.maximum(-first[1], low))
    return total
