"""The early-abandoning scan finds what the full scan and plain arithmetic find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.answering.abandon import FloatArray, Nearest, ScanTable, spread
from conekg.model.geometry import Geometry

GEOMETRIES = (Geometry.CONE, Geometry.BOX, Geometry.POINT)
NO_IDS = np.empty(0, dtype=np.int32)


def plain_distance(
    geometry: Geometry, points: FloatArray, first: FloatArray, second: FloatArray
) -> np.ndarray:
    """[num_entities] distances from one region by the published formulas, in float64."""
    points, first, second = (array.astype(np.float64) for array in (points, first, second))
    if geometry is Geometry.CONE:
        delta = points - first
        apart = np.minimum(
            np.abs(np.sin((delta + second) / 2)), np.abs(np.sin((delta - second) / 2))
        )
        inside = np.abs(np.sin(delta / 2)) < np.abs(np.sin(second / 2))
        within = np.minimum(np.abs(np.sin(delta / 2)), np.abs(np.sin(second / 2)))
        return (np.where(inside, 0, apart) + 0.02 * within).sum(axis=1)
    delta = np.abs(points - first)
    if geometry is Geometry.BOX:
        outside = np.maximum(0, delta - second)
        return (outside + 0.02 * np.abs(np.minimum(delta, second))).sum(axis=1)
    return delta.sum(axis=1)


def make(
    geometry: Geometry, num_entities: int, dim: int, rows: int, seed: int, clusters: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points and regions; with clusters, regions lie near some of the points."""
    generator = np.random.default_rng(seed)
    points = generator.uniform(-np.pi, np.pi, (num_entities, dim))
    first = generator.uniform(-np.pi, np.pi, (rows, dim))
    if clusters:
        centers = generator.uniform(-np.pi, np.pi, (clusters, dim))
        points = centers[generator.integers(clusters, size=num_entities)]
        points = np.clip(points + generator.normal(0, 0.3, points.shape), -np.pi, np.pi)
        first = centers[generator.integers(clusters, size=rows)]
    second = generator.uniform(0, np.pi if geometry is Geometry.CONE else 0.5, (rows, dim))
    return points.astype(np.float32), first.astype(np.float32), second.astype(np.float32)


def same(left: Nearest, right: Nearest) -> bool:
    return np.array_equal(left.entity_ids, right.entity_ids) and np.array_equal(
        left.distances, right.distances
    )


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda kind: kind.name)
@given(data=st.data())
def test_abandoning_finds_what_the_full_scan_finds(geometry: Geometry, data: st.DataObject) -> None:
    num_entities = data.draw(st.integers(1, 60), label="entities")
    dim = data.draw(st.sampled_from([1, 5, 130, 260, 400]), label="dim")
    rows = data.draw(st.integers(1, 3), label="rows")
    seed = data.draw(st.integers(0, 2**16), label="seed")
    clusters = data.draw(st.sampled_from([0, 1, 4]), label="clusters")
    points, first, second = make(geometry, num_entities, dim, rows, seed, clusters)
    # Copies of entities make ties, which must be broken by id.
    copies = data.draw(st.lists(st.integers(0, num_entities - 1), max_size=30), label="copies")
    points = np.concatenate([points, points[copies]])
    ids = st.lists(st.integers(0, len(points) - 1), unique=True, max_size=len(points))
    skip = [np.array(sorted(data.draw(ids)), dtype=np.int32) for _ in range(rows)]
    # More than there are, even far more, gives all of them.
    wishes = st.integers(0, len(points) + 3) | st.just(2**40)
    counts = [data.draw(wishes, label="wanted") for _ in range(rows)]
    table = ScanTable(points, geometry, 0.02)
    found = table.nearest(first, second, counts, skip)
    full = table.nearest(first, second, counts, skip, abandon=False)
    everybody = table.nearest(first, second, [len(points)] * rows, skip)
    for row in range(rows):
        assert same(found[row], full[row])
        # Asking for fewer gives the first of those; ties at the end go to the lowest ids.
        assert found[row].entity_ids.tolist() == everybody[row].entity_ids[: counts[row]].tolist()
        check_row(geometry, points, first[row], second[row], counts[row], skip[row], found[row])


