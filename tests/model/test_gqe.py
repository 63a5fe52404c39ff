"""GQE's formulas in plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from conekg.model.gqe import Gqe, GqeConfig
from small_models import small_model


def test_projection_translates() -> None:
    model = small_model("gqe")
    (point,) = model.project(model.anchor(torch.tensor([2])), torch.tensor([3]))
    expected = [e + r for e, r in zip(model.entity[2], model.relation[3], strict=True)]
    assert point[0].tolist() == pytest.approx([float(x) for x in expected])


def test_intersection_is_attention_over_points() -> None:
    model = small_model("gqe")
    points = torch.randn(3, 2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (result,) = model.intersect((points,))
    first, _, second = model.attention
    for row in range(2):
        scores = [
            second.weight @ (first.weight @ points[i, row] + first.bias).clamp(min=0) + second.bias
            for i in range(3)
        ]
        for j in range(5):
            weights = [math.exp(float(score[j])) for score in scores]
            expected = sum(
                w / sum(weights) * float(points[i, row, j]) for i, w in enumerate(weights)
            )
            assert float(result[row, j]) == pytest.approx(expected)


def test_distance_is_the_sum_of_absolute_differences() -> None:
    model = small_model("gqe")
    point = torch.linspace(-1, 1, 10, dtype=torch.float64).reshape(2, 5)
    distances = model.distance((point,), torch.tensor([[0, 1], [2, 3]]))
    for row, ids in enumerate([[0, 1], [2, 3]]):
        for column, entity in enumerate(ids):
            expected = sum(
                abs(float(e) - float(q))
                for e, q in zip(model.entity[entity], point[row], strict=True)
            )
            assert float(distances[row, column]) == pytest.approx(expected)


def test_tables_start_within_the_embedding_range() -> None:
    model = Gqe(400, 30, GqeConfig(dim=20, gamma=24.0), torch.Generator().manual_seed(0))
    rho = 26 / 20
    assert model.embedding_range == pytest.approx(rho)
    for table in (model.entity, model.relation):
        assert 0.97 * rho < table.abs().max() <= rho
        assert table.mean().abs() < 0.1 * rho
