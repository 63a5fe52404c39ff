"""Query2Box's formulas in plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from small_models import small_model

numbers = st.floats(-3, 3)


def test_projection_adds_centres_and_offsets() -> None:
    model = small_model("box")
    center, offset = model.project(model.anchor(torch.tensor([2])), torch.tensor([3]))
    torch.testing.assert_close(center[0], model.entity[2] + model.relation_center[3])
    torch.testing.assert_close(offset[0], model.relation_offset[3])
    assert (model.relation_offset >= 0).all()


@given(e=numbers, c=numbers, o=numbers)
def test_distance_is_the_formula(e: float, c: float, o: float) -> None:
    model = small_model("box", dim=1)
    region = tuple(torch.tensor([[value]], dtype=torch.float64) for value in (c, o))
    distance = float(model.distance_to_points(region, torch.tensor([[[e]]]).double()))
    delta = abs(float(torch.tensor(e)) - c)
    expected = max(0.0, delta - o) + 0.02 * abs(min(delta, o))
    assert distance == pytest.approx(expected, abs=1e-6)


def test_intersection_shrinks_offsets_by_a_gate() -> None:
    model = small_model("box")
    generator = torch.Generator().manual_seed(0)
    center = torch.randn(3, 2, 5, dtype=torch.float64, generator=generator)
    offset = torch.rand(3, 2, 5, dtype=torch.float64, generator=generator)
    new_center, new_offset = model.intersect((center, offset))
    first, _, second = model.attention
    for row in range(2):
        scores = [
            second.weight @ (first.weight @ center[i, row] + first.bias).clamp(min=0) + second.bias
            for i in range(3)
        ]
        hidden = sum(
            (model.gate.inner.weight @ offset[i, row] + model.gate.inner.bias).clamp(min=0)
            for i in range(3)
        )
        gate = model.gate.outer.weight @ (hidden / 3) + model.gate.outer.bias
        for j in range(5):
            weights = [math.exp(float(score[j])) for score in scores]
            mean = sum(w * float(center[i, row, j]) for i, w in enumerate(weights)) / sum(weights)
            assert float(new_center[row, j]) == pytest.approx(mean)
            smallest = min(float(offset[i, row, j]) for i in range(3))
            assert float(new_offset[row, j]) == pytest.approx(
                smallest / (1 + math.exp(-float(gate[j])))
            )
    assert (new_offset < offset.amin(dim=0)).all()


def test_size_and_membership_follow_the_offsets() -> None:
    model = small_model("box")
    center = model.entity[:1].detach()
    offset = torch.tensor([[0.3, 0.1, 0.0, 0.5, 0.2]], dtype=torch.float64)
    assert float(model.size((center, offset))) == pytest.approx(2 * 1.1)
    # Nothing keeps learned offsets above zero; the published distance takes their size.
    assert float(model.size((center, -offset))) == pytest.approx(2 * 1.1)
    shift = torch.tensor([[0.2, -0.2, 0.0, -0.5001, 0.1]], dtype=torch.float64)
    inside = model.inside_fraction((center + shift, offset), torch.tensor([[0]]))
    assert float(inside) == pytest.approx(3 / 5)
