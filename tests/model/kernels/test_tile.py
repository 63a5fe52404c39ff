"""Tiles of eight against plain arithmetic, and the layout that makes them fast."""

from __future__ import annotations

import numpy as np
import pytest

from conekg.model.kernels import scoring
from conekg.model.kernels.processor import compiled, on_cache_lines, prefer_wide_vectors
from conekg.model.kernels.tile import (
    BOX,
    CONE,
    POINT,
    TILE,
    add_tile,
    load_tile,
    make_buffer,
    next_tile,
)

DIM, BLOCK = 70, 32


@compiled
def partial_sums(geometry, table, region, weight, rows):  # type: ignore[no-untyped-def]
    """[blocks, rows, 8] the running sums of the first tile after each block of dimensions."""
    prefer_wide_vectors()
    first, second = make_buffer(BLOCK), make_buffer(BLOCK)
    ids = np.empty(TILE, dtype=np.int64)
    next_tile(0, len(table), ids)
    sums = np.zeros((region.shape[0], TILE), dtype=np.float32)
    history = np.empty((3, region.shape[0], TILE), dtype=np.float32)
    for block in range(3):
        low, high = block * BLOCK, min((block + 1) * BLOCK, DIM)
        load_tile(geometry, table, ids, low, high, first, second)
        add_tile(geometry, first, second, region, low, high, weight, rows, sums)
        history[block] = sums
    return history


def regions(geometry: int, generator: np.random.Generator):  # type: ignore[no-untyped-def]
    """The entities' table, packed regions, their weight, and the plain distances."""
    points = generator.uniform(-np.pi, np.pi, (5, DIM)).astype(np.float32)
    first = generator.uniform(-np.pi, np.pi, (3, DIM)).astype(np.float32)
    second = generator.uniform(0, np.pi, (3, DIM)).astype(np.float32)
    if geometry == CONE:
        packed, weight = scoring.pack_cones(first, second, 0.3)
        plain = scoring.score_cones_plainly(points, first, second, 0.3)
        return scoring.cone_table(points), packed, weight, plain
    if geometry == BOX:
        plain = scoring.score_boxes_plainly(points, first, second, 0.3)
        return points, np.stack([first, second], axis=1), 0.3, plain
    return points, first[:, None], 0.0, scoring.score_points_plainly(points, first)


@pytest.mark.parametrize("geometry", [CONE, BOX, POINT])
def test_partial_sums_are_those_of_the_formula_and_never_decrease(geometry: int) -> None:
    table, packed, weight, plain = regions(geometry, np.random.default_rng(geometry))
    rows = np.array([0, 2])
    region = on_cache_lines(packed)
    history = partial_sums(geometry, table, region, np.float32(weight), rows)
    np.testing.assert_allclose(history[-1][rows, :5], plain[rows], rtol=1e-5)
    assert (np.diff(history, axis=0)[:, rows] > 0).all()
    assert (history[:, 1] == 0).all(), "a row that was not selected"
    # A tile repeats the last entity in its remaining places.
    np.testing.assert_array_equal(history[-1][rows, 5:], history[-1][rows, 4:5] + np.zeros((1, 3)))


def test_a_center_weight_of_zero_counts_the_outside_alone() -> None:
    generator = np.random.default_rng(0)
    points = generator.uniform(-np.pi, np.pi, (9, DIM)).astype(np.float32)
    axis = generator.uniform(-np.pi, np.pi, (2, DIM)).astype(np.float32)
    half = generator.uniform(0, np.pi, (2, DIM)).astype(np.float32)
    for rows in (1, 2):
        table = scoring.cone_table(points)
        ours = scoring.score(CONE, table, axis[:rows], half[:rows], 0.0, 1)
        plain = scoring.score_cones_plainly(points, axis[:rows], half[:rows], 0.0)
        np.testing.assert_allclose(ours, plain, rtol=1e-5)
