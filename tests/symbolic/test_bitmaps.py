from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from conekg.symbolic.bitmaps import (
    SLACK,
    add_marks,
    clear,
    count_ones,
    filter_marked,
    mark,
    read_marks,
    select_marks,
    trailing_zeros,
    unmark,
    write_bits,
)

words = st.integers(0, 2**64 - 1) | st.sets(st.integers(0, 63), max_size=6).map(
    lambda bits: sum(1 << bit for bit in bits)
)


@njit
def ones_and_zeros(bits: np.uint64) -> tuple[int, int]:
    return count_ones(bits), trailing_zeros(bits)


@given(words)
def test_bits_are_counted(bits: int) -> None:
    lowest = (bits & -bits).bit_length() - 1 if bits else 64
    assert ones_and_zeros(np.uint64(bits)) == (bits.bit_count(), lowest)


@given(words, st.integers(0, 9))
def test_bits_are_written_in_order_after_the_existing_entries(bits: int, count: int) -> None:
    out = np.full(count + 64 + SLACK, -1, dtype=np.int32)
    after = write_bits(np.uint64(bits), np.uint64(640), out, np.uint64(count))
    expected = [640 + bit for bit in range(64) if bits >> bit & 1]
    assert out[count:after].tolist() == expected
    assert out[:count].tolist() == [-1] * count


# Drawn from a seed, because hypothesis prefers nearly empty sets.
some_entities = st.builds(
    lambda seed, size: set(np.random.default_rng(seed).choice(200, size, replace=False).tolist()),
    st.integers(0, 2**20),
    st.sampled_from([0, 1, 3, 60, 199, 200]),
)


def as_array(entities: set[int]) -> np.ndarray:
    return np.array(sorted(entities), dtype=np.int32)


def as_marks(entities: set[int]) -> np.ndarray:
    marks = np.zeros(4, dtype=np.uint64)
    mark(marks, as_array(entities))
    return marks


def marked(words: np.ndarray) -> set[int]:
    return {place for place in range(64 * len(words)) if int(words[place // 64]) >> place % 64 & 1}


@given(some_entities, some_entities)
def test_bitmaps_hold_sets(left: set[int], right: set[int]) -> None:
    marks = as_marks(left)
    assert marked(marks) == left
    add_marks(marks, as_marks(right))
    assert marked(marks) == left | right
    unmark(marks, as_array(right))
    assert marked(marks) == left - right
    clear(marks)
    assert not marks.any()


@given(some_entities)
def test_reading_lists_the_marks_in_order_and_clears_them(entities: set[int]) -> None:
    marks, out = as_marks(entities), np.empty(200 + SLACK, dtype=np.int32)
    count = read_marks(marks, out)
    assert out[:count].tolist() == sorted(entities)
    assert not marks.any()


@pytest.mark.parametrize("keep", [True, False])
@given(left=some_entities, right=some_entities)
def test_a_list_or_a_bitmap_is_filtered_by_a_bitmap(
    keep: bool, left: set[int], right: set[int]
) -> None:
    expected = left & right if keep else left - right
    marks, out = as_marks(right), np.empty(len(left) + 1, dtype=np.int32)
    count = filter_marked(marks, as_array(left), keep, out)
    assert out[:count].tolist() == sorted(expected)
    assert marked(marks) == right
    words = as_marks(left)
    select_marks(words, marks, keep)
    assert marked(words) == expected
