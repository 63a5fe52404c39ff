import re

import numpy as np
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
    decode_shape,
    encode_shape,
    grounded,
    outline,
    shape_of,
    slots_of,
    spell,
)
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, fold, rebuild, relabel

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
    assert len(POSITIVE_STRUCTURES) + len(NEGATION_STRUCTURES) == 14


def test_the_lists_of_structures_are_in_the_order_of_the_papers_tables():
    assert " ".join(POSITIVE_STRUCTURES) == "1p 2p 3p 2i 3i pi ip 2u up"
    assert " ".join(NEGATION_STRUCTURES) == "2in 3in inp pin pni"


def test_four_structures_are_kept_from_training_to_test_generalisation():
    untrained = {"pi", "ip", "2u", "up"}
    assert set(TRAINED_STRUCTURES) | untrained == {*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES}
    assert len(TRAINED_STRUCTURES) == 10


def test_a_path_is_hops_from_one_anchor():
    paths = [name for name, shape in STRUCTURES.items() if shape.is_path]
    assert paths == ["1p", "2p", "3p"]
    hop = Project(Anchor(0), 0)
    assert shape_of(Anchor(0)).is_path
    assert not any(shape_of(q).is_path for q in (Project(Universe(), 0), Project(Not(hop), 0)))


def test_slots_are_numbered_in_reading_order():
    query = Project(And((Project(Anchor(9), 4), Not(Project(Anchor(8), 2)))), 6)
    assert slots_of(query) == ([9, 8], [4, 2, 6])
    assert slots_of(shape_of(query).template) == ([0, 1], [0, 1, 2])


def test_a_shape_without_a_name_is_spelled_out():
    query = Or((Universe(), Project(Universe(), 3)))
    assert shape_of(query).name == "(* | *.r)"
    assert shape_of(Or(query.operands[::-1])).name == "(*.r | *)"


@given(strategies.queries())
def test_an_outline_is_the_same_whatever_the_order_of_operands(query):
    backwards = fold(query, lambda node, operands: rebuild(node, operands[::-1]))
    assert outline(shape_of(backwards)) == outline(shape_of(query))
    assert sorted(outline(shape_of(query))) == sorted(spell(query)), "nothing is left out"


def test_an_outline_tells_apart_what_is_not_the_same():
    outlines = {outline(shape) for shape in STRUCTURES.values()}
    assert len(outlines) == len(STRUCTURES)


@given(strategies.queries())
def test_grounding_a_shape_with_a_querys_ids_gives_the_query(query):
    shape = shape_of(query)
    entity_ids, relation_ids = slots_of(query)
    assert shape.ground(entity_ids, relation_ids) == query
    assert (shape.num_anchors, shape.num_relations) == (len(entity_ids), len(relation_ids))
    assert grounded(query) == (shape, entity_ids, relation_ids)


def test_ids_from_arrays_become_plain_numbers():
    # NumPy integers overflow silently, and `json` cannot write them.
    query = STRUCTURES["1p"].ground(np.array([7], np.int32), np.array([3], np.int32))
    assert (type(query.operand.entity_id), type(query.relation_id)) == (int, int)
    assert query == Project(Anchor(7), 3)


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
def test_shapes_of_operands_that_are_not_nodes_are_refused(part):
    for query in (part, Project(part, 0), Not(And((Anchor(0), part)))):
        with pytest.raises(QueryError, match=f"{part!r} in a query is no part of a tree"):
            shape_of(query)


@given(strategies.shapes())
def test_shapes_survive_their_text(shape):
    assert decode_shape(encode_shape(shape)) == shape


@given(strategies.queries())
def test_the_text_of_a_shape_is_its_nodes_in_post_order(query):
    words = {Anchor: "e", Universe: "*", Project: "r", Not: "!"}

    def write(node, parts):
        sign = "&" if isinstance(node, And) else "|"
        return " ".join((*parts, words.get(type(node)) or f"{sign}{len(parts)}"))

    assert encode_shape(shape_of(query)) == fold(query, write)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1p", "e r"),
        ("3i", "e r e r e r &3"),
        ("2in", "e r e r ! &2"),
        ("pni", "e r r ! e r &2"),
        ("up", "e r e r |2 r"),
        ("2u-DM", "e r ! e r ! &2 !"),
    ],
)
def test_the_texts_of_structures_are_those_of_their_files(name, text):
    assert encode_shape(STRUCTURES[name]) == text
    # Compare with `shape_of`: the object in STRUCTURES may have been dropped from its cache.
    assert decode_shape(text) is shape_of(STRUCTURES[name].template) == STRUCTURES[name]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the shape '' is of 0 queries"),
        ("e e", "the shape 'e e' is of 2 queries"),
        ("x", "unknown word 'x'"),
        ("e &", "unknown word '&'"),
        ("e &1", "unknown word '&1'"),
        ("e e &-2", "unknown word '&-2'"),
        ("r", "'r' lacks operands in the shape 'r'"),
        ("!", "'!' lacks operands"),
        ("&2", "'&2' lacks operands"),
        ("e |2", "'|2' lacks operands"),
        ("e e &999999999999", "'&999999999999' lacks operands"),
    ],
)
def test_a_text_of_no_shape_is_refused(text, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        decode_shape(text)


def test_shapes_of_any_depth_have_a_text():
    text = " ".join(["e"] + ["r", "!"] * 20_000)
    assert encode_shape(decode_shape(text)) == text
