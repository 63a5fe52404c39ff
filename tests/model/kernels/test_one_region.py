"""One region against plain arithmetic, a block of dimensions at a time."""

from __future__ import annotations

import numpy as np
import pytest

from conekg.model.kernels import scoring
from conekg.model.kernels.one_region import PIECE, add_one_region
from conekg.model.kernels.processor import compiled, on_cache_lines, prefer_wide_vectors
from conekg.model.kernels.tile import BOX, CONE, POINT, TILE

DIM, BLOCK = 2 * PIECE + 27, PIECE + 9
IDS = np.array([3, 0, 4, 1, 2, 9, 7, 8])


@compiled
def partial_sums(geometry, table, ids, region, weight):  # type: ignore[no-untyped-def]
    """[blocks, 8] the running sums of some entities after each block of dimensions."""
    prefer_wide_vectors()
    sums = np.zeros(TILE, dtype=np.float32)
    history = np.empty((-(-DIM // BLOCK), TILE), dtype=np.float32)
    for block in range(len(history)):
        low, high = block * BLOCK, min((block + 1) * BLOCK, DIM)
        add_one_region(geometry, table, ids, ids, region, low, high, weight, sums)
        history[block] = sums
    return history


def plain(geometry: int, points: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """[entities] the distances, in one expression."""
    if geometry == CONE:
        return scoring.score_cones_plainly(points, first, second, 0.3)[0]
    if geometry == BOX:
        return scoring.score_boxes_plainly(points, first, second, 0.3)[0]
    return scoring.score_points_plainly(points, first)[0]


def packed(geometry: int, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, float]:
    """The packed region for the loops, and its weight."""
    if geometry == CONE:
        region, weight = scoring.pack_cones(first, second, 0.3)
        return scoring.pack_one_cone(region)[0], weight
    if geometry == BOX:
        return np.concatenate([first, second]), 0.3
    return first, 0.0


@pytest.mark.parametrize("geometry", [CONE, BOX, POINT])
def test_partial_sums_are_those_of_the_formula_and_never_decrease(geometry: int) -> None:
    generator = np.random.default_rng(geometry)
    points = generator.uniform(-np.pi, np.pi, (10, DIM)).astype(np.float32)
    first = generator.uniform(-np.pi, np.pi, (1, DIM)).astype(np.float32)
    second = generator.uniform(0, np.pi, (1, DIM)).astype(np.float32)
    region, weight = packed(geometry, first, second)
    table = scoring.cone_table(points) if geometry == CONE else points
    history = partial_sums(geometry, table, IDS, on_cache_lines(region), np.float32(weight))
    for done, sums in enumerate(history, start=1):
        upto = min(done * BLOCK, DIM)
        expected = plain(geometry, points[IDS, :upto], first[:, :upto], second[:, :upto])
        np.testing.assert_allclose(sums, expected, rtol=1e-5)
    assert (np.diff(history, axis=0) > 0).all()