def check_row(
    geometry: Geometry,
    points: FloatArray,
    first: FloatArray,
    second: FloatArray,
    count: int,
    skip: np.ndarray,
    found: Nearest,
) -> None:
    true = plain_distance(geometry, points, first, second)
    allowed = np.setdiff1d(np.arange(len(points)), skip)
    assert len(found.entity_ids) == min(count, len(allowed))
    assert set(found.entity_ids.tolist()) <= set(allowed.tolist())
    best = np.sort(true[allowed])[: len(found.entity_ids)]
    np.testing.assert_allclose(found.distances, best, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(found.distances, true[found.entity_ids], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda kind: kind.name)
def test_equal_entities_rank_by_id(geometry: Geometry) -> None:
    # 43 is no multiple of 8: copies of an entity are at different places in their tiles.
    points, first, second = make(geometry, 43, 300, 2, seed=3, clusters=3)
    table = ScanTable(np.tile(points, (3, 1)), geometry, 0.02)
    for rows in (1, 2):
        for found in table.nearest(first[:rows], second[:rows], [129] * rows, [NO_IDS] * rows):
            kinds = found.entity_ids.reshape(43, 3)
            np.testing.assert_array_equal(kinds % 43, kinds[:, :1] % 43 + np.zeros((1, 3), int))
            assert (np.diff(kinds, axis=1) > 0).all()


@given(data=st.data())
def test_bounds_find_what_the_full_scan_finds(data: st.DataObject) -> None:
    """Bit by bit what a search for each cone alone finds."""
    num_entities = data.draw(st.sampled_from([32, 100, 513, 1500]), label="entities")
    dim = data.draw(st.sampled_from([1, 5, 130, 400]), label="dim")
    rows = data.draw(st.integers(1, 4), label="rows")
    clusters = data.draw(st.sampled_from([0, 1, 7]), label="clusters")
    seed = data.draw(st.integers(0, 2**16), label="seed")
    points, first, second = make(Geometry.CONE, num_entities, dim, rows, seed, clusters)
    copied = data.draw(st.booleans(), label="every entity three times")
    if copied:
        points = np.tile(points, (3, 1))
    if data.draw(st.booleans(), label="whole or empty cones"):
        second = np.random.default_rng(seed).choice([0, np.pi, 4.0], second.shape)
        second = second.astype(np.float32)
    generator = np.random.default_rng(seed)
    share = data.draw(st.sampled_from([0.0, 0.01, 0.5, 0.9, 1.0]), label="skipped")
    skip = [np.flatnonzero(generator.random(len(points)) < share).astype(np.int32)] * rows
    counts = [data.draw(st.integers(1, len(points) // 20 + 2)) for _ in range(rows)]
    bounded = ScanTable(points, Geometry.CONE, 0.02, bounded=True)
    found = bounded.nearest(first, second, counts, skip, threads=data.draw(st.integers(1, 2)))
    for row in range(rows):
        one = slice(row, row + 1)
        if counts[row] <= len(points) // 32 and share <= 0.5:
            (full,) = bounded.nearest(
                first[one], second[one], counts[one], skip[one], abandon=False
            )
            assert same(found[row], full)
        check_row(
            Geometry.CONE, points, first[row], second[row], counts[row], skip[row], found[row]
        )


def test_bounds_rule_out_most_entities() -> None:
    points, first, second = make(Geometry.CONE, 6000, 400, 3, seed=1)
    table = ScanTable(points, Geometry.CONE, 0.02, bounded=True)
    found = table.nearest(first, second, [10] * 3, [NO_IDS] * 3)
    # Ten entities of the smallest bounds are computed, then at least the ten nearest again.
    assert len(found) == 3
    assert all(20 / 6000 <= nearest.looked_at < 0.2 for nearest in found)
    many = table.nearest(first, second, [3000] * 3, [NO_IDS] * 3)
    assert len(many) == 3
    assert all(nearest.looked_at > 0.5 for nearest in many)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda kind: kind.name)
def test_abandoning_skips_distance_terms(geometry: Geometry) -> None:
    points, first, second = make(geometry, 2000, 640, 2, seed=5, clusters=40)
    second *= 0.2
    table = ScanTable(points, geometry, 0.02, bounded=False)
    found = table.nearest(first, second, [10, 10], [NO_IDS, NO_IDS])
    full = table.nearest(first, second, [10, 10], [NO_IDS, NO_IDS], abandon=False)
    assert len(found) == 2
    assert all(same(a, b) for a, b in zip(found, full, strict=True))
    assert all(0.3 < nearest.looked_at < 0.7 for nearest in found)
    assert all(nearest.looked_at == 1.0 for nearest in full)


def test_threads_change_nothing() -> None:
    points, first, second = make(Geometry.CONE, 1000, 256, 4, seed=2, clusters=10)
    table = ScanTable(points, Geometry.CONE, 0.02)
    one, two = (
        table.nearest(first, second, [7] * 4, [NO_IDS] * 4, threads=threads) for threads in (1, 2)
    )
    assert len(one) == 4
    assert all(same(a, b) for a, b in zip(one, two, strict=True))


def test_spread_orders_dimensions() -> None:
    generator = np.random.default_rng(0)
    points = np.stack([generator.uniform(-w, w, 500) for w in (0.1, 3.0, 1.0)], axis=1)
    for geometry in GEOMETRIES:
        assert np.argsort(spread(points.astype(np.float32), geometry)).tolist() == [0, 2, 1]


def test_spread_of_cones_is_the_mean_cosine_distance_of_two_entities() -> None:
    angles = np.random.default_rng(1).uniform(0, (1.0, 3.0), (40, 2))
    apart = 1 - np.cos(angles[:, None] - angles[None])
    found = spread(angles.astype(np.float32), Geometry.CONE)
    np.testing.assert_allclose(found, apart.mean(axis=(0, 1)), rtol=1e-4)
