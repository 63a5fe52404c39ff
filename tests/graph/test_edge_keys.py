"""Edge keys: sorted like their edges, unique, and never beyond 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import DataError
from conekg.graph.edge_keys import check_size, edge_keys

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 6)))


def keys(edges: list[tuple[int, int, int]], num_entities: int) -> list[int]:
    found: list[int] = edge_keys(
        np.array(edges, dtype=np.int32).reshape(-1, 3), num_entities
    ).tolist()
    return found


@given(EDGES, st.integers(7, 9))
def test_keys_are_ordered_by_relation_head_and_tail(
    edges: list[tuple[int, int, int]], num_entities: int
) -> None:
    columns = [(relation, head, tail) for head, relation, tail in edges]
    found = keys(edges, num_entities)
    assert sorted(range(len(edges)), key=found.__getitem__) == sorted(
        range(len(edges)), key=columns.__getitem__
    )
    assert len(set(found)) == len(set(columns))


def test_keys_are_the_number_of_an_edge_among_all_there_could_be() -> None:
    assert keys([(0, 0, 0), (0, 0, 4), (1, 0, 0), (0, 1, 0), (2, 3, 4)], 5) == [0, 4, 5, 25, 89]
    assert keys([], 0) == []


def test_the_largest_edges_have_keys_of_their_own() -> None:
    most = 100_000_000
    last = (most - 1, 899, most - 1)
    assert keys([last], most) == [900 * most**2 - 1]


def test_keys_that_would_not_fit_are_refused_before_they_are_made() -> None:
    with pytest.raises(DataError, match="100,000,000 entities with 1,000 relations are too many"):
        keys([(0, 999, 0)], 100_000_000)


def test_graphs_too_large_for_their_numbers_are_refused() -> None:
    check_size(100_000_000, 900)
    with pytest.raises(DataError, match="100,000,000 entities with 1,000 relations are too many"):
        check_size(100_000_000, 1_000)


@pytest.mark.parametrize(
    ("num_entities", "num_relations", "one_more"),
    [(2**31 - 1, 1, (2**31, 1)), (2**31 - 1, 2, (2**31 - 1, 3)), (2**30, 7, (2**30, 8))],
)
def test_the_limits_of_size_are_exact_and_named(
    num_entities: int, num_relations: int, one_more: tuple[int, int]
) -> None:
    check_size(num_entities, num_relations)
    with pytest.raises(DataError, match="are too many") as caught:
        check_size(*one_more)
    assert "entities must stay below 2,147,483,648" in caught.value.message
    assert "square of entities below 9,223,372,036,854,775,808" in caught.value.message
