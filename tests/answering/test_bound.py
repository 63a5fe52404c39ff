"""Lower bounds are below every distance, and close enough to be of use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.answering.bound import CellTable, cell_edges, largest_sum
from conekg.model.kernels.lookup import CELLS, has_wide_lookup
from conekg.model.kernels.processor import FloatArray
from conekg.model.kernels.scoring import cone_table, pack_cones, score
from conekg.model.kernels.tile import CONE


def true_distances(
    angles: FloatArray, axis: FloatArray, half_aperture: FloatArray, weight: float
) -> np.ndarray:
    """[rows, num_entities] the published formula in float64."""
    delta = angles.astype(np.float64) - axis.astype(np.float64)[:, None]
    half = half_aperture.astype(np.float64)[:, None]
    apart = np.minimum(np.abs(np.sin((delta + half) / 2)), np.abs(np.sin((delta - half) / 2)))
    inside = np.abs(np.sin(delta / 2)) < np.abs(np.sin(half / 2))
    within = np.minimum(np.abs(np.sin(delta / 2)), np.abs(np.sin(half / 2)))
    return (np.where(inside, 0, apart) + weight * within).sum(axis=-1)


SPECIAL = np.array([0, 1e-7, np.pi / 2, np.pi, 1.25 * np.pi, 2 * np.pi], dtype=np.float32)
"""Half apertures of an empty, a half and a full circle, and beyond, as dropout makes them."""


def draw_cones(
    data: st.DataObject, generator: np.random.Generator, angles: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Cones anywhere, around entities, or with axes more than a half-turn away from zero."""
    rows, dim = 3, angles.shape[1]
    kind = data.draw(st.sampled_from(["anywhere", "around an entity", "beyond a half-turn"]))
    axis = generator.uniform(-np.pi, np.pi, (rows, dim))
    if kind == "around an entity":
        axis = angles[generator.integers(len(angles), size=rows)]
    elif kind == "beyond a half-turn":
        axis = generator.uniform(-3 * np.pi, 3 * np.pi, (rows, dim))
    half = generator.uniform(0, np.pi, (rows, dim))
    if data.draw(st.booleans(), label="special apertures"):
        half = generator.choice(SPECIAL, (rows, dim))
    return axis.astype(np.float32), half.astype(np.float32)


def draw_angles(data: st.DataObject, generator: np.random.Generator) -> FloatArray:
    num_entities = data.draw(st.sampled_from([1, 2, 63, 513, 700, 2500]), label="entities")
    dim = data.draw(st.sampled_from([1, 3, 40, 270]), label="dim")
    angles = generator.uniform(-np.pi, np.pi, (num_entities, dim))
    match data.draw(st.sampled_from(["spread", "at the seam", "few values"]), label="angles"):
        case "at the seam":
            angles = np.sign(angles) * np.pi * (1 - 1e-3 * np.abs(angles))
        case "few values":
            angles = np.round(angles)
    return angles.astype(np.float32)


@given(data=st.data(), weight=st.sampled_from([0.0, 0.02, 0.9]), seed=st.integers(0, 2**16))
def test_no_distance_is_below_its_bound(data: st.DataObject, weight: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    angles = draw_angles(data, generator)
    axis, half = draw_cones(data, generator, angles)
    region, packed_weight = pack_cones(axis, half, weight)
    bounds = CellTable(angles).lower_bounds(region, packed_weight)
    true = true_distances(angles, axis, half, weight)
    found = score(CONE, cone_table(angles), axis, half, weight, threads=1)
    for row in range(len(axis)):
        sums = bounds.sums[row, : len(angles)]
        for distances in (true[row], found[row].astype(float)):
            most = [largest_sum(d, bounds.steps[row], angles.shape[1]) for d in distances]
            assert (sums <= most).all()


def test_the_bound_is_zero_on_the_axis_also_after_whole_turns() -> None:
    """In one dimension, so that no other dimension hides a bound that is too high."""
    angles = np.linspace(-3, 3, 700, dtype=np.float32)[:, None]
    cells = CellTable(angles)
    for turns in (-2, -1, 0, 1, 2):
        axis = angles[100:600:7] + np.float32(2 * np.pi * turns)
        region, weight = pack_cones(axis, np.zeros_like(axis), 0.02)
        sums = cells.lower_bounds(region, weight).sums
        assert np.diagonal(sums[:, 100:600:7]).tolist() == [0] * len(axis)
        assert sums[:, :700].max(axis=1).min() > 150, "what is far has one"


def test_bounds_are_close() -> None:
    generator = np.random.default_rng(0)
    angles = generator.uniform(-np.pi, np.pi, (3000, 400)).astype(np.float32)
    axis = generator.uniform(-np.pi, np.pi, (4, 400)).astype(np.float32)
    half = generator.uniform(0.2, 2.5, (4, 400)).astype(np.float32)
    region, weight = pack_cones(axis, half, 0.02)
    bounds = CellTable(angles).lower_bounds(region, weight)
    below = bounds.sums[:, :3000] * bounds.steps[:, None].astype(float)
    true = true_distances(angles, axis, half, 0.02)
    # A cell is a tenth of a radian wide; where the distance grows, half of that is lost.
    assert 0.005 < ((true - below) / 400).mean() < 0.02


@pytest.mark.skipif(not has_wide_lookup(), reason="the processor has no AVX-512 VBMI")
def test_the_plain_loop_finds_the_same_bounds() -> None:
    generator = np.random.default_rng(1)
    angles = generator.uniform(-np.pi, np.pi, (1300, 300)).astype(np.float32)
    region, weight = pack_cones(angles[:5], np.abs(angles[5:10]), 0.02)
    wide, plain = (
        CellTable(angles, wide=wide).lower_bounds(region, weight, threads=threads)
        for wide, threads in ((True, 2), (False, 1))
    )
    np.testing.assert_array_equal(wide.sums, plain.sums)
    np.testing.assert_array_equal(wide.steps, plain.steps)


def test_cells_hold_about_equally_many_entities_and_cover_all() -> None:
    angles = np.random.default_rng(2).normal(0, 0.8, (9000, 3)).clip(-np.pi, np.pi)
    edges = cell_edges(angles.astype(np.float32))
    assert edges.shape == (3, CELLS + 1)
    assert (np.diff(edges, axis=1) >= 0).all()
    for j in range(3):
        assert edges[j, 0] == angles[:, j].astype(np.float32).min()
        assert edges[j, -1] == angles[:, j].astype(np.float32).max()
        held, _ = np.histogram(angles[:, j], edges[j].astype(float))
        assert held.min() > 60  # 141 on average
        assert held.max() < 250
