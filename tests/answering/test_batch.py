"""A batch of mixed queries embeds each as if it were alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import small_models
import strategies
from conekg.answering.batch import embed_queries, group_by_shape
from conekg.query.branches import UnionForm
from conekg.query.shape import grounded
from conekg.query.tree import Anchor, Or, Query


@pytest.mark.parametrize("union", ["dnf", "demorgan"])
@given(queries=st.lists(strategies.queries(max_leaves=3), min_size=1, max_size=5))
def test_batching_changes_nothing(union: UnionForm, queries: list[Query]) -> None:
    model = small_models.small_model("cone")
    together = embed_queries(model, queries, union)
    assert sorted(row for rows in together.rows for row in rows) == list(
        range(len(together.region[0]))
    )
    for query, rows in zip(queries, together.rows, strict=True):
        alone = embed_queries(model, [query], union)
        assert len(alone.region[0]) == len(rows)
        for part, lone in zip(together.region, alone.region, strict=True):
            torch.testing.assert_close(part[list(rows)], lone, rtol=1e-9, atol=1e-9)


def test_groups_keep_the_order_of_first_appearance() -> None:
    one, two = grounded(Anchor(1).project(0)), grounded(Or((Anchor(1), Anchor(2))))
    groups = group_by_shape([two, one, two, one])
    assert list(groups.values()) == [[0, 2], [1, 3]]


def test_some_of_the_queries_keep_their_regions() -> None:
    model = small_models.small_model("cone")
    one, two = Anchor(1).project(0), Or((Anchor(1), Anchor(2)))
    together = embed_queries(model, [two, one, two, one])
    some = together.some(1, 3)
    assert [len(rows) for rows in some.rows] == [1, 2]
    for part, whole in zip(some.region, together.region, strict=True):
        for own, rows in zip(some.rows, together.rows[1:3], strict=True):
            assert torch.equal(part[list(own)], whole[list(rows)])
    assert together.some(4, 6).rows == ()
