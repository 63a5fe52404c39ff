"""Sums of look-ups, by every kernel that this processor can run, against plain indexing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.model.kernels.lookup import (
    CELLS,
    GROUP,
    has_wide_lookup,
    place_of,
    sum_lookups,
    sum_lookups_plainly,
)
from conekg.model.kernels.processor import empty_on_cache_lines

needs_vbmi = pytest.mark.skipif(not has_wide_lookup(), reason="the processor has no AVX-512 VBMI")
KERNELS = [
    pytest.param(sum_lookups, marks=needs_vbmi, id="wide"),
    pytest.param(sum_lookups_plainly, id="plain"),
]


def make(groups: int, dim: int, rows: int, seed: int, least: int = 0):  # type: ignore[no-untyped-def]
    """The cells of entities [entities, dim], the same placed for the kernels, and tables."""
    generator = np.random.default_rng(seed)
    cells = generator.integers(CELLS, size=(groups * GROUP, dim), dtype=np.uint8)
    codes = empty_on_cache_lines((groups, dim, GROUP), np.uint8)
    for entity, own in enumerate(cells):
        group, place = place_of(entity)
        codes[group, :, place] = own
    tables = empty_on_cache_lines((rows, dim, CELLS), np.uint8)
    tables[:] = generator.integers(least, 256, size=tables.shape)
    return cells, codes, tables


@pytest.mark.parametrize("kernel", KERNELS)
@given(
    groups=st.integers(1, 3),
    dim=st.sampled_from([1, 7, 255, 256, 257, 600]),
    rows=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_sums_are_those_of_plain_indexing(kernel, groups, dim, rows, seed):  # type: ignore[no-untyped-def]
    # Bytes of 250 and more: 600 of them are far beyond 2^16, where sums of 16 bits wrap.
    cells, codes, tables = make(groups, dim, rows, seed, least=250 * (seed % 2))
    sums = empty_on_cache_lines((rows, groups * GROUP), np.uint32)
    sums[:] = 5
    kernel(codes, tables, sums, 0, groups)
    for row in range(rows):
        wanted = tables[row][np.arange(dim), cells].sum(axis=1, dtype=np.int64)
        np.testing.assert_array_equal(sums[row], 5 + wanted)


@pytest.mark.parametrize("kernel", KERNELS)
def test_only_the_range_is_touched(kernel) -> None:  # type: ignore[no-untyped-def]
    _, codes, tables = make(3, 9, 1, seed=0, least=1)
    sums = empty_on_cache_lines((1, 3 * GROUP), np.uint32)
    sums[:] = 0
    kernel(codes, tables, sums, 1, 2)
    assert (sums.reshape(3, GROUP) > 0).all(axis=1).tolist() == [False, True, False]
    assert not sums.reshape(3, GROUP)[[0, 2]].any()


def test_every_entity_has_a_place_of_its_own() -> None:
    places = [place_of(entity) for entity in range(2 * GROUP)]
    assert sorted(places) == [(group, place) for group in range(2) for place in range(GROUP)]
