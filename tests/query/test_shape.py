import pytest
from hypothesis import given

import strategies
from conekg.errors import QueryError
from conekg.query.shape import (
    NEGATION_STRUCTURES,
    POSITIVE_STRUCTURES,
    STRUCTURES,
    TRAINED_STRUCTURES,
    Shape,
    shape_of,
    slots_of,
    spell,
)
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, relabel

# The paper's Figure of query structures, spelled in the path algebra by hand.
SPELLINGS = {
    "1p": "e.r",
    "2p": "e.r.r",
    "3p": "e.r.r.r",
    "2i": "(e.r & e.r)",
    "3i": "(e.r & e.r & e.r)",
    "ip": "(e.r & e.r).r",
    "pi": "(e.r.r & e.r)",
    "2in": "(e.r & (!e.r))",
    "3in": "(e.r & e.r & (!e.r))",
    "inp": "(e.r & (!e.r)).r",
    "pin": "(e.r.r & (!e.r))",
    "pni": "((!e.r.r) & e.r)",
    "2u": "(e.r | e.r)",
    "up": "(e.r | e.r).r",
    "2u-DM": "(!((!e.r) & (!e.r)))",
    "up-DM": "(!((!e.r) & (!e.r))).r",
}


@pytest.mark.parametrize(("name", "spelling"), SPELLINGS.items())
def test_structures_are_those_of_the_paper(name, spelling):
    shape = STRUCTURES[name]
    assert spell(shape.template) == spelling
    assert shape.name == name
    assert shape.num_anchors == spelling.count("e")
    assert shape.num_relations == spelling.count("r")


def test_the_lists_of_structures_cover_the_fourteen():
    assert set(POSITIVE_STRUCTURES) | set(NEGATION_STRUCTURES) == set(STRUCTURES) - {
        "2u-DM",
        "up-DM",
    }
    assert set(TRAINED_STRUCTURES) < set(STRUCTURES)
    assert len(POSITIVE_STRUCTURES) + len(NEGATION_STRUCTURES) == 14


def test_slots_are_numbered_in_reading_order():
    query = Project(And((Project(Anchor(9), 4), Not(Project(Anchor(8), 2)))), 6)
    assert slots_of(query) == ([9, 8], [4, 2, 6])
    assert slots_of(shape_of(query).template) == ([0, 1], [0, 1, 2])


def test_a_shape_without_a_name_is_spelled_out():
    query = Or((Universe(), Project(Universe(), 3)))
    assert shape_of(query).name == "(* | *.r)"


@given(strategies.queries())
def test_grounding_a_shape_with_a_querys_ids_gives_the_query(query):
    shape = shape_of(query)
    entity_ids, relation_ids = slots_of(query)
    assert shape.ground(entity_ids, relation_ids) == query
    assert (shape.num_anchors, shape.num_relations) == (len(entity_ids), len(relation_ids))


@given(strategies.queries())
def test_ids_do_not_change_the_shape(query):
    entity_ids, relation_ids = slots_of(query)
    other = shape_of(query).ground([e + 1 for e in entity_ids], [r + 1 for r in relation_ids])
    assert shape_of(other) == shape_of(query)
    assert hash(shape_of(other)) == hash(shape_of(query))


@given(strategies.queries(num_entities=5, num_relations=4))
def test_a_shape_is_the_query_with_its_ids_counted_in_reading_order(query):
    entities, relations = iter(range(100)), iter(range(100))
    expected = relabel(query, lambda _: next(entities), lambda _: next(relations))
    shape = shape_of(query)
    assert shape.template == expected
    assert shape == Shape(expected)
    assert hash(shape) == hash(Shape(expected))


def test_queries_of_one_shape_share_it():
    assert shape_of(Project(Anchor(1), 2)) is shape_of(Project(Anchor(3), 4))


@pytest.mark.parametrize("part", ["France", None, 3])
def test_what_is_no_tree_is_told(part):
    for query in (part, Project(part, 0), Not(And((Anchor(0), part)))):
        with pytest.raises(QueryError, match=f"{part!r} in a query is no part of a tree"):
            shape_of(query)
