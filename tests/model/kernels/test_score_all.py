"""Scores of all entities against distances written out from the papers."""

import math

import pytest
import torch

pytest.importorskip("triton")

from conekg.model.kernels import geometry, score_all
from conekg.model.kernels.score_all import EntityColumns
from plain_distance import CENTER_WEIGHT, RANGE, plain_distance, random_inputs

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("kind", [geometry.CONE, geometry.BOX, geometry.POINT])
@pytest.mark.parametrize(("rows", "dim"), [(5, 7), (1, 1), (8, 2), (9, 2), (33, 3)])
def test_every_distance(kind: int, rows: int, dim: int) -> None:
    num_entities = 131  # one more than a block, and then some
    table, first, second = random_inputs(kind, num_entities, rows, dim, seed=dim)
    ids = torch.arange(num_entities).expand(rows, -1)
    expected = plain_distance(kind, table, first, second, ids)
    columns = EntityColumns(table.float().to(DEVICE), geometry=kind, inverse_range=1 / RANGE)
    actual = columns.distances(first.float().to(DEVICE), second.float().to(DEVICE), CENTER_WEIGHT)
    torch.testing.assert_close(actual.cpu().double(), expected, atol=2e-5, rtol=1e-5)
    assert expected.std() > 1e-3


@pytest.mark.parametrize("turns", [-1.0, 1.0, 2.0])
def test_half_apertures_below_zero_and_beyond_the_circle(turns: float) -> None:
    """Users' models may have them, and the kernel must still give the formula's values."""
    table, first, second = random_inputs(geometry.CONE, 140, 4, 9, seed=3)
    second = second + 2 * math.pi * turns
    expected = plain_distance(geometry.CONE, table, first, second, torch.arange(140).expand(4, -1))
    columns = EntityColumns(table.float().to(DEVICE), geometry=0, inverse_range=1 / RANGE)
    first, second = first.float().to(DEVICE), second.float().to(DEVICE)
    actual = columns.distances(first, second, CENTER_WEIGHT)
    torch.testing.assert_close(actual.cpu().double(), expected, atol=2e-5, rtol=1e-5)
    assert expected.std() > 1e-3


def test_the_grid_of_ten_million_entities_fits_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first axis of a CUDA grid holds 2^31 − 1 programs, the others 65,535."""
    grids = list[tuple[int, ...]]()

    class Launched:
        def __getitem__(self, grid: tuple[int, ...]):
            grids.append(grid)
            return lambda *arguments, **options: None

    columns = EntityColumns(torch.zeros(2, 3, device=DEVICE), geometry=1, inverse_range=1.0)
    columns.num_entities = 10_000_000
    monkeypatch.setattr(score_all, "_distance_kernel", Launched())
    region = torch.zeros(1, 3, device=DEVICE)
    columns.distances(region, region, 0.0)
    (grid,) = grids
    assert math.prod(grid) >= 10_000_000 / 128
    assert grid[0] < 2**31
    assert all(length <= 65_535 for length in grid[1:])


def test_no_rows_no_scores() -> None:
    columns = EntityColumns(torch.zeros(4, 3, device=DEVICE), geometry=0, inverse_range=1.0)
    empty = torch.zeros(0, 3, device=DEVICE)
    assert columns.distances(empty, empty, 0.0).shape == (0, 4)
