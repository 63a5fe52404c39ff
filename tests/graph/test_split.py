from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError
from conekg.graph.split import HoldOut, split_triples

triples = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9)), unique=True, max_size=80
).map(lambda rows: np.array(rows, dtype=np.int32).reshape(-1, 3))
hold_outs = st.builds(
    HoldOut, valid=st.floats(0, 0.49), test=st.floats(0, 0.5), seed=st.integers(0, 5)
)


@given(triples, hold_outs)
def test_parts_make_the_whole_in_its_order(rows: np.ndarray, hold_out: HoldOut) -> None:
    parts = split_triples(rows, 10, 4, hold_out)
    told = [tuple(row) for part in parts.values() for row in part.tolist()]
    assert sorted(told) == sorted(map(tuple, rows.tolist()))
    places = {tuple(row): place for place, row in enumerate(rows.tolist())}
    for part in parts.values():
        order = [places[tuple(row)] for row in part.tolist()]
        assert order == sorted(order)


@given(triples, hold_outs)
def test_everything_held_out_occurs_in_training(rows: np.ndarray, hold_out: HoldOut) -> None:
    parts = split_triples(rows, 10, 4, hold_out)
    train = parts["train"]
    for part in (parts["valid"], parts["test"]):
        assert set(part[:, 1]) <= set(train[:, 1])
        assert set(part[:, [0, 2]].ravel()) <= set(train[:, [0, 2]].ravel())


def test_the_shares_are_met_where_there_is_room() -> None:
    generator = np.random.default_rng(0)
    rows = np.unique(generator.integers(0, (20, 3, 20), size=(1000, 3)), axis=0).astype(np.int32)
    parts = split_triples(rows, 20, 3, HoldOut(0.1, 0.2, seed=3))
    assert len(parts["valid"]) == round(0.1 * len(rows))
    assert len(parts["test"]) == round(0.2 * len(rows))


def test_both_parts_shrink_alike_where_there_is_no_room() -> None:
    rows = np.array([(0, 0, i) for i in range(1, 9)] + [(1, 0, 2), (3, 0, 4)], dtype=np.int32)
    parts = split_triples(rows, 9, 1, HoldOut(0.4, 0.4))
    assert 0 < len(parts["valid"]) + len(parts["test"]) < 8
    assert abs(len(parts["valid"]) - len(parts["test"])) <= 1


def test_the_seed_decides() -> None:
    generator = np.random.default_rng(0)
    rows = generator.integers(0, (20, 3, 20), size=(300, 3)).astype(np.int32)
    first, again, other = (
        split_triples(rows, 20, 3, HoldOut(seed=seed))["test"] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((-0.1, 0.1, 0), "the valid share is -0.1"),
        ((0.1, 1.0, 0), "the test share is 1.0"),
        ((0.5, 0.5, 0), "leave nothing to train on"),
        ((0.1, 0.1, -1), "the seed is -1"),
        (("0.1", 0.1, 0), "the valid share is '0.1'; it must be a number"),
        ((0.1, True, 0), "the test share is True; it must be a number"),
        ((0.1, 0.1, 1.5), "the seed is 1.5; it must be a whole number"),
        ((0.1, 0.1, None), "the seed is None; it must be a whole number"),
    ],
)
def test_impossible_shares_and_seeds_are_refused(
    values: tuple[Any, Any, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        HoldOut(*values)


def test_numpy_numbers_are_shares_and_seeds() -> None:
    hold_out = HoldOut(np.float32(0.25), np.float64(0), np.int64(3))  # type: ignore[arg-type]
    assert hold_out.wanted(8) == (2, 0)
