"""Compiled scoring against its plain references: odd sizes, extremes, threads."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.model.kernels import scoring
from conekg.model.kernels.tile import BOX, CONE, POINT, TILE

sizes = st.tuples(
    st.integers(0, 9),
    st.integers(1, 23),
    # Around the vector width, and beyond one and two blocks of dimensions.
    st.sampled_from([1, 3, 7, 8, 17, 64, 511, 512, 513, 1100]),
)


def uniform(seed: int, low: float, high: float, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def assert_close(ours: np.ndarray, plain: np.ndarray, dim: int) -> None:
    assert ours.dtype == np.float32
    assert ours.shape == plain.shape
    np.testing.assert_allclose(ours, plain, rtol=3e-6, atol=3e-7 * dim)


@given(size=sizes, seed=st.integers(0, 100), threads=st.integers(1, 3))
def test_cones(size: tuple[int, int, int], seed: int, threads: int) -> None:
    rows, entities, dim = size
    angles = uniform(seed, -math.pi, math.pi, entities, dim)
    axis = uniform(seed + 1, -math.pi, math.pi, rows, dim)
    half = uniform(seed + 2, 0, math.pi, rows, dim)
    ours = scoring.score(CONE, scoring.cone_table(angles), axis, half, 0.02, threads)
    exact = (part.astype(np.float64) for part in (angles, axis, half))
    assert_close(ours, scoring.score_cones_plainly(*exact, 0.02), dim)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("entity", [-math.pi, -math.pi / 2, 0.0, 1e-4, math.pi])
@pytest.mark.parametrize("axis", [-math.pi, 0.0, math.pi / 2, math.pi])
@pytest.mark.parametrize("half", [0.0, 1e-4, math.pi / 2, math.pi, 1.2 * math.pi])
def test_cones_at_the_edges(rows: int, entity: float, axis: float, half: float) -> None:
    angles = np.full((3, 2), entity, dtype=np.float32)
    parts = [np.full((rows, 2), value, dtype=np.float32) for value in (axis, half)]
    ours = scoring.score(CONE, scoring.cone_table(angles), *parts, 0.1, 1)
    plain = scoring.score_cones_plainly(
        *(part.astype(np.float64) for part in (angles, *parts)), 0.1
    )
    np.testing.assert_allclose(ours, plain, atol=1e-6)


@given(size=sizes, seed=st.integers(0, 100), threads=st.integers(1, 3))
def test_boxes(size: tuple[int, int, int], seed: int, threads: int) -> None:
    rows, entities, dim = size
    table = uniform(seed, -1, 1, entities, dim)
    center = uniform(seed + 1, -1, 1, rows, dim)
    offset = uniform(seed + 2, -0.2, 1, rows, dim)  # offsets may turn negative
    ours = scoring.score(BOX, table, center, offset, 0.02, threads)
    exact = (part.astype(np.float64) for part in (table, center, offset))
    assert_close(ours, scoring.score_boxes_plainly(*exact, 0.02), dim)


@given(size=sizes, seed=st.integers(0, 100), threads=st.integers(1, 3))
def test_points(size: tuple[int, int, int], seed: int, threads: int) -> None:
    rows, entities, dim = size
    table, point = uniform(seed, -1, 1, entities, dim), uniform(seed + 1, -1, 1, rows, dim)
    ours = scoring.score(POINT, table, point, -point, 0.02, threads)
    exact = (part.astype(np.float64) for part in (table, point))
    assert_close(ours, scoring.score_points_plainly(*exact), dim)


def test_more_rows_than_fit_the_cache_at_once() -> None:
    rows = 2 * scoring.ROWS_AT_ONCE + 3
    angles, axis = uniform(0, -3, 3, 6, 9), uniform(1, -3, 3, rows, 9)
    half = uniform(2, 0, 3, rows, 9)
    ours = scoring.score(CONE, scoring.cone_table(angles), axis, half, 0.02, 2)
    assert_close(ours, scoring.score_cones_plainly(angles, axis, half, 0.02), 9)


def score(geometry: int, points: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Distances in any geometry, from angles or coordinates."""
    table = scoring.cone_table(points) if geometry == CONE else points
    return scoring.score(geometry, table, first, second, 0.02, 1)


@pytest.mark.parametrize("geometry", [CONE, BOX, POINT])
def test_a_row_scores_alike_alone_and_in_a_batch(geometry: int) -> None:
    points = uniform(0, -3, 3, 10, 140)
    first, second = uniform(1, -3, 3, 5, 140), uniform(2, 0, 3, 5, 140)
    together = score(geometry, points, first, second)
    for row in range(5):
        alone = score(geometry, points, first[row : row + 1], second[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-6)


@pytest.mark.parametrize("geometry", [CONE, BOX, POINT])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("dim", [5, 130, 800])
def test_equal_entities_are_equally_far_wherever_they_stand(
    geometry: int, rows: int, dim: int
) -> None:
    """Bit by bit: otherwise rounding errors would decide the order of equal answers."""
    generator = np.random.default_rng(dim)
    points = np.tile(uniform(dim, -3, 3, 1, dim), (TILE + 3, 1))
    for _ in range(20):
        first, second = generator.uniform(-3, 3, (2, rows, dim)).astype(np.float32)
        found = score(geometry, points, first, np.abs(second))
        np.testing.assert_array_equal(found, found[:, :1] + np.zeros_like(found))


def test_several_callers_may_score_at_once() -> None:
    table = scoring.cone_table(uniform(0, -3, 3, 200, 64))
    axis, half = uniform(1, -3, 3, 12, 64), uniform(2, 0, 3, 12, 64)

    def score(row: int) -> np.ndarray:
        region = axis[row : row + 1], half[row : row + 1]
        return scoring.score(CONE, table, *region, 0.02, 2)[0]

    expected = [score(row) for row in range(12)]
    with ThreadPoolExecutor(4) as callers:
        for _ in range(5):
            for ours, wanted in zip(callers.map(score, range(12)), expected, strict=True):
                np.testing.assert_array_equal(ours, wanted)


def test_regions_need_not_be_contiguous() -> None:
    table = uniform(0, -1, 1, 5, 8)
    wide = uniform(1, -1, 1, 3, 16)
    ours = scoring.score(POINT, table, wide[:, ::2], wide[:, ::2], 0.0, 1)
    assert_close(ours, scoring.score_points_plainly(table, wide[:, ::2]), 8)
