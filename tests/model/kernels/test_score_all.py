"""Scores of all entities against distances written out from the papers."""

import math

import pytest
import torch

pytest.importorskip("triton")

from conekg.model.kernels import geometry
from conekg.model.kernels.score_all import EntityColumns
from plain_distance import CENTER_WEIGHT, RANGE, plain_distance, random_inputs

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("kind", [geometry.CONE, geometry.BOX, geometry.POINT])
@pytest.mark.parametrize(("rows", "dim"), [(5, 7), (1, 1), (33, 3)])
def test_every_distance(kind: int, rows: int, dim: int) -> None:
    num_entities = 131  # one more than a block, and then some
    table, first, second = random_inputs(kind, num_entities, rows, dim, seed=dim)
    second = second.clamp(max=math.pi)  # apertures are stretched in training only
    ids = torch.arange(num_entities).expand(rows, -1)
    expected = plain_distance(kind, table, first, second, ids)
    columns = EntityColumns(table.float().to(DEVICE), geometry=kind, inverse_range=1 / RANGE)
    actual = columns.distances(first.float().to(DEVICE), second.float().to(DEVICE), CENTER_WEIGHT)
    torch.testing.assert_close(actual.cpu().double(), expected, atol=2e-5, rtol=1e-5)
    assert expected.std() > 1e-3


def test_no_rows_no_scores() -> None:
    columns = EntityColumns(torch.zeros(4, 3, device=DEVICE), geometry=0, inverse_range=1.0)
    empty = torch.zeros(0, 3, device=DEVICE)
    assert columns.distances(empty, empty, 0.0).shape == (0, 4)
