from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conekg.symbolic.sorted_arrays import (
    gallop,
    grown,
    intersect,
    list_others,
    lower_bound,
    subtract,
    unite,
)

SIZES = (0, 1, 2, 12, 13, 25, 200, 400, 401)
"""For some pairs of these sizes the larger set is searched, others are merged; 401 is all."""


def some_set(seed: int, size: int) -> set[int]:
    """A random set drawn from a seed: hypothesis itself is slow at drawing hundreds of numbers."""
    return set(np.random.default_rng(seed).choice(401, size, replace=False).tolist())


seeds = st.integers(0, 2**20)
any_set = st.builds(some_set, seeds, st.sampled_from(SIZES))


def as_array(values: set[int]) -> np.ndarray:
    return np.array(sorted(values), dtype=np.int32)


@pytest.mark.parametrize(
    ("kernel", "meaning"),
    [
        (intersect, set.intersection),
        (subtract, set.difference),
        (unite, set.union),
    ],
)
@settings(max_examples=10)  # of 81 pairs of sizes each
@given(seed=seeds)
def test_sorted_arrays_combine_as_sets_do(kernel, meaning, seed) -> None:
    for left, right in product(
        [some_set(seed, size) for size in SIZES], [some_set(seed + 1, size) for size in SIZES]
    ):
        out = np.full(len(left) + len(right) + 1, -7, dtype=np.int32)
        count = kernel(as_array(left), as_array(right), out)
        assert out[:count].tolist() == sorted(meaning(left, right))


@given(any_set)
def test_list_others_gives_the_complement(values) -> None:
    out = np.empty(401, dtype=np.int32)
    count = list_others(as_array(values), 401, out)
    assert out[:count].tolist() == sorted(set(range(401)) - values)


@given(any_set, st.integers(-1, 401), st.integers(0, 300))
def test_searches_find_the_first_place_not_below(values, wanted, start) -> None:
    array = as_array(values)
    start = min(start, len(array))
    expected = start + int(np.searchsorted(array[start:], wanted))
    assert lower_bound(array, start, len(array), wanted) == expected
    assert gallop(array, start, wanted) == expected


def test_a_buffer_grows_only_when_it_must_and_keeps_its_entries() -> None:
    values = np.arange(4, dtype=np.int32)
    assert grown(values, 2, 2) is values
    longer = grown(values, 3, 9)
    assert len(longer) >= 12
    assert longer[:3].tolist() == [0, 1, 2]
