from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.ragged import Ragged, offsets_of

rows = st.lists(st.lists(st.integers(0, 99), max_size=5).map(sorted), max_size=8)


@given(rows)
def test_rows_come_back_as_given(given_rows: list[list[int]]) -> None:
    ragged = Ragged.from_rows(given_rows)
    assert [ragged[index].tolist() for index in range(len(ragged))] == given_rows
    assert ragged.lengths.tolist() == [len(row) for row in given_rows]
    assert ragged.mean_length == sum(map(len, given_rows)) / max(len(given_rows), 1)


def test_rows_begin_where_those_before_them_end() -> None:
    assert offsets_of([3, 0, 2]).tolist() == [0, 3, 3, 5]
    assert offsets_of([]).tolist() == [0]


@given(rows, st.data())
def test_taken_rows_keep_the_order_asked_for(
    given_rows: list[list[int]], data: st.DataObject
) -> None:
    places = st.integers(0, max(0, len(given_rows) - 1))
    wanted = data.draw(st.lists(places, max_size=6)) if given_rows else []
    taken = Ragged.from_rows(given_rows).take(np.array(wanted, dtype=np.int64))
    assert [taken[index].tolist() for index in range(len(taken))] == [given_rows[i] for i in wanted]


@given(rows, st.integers(0, 8), st.integers(0, 8))
def test_a_span_is_the_rows_between(given_rows: list[list[int]], start: int, size: int) -> None:
    start = min(start, len(given_rows))
    stop = min(start + size, len(given_rows))
    span = Ragged.from_rows(given_rows).span(start, stop)
    assert span.offsets[0] == 0
    assert [span[index].tolist() for index in range(len(span))] == given_rows[start:stop]


def test_rows_without_a_value() -> None:
    for count in (0, 3):
        nothing = Ragged.empty(count)
        assert len(nothing) == count
        assert nothing.lengths.tolist() == [0] * count
        assert (nothing.offsets.dtype, nothing.values.dtype) == (np.int64, np.int32)


@given(st.lists(rows, max_size=4))
def test_concatenated_rows_are_those_of_all_parts(parts: list[list[list[int]]]) -> None:
    whole = Ragged.concatenate([Ragged.from_rows(part) for part in parts])
    expected = [row for part in parts for row in part]
    assert [whole[index].tolist() for index in range(len(whole))] == expected
    assert (whole.offsets.dtype, whole.values.dtype) == (np.int64, np.int32)
