import ast
import json
import os
from pathlib import Path

import pytest
from hypothesis import given

import strategies
from conekg.errors import QueryError, QueryTooLargeError
from conekg.query.shape import STRUCTURES, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, depth
from conekg.query.tuples import (
    MAX_NESTING,
    query_from_tuple,
    query_to_tuple,
    shape_from_structure,
    structure_of,
)

# As BetaE's code spells them.
PUBLISHED = {
    "1p": ("e", ("r",)),
    "2p": ("e", ("r", "r")),
    "3p": ("e", ("r", "r", "r")),
    "2i": (("e", ("r",)), ("e", ("r",))),
    "3i": (("e", ("r",)), ("e", ("r",)), ("e", ("r",))),
    "ip": ((("e", ("r",)), ("e", ("r",))), ("r",)),
    "pi": (("e", ("r", "r")), ("e", ("r",))),
    "2in": (("e", ("r",)), ("e", ("r", "n"))),
    "3in": (("e", ("r",)), ("e", ("r",)), ("e", ("r", "n"))),
    "inp": ((("e", ("r",)), ("e", ("r", "n"))), ("r",)),
    "pin": (("e", ("r", "r")), ("e", ("r", "n"))),
    "pni": (("e", ("r", "r", "n")), ("e", ("r",))),
    "2u": (("e", ("r",)), ("e", ("r",)), ("u",)),
    "up": ((("e", ("r",)), ("e", ("r",)), ("u",)), ("r",)),
    "2u-DM": ((("e", ("r", "n")), ("e", ("r", "n"))), ("n",)),
    "up-DM": ((("e", ("r", "n")), ("e", ("r", "n"))), ("n", "r")),
}
GOLDEN = Path(os.environ.get("CONEKG_GOLDEN") or Path(__file__).parents[1] / "golden")


@pytest.mark.parametrize(("name", "structure"), PUBLISHED.items())
def test_published_structures_both_ways(name, structure):
    assert shape_from_structure(structure).name == name
    assert structure_of(STRUCTURES[name]) == structure


def test_golden_queries_have_the_shape_of_their_structure():
    structures = json.loads((GOLDEN / "cone.json").read_text())["structures"]
    assert structures
    for name, entry in structures.items():
        shape = shape_from_structure(ast.literal_eval(entry["structure"]))
        assert shape.name == name.removesuffix("-DNF")
        for text in entry["queries"]:
            nested = ast.literal_eval(text)
            query = query_from_tuple(nested)
            assert shape_of(query) == shape
            assert query_to_tuple(query) == nested


def test_numbers_become_ids():
    assert query_from_tuple((((5, (1,)), (6, (3, -2)), (-1,)), (-2, 4))) == Project(
        Not(Or((Project(Anchor(5), 1), Not(Project(Anchor(6), 3))))), 4
    )


def is_expressible(query):
    """Whether an operator is applied to every entity, and there is no `*`."""
    match query:
        case Universe() | Anchor():
            return False
        case Project(Anchor(), _) | Not(Anchor()):
            return True
        case Project(operand, _) | Not(operand):
            return is_expressible(operand)
        case And(operands) | Or(operands):
            return all(map(is_expressible, operands))


@given(strategies.queries())
def test_any_expressible_query_comes_back(query):
    if is_expressible(query):
        assert query_from_tuple(query_to_tuple(query)) == query
        shape = shape_of(query)
        assert shape_from_structure(structure_of(shape)) == shape
    else:
        with pytest.raises(QueryError, match="no notation"):
            query_to_tuple(query)


@pytest.mark.parametrize(
    "nested",
    [(), (1,), (1, (-3,)), ("e", (1,)), (1.5, (1,)), (True, (1,)), (1, (1, -1)), [1, (1,)],
     ((1, (2,)), 3), ((1, (2,)), (-1,))],
)  # fmt: skip
def test_malformed_tuples_are_refused(nested):
    with pytest.raises(QueryError, match="tuple"):
        query_from_tuple(nested)


def test_malformed_tuples_of_any_depth_are_refused():
    nested_tuple, nested_list = (), []
    for _ in range(10_000):
        nested_tuple, nested_list = (nested_tuple,), [nested_list]
    for nested in (nested_tuple, (nested_list, (1,)), (1, (nested_list,))):
        with pytest.raises(QueryError, match="tuple"):
            query_from_tuple(nested)
        with pytest.raises(QueryError, match="tuple"):
            shape_from_structure(nested)


def test_malformed_structures_are_refused():
    with pytest.raises(QueryError, match="'x' in a structure tuple is not 'r', a relation"):
        shape_from_structure(("e", ("x",)))


@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 10_000])
def test_deeply_nested_tuples_are_refused(levels):
    def nested(levels):
        branch = (0, (0,))
        for _ in range(levels):
            branch = (branch, (0,))
        return branch

    with pytest.raises(QueryTooLargeError, match="64"):
        query_from_tuple(nested(levels))
    assert depth(query_from_tuple(nested(MAX_NESTING))) == MAX_NESTING + 2
