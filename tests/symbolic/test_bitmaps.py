from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from conekg.symbolic.bitmaps import SLACK, count_ones, filter_marked, trailing_zeros, write_bits

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
def test_bits_are_written_in_order_after_what_is_there(bits: int, count: int) -> None:
    out = np.full(count + 64 + SLACK, -1, dtype=np.int32)
    after = write_bits(np.uint64(bits), np.uint64(640), out, np.uint64(count))
    expected = [640 + bit for bit in range(64) if bits >> bit & 1]
    assert out[count:after].tolist() == expected
    assert out[:count].tolist() == [-1] * count


@pytest.mark.parametrize("keep", [True, False])
@given(
    left=st.sets(st.integers(0, 199)),
    right=st.sets(st.integers(0, 199), max_size=3) | st.sets(st.integers(0, 199)),
)
def test_marks_filter_and_are_cleared(keep: bool, left: set[int], right: set[int]) -> None:
    marks = np.zeros(4, dtype=np.uint64)
    arrays = [np.array(sorted(side), dtype=np.int32) for side in (left, right)]
    out = np.empty(len(left) + 1, dtype=np.int32)
    count = filter_marked(marks, *arrays, keep, out)
    assert out[:count].tolist() == sorted(left & right if keep else left - right)
    assert not marks.any()
