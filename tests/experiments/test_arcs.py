import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.experiments.arcs import length, overlap, overlap_of_three

GRID = np.linspace(-math.pi, math.pi, 72_000, endpoint=False)
STEP = 2 * math.pi / len(GRID)
ERROR = 8 * STEP  # an arc has two ends, an intersection of three at most six

arcs = st.tuples(st.floats(-7.0, 7.0), st.floats(0.0, math.pi))


def on_grid(arc):
    """Which points of a fine grid of the circle the arc covers."""
    axis, half = arc
    return np.abs((GRID - axis + math.pi) % (2 * math.pi) - math.pi) <= half


def tensors(arc):
    return tuple(torch.tensor(part, dtype=torch.float64) for part in arc)


@given(arcs, arcs)
def test_the_overlap_of_two_agrees_with_a_grid(first, second):
    counted = STEP * (on_grid(first) & on_grid(second)).sum()
    assert float(overlap(tensors(first), tensors(second))) == pytest.approx(counted, abs=ERROR)


@given(arcs, arcs, arcs)
def test_the_overlap_of_three_agrees_with_a_grid(first, second, third):
    counted = STEP * (on_grid(first) & on_grid(second) & on_grid(third)).sum()
    exact = overlap_of_three(tensors(first), tensors(second), tensors(third))
    assert float(exact) == pytest.approx(counted, abs=ERROR)


def test_two_arcs_can_meet_twice():
    east, west = (0.0, 0.75 * math.pi), (math.pi, 0.75 * math.pi)
    assert float(overlap(tensors(east), tensors(west))) == pytest.approx(math.pi)
    whole = (1.0, math.pi)
    assert float(overlap_of_three(*map(tensors, (east, west, whole)))) == pytest.approx(math.pi)


def test_lengths():
    assert float(length(tensors((1.0, 0.5)))) == 1.0
