from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conekg.errors import QueryError
from conekg.query.shape import Shape, shape_of, slots_of
from conekg.query.tree import Query
from conekg.query.tuples import query_from_tuple, query_to_tuple, structure_of
from conekg.sampling.tuple_form import TupleForm
from strategies import queries


def written(query: Query) -> tuple[Shape, object]:
    try:
        return shape_of(query), query_to_tuple(query)
    except QueryError:  # not every tree has a tuple
        assume(False)
        raise


@given(queries(universe=False))
def test_rows_and_tuples_agree_with_the_reader_of_single_tuples(query: Query) -> None:
    shape, nested = written(query)
    form = TupleForm(structure_of(shape))
    anchors, relations = form.read([nested, nested])
    assert (anchors[0].tolist(), relations[0].tolist()) == slots_of(query)
    assert anchors.shape == (2, shape.num_anchors)
    assert form.write(anchors, relations) == [nested, nested]
    assert query_from_tuple(form.write(anchors, relations)[0]) == query_from_tuple(nested)


@given(st.integers(0, 3))
def test_no_tuples_give_empty_matrices_of_the_right_width(count: int) -> None:
    structure = ("e", ("r",) * (count + 1))
    anchors, relations = TupleForm(structure).read([])
    assert anchors.shape == (0, 1)
    assert relations.shape == (0, count + 1)
    assert anchors.dtype == np.int32


@pytest.mark.parametrize(
    ("nested", "told"),
    [
        # The mark of a union in place of a negation.
        (((1, (2,)), (3, (4, -1))), "-1 in the query tuple .* where its structure .* has 'n'"),
        (((1, (2,)), (3, (4,))), r"part \(4,\) does not have the form \('r', 'n'\)"),
        (((1, (2,)), (3, 4)), r"part 4 does not have the form \('r', 'n'\)"),
        (((-1, (2,)), (3, (4, -2))), "-1 in the query tuple .* where its structure .* has 'e'"),
        ((("1", (2,)), (3, (4, -2))), "'1' in the query tuple"),
        (((True, (2,)), (3, (4, -2))), "True in the query tuple"),
        (((1.0, (2,)), (3, (4, -2))), "1.0 in the query tuple"),
        (((2**40, (2,)), (3, (4, -2))), "an id that is too large: .*1099511627776"),
        ("text", "part 'text' does not have the form"),
    ],
)
def test_tuples_of_another_form_are_refused(nested: object, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        TupleForm((("e", ("r",)), ("e", ("r", "n")))).read([nested])
