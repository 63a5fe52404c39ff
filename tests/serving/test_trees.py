"""JSON trees: the way there and back, refusals, and the server's size limits."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import QueryError, QueryTooLargeError, UnknownNameError
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, depth, subtrees
from conekg.serving.limits import Limits
from conekg.serving.schemas import Tree
from conekg.serving.trees import (
    check_branches,
    check_names,
    check_size,
    check_text,
    num_branches,
    query_from_tree,
    tree_of_query,
)

VOCABULARY = Vocabulary(
    NameTable("entity", ["/m/1", "/m/2", "/m/3"], ["France", "Spain", ""]),
    NameTable("relation", ["borders", "speaks"]),
)

queries = st.recursive(
    st.builds(Anchor, st.integers(0, 2)) | st.just(Universe()),
    lambda below: (
        st.builds(Project, below, st.integers(0, 3))
        | st.builds(Not, below)
        | st.lists(below, min_size=2, max_size=3).map(tuple).map(And)
        | st.lists(below, min_size=2, max_size=3).map(tuple).map(Or)
    ),
    max_leaves=8,
)


@given(queries)
def test_a_tree_comes_back_as_the_query_it_was_made_from(query):
    tree = tree_of_query(query, VOCABULARY)
    sent = Tree.model_validate_json(tree.model_dump_json())
    assert query_from_tree(sent, VOCABULARY) == query


def test_trees_carry_names_and_labels():
    tree = tree_of_query(Project(Anchor(0), 3), VOCABULARY)
    assert (tree.kind, tree.name) == ("hop", "^speaks")
    assert tree.operands == [Tree(kind="entity", name="/m/1", label="France")]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Tree(kind="entity"), "'entity' needs a name"),
        (Tree(kind="hop", operands=[Tree(kind="all")]), "'hop' needs a name"),
        (Tree(kind="hop", name="borders"), "one operand, not 0"),
        (Tree(kind="not"), "one operand, not 0"),
        (Tree(kind="and", operands=[Tree(kind="all")]), "two or more operands, not 1"),
        (Tree(kind="or"), "two or more operands, not 0"),
        (Tree(kind="all", operands=[Tree(kind="all")]), "no operand, not 1"),
        (Tree(kind="all", name="baker"), "^tree.name: .* 'all' takes no name"),
        (Tree(kind="and", name="x", operands=[Tree(kind="all")] * 2), "'and' takes no name"),
        (Tree(kind="or", label="x", operands=[Tree(kind="all")] * 2), "'or' takes no label"),
        (Tree(kind="not", name="baker", operands=[Tree(kind="all")]), "'not' takes no name"),
        (
            Tree(
                kind="or",
                operands=[Tree(kind="all"), Tree(kind="not", operands=[Tree(kind="and")])],
            ),
            r"^tree\.operands\.1\.operands\.0: .* two or more operands, not 0",
        ),
    ],
)
def test_malformed_trees_are_refused_by_name(tree, message):
    with pytest.raises(QueryError, match=message):
        query_from_tree(tree, VOCABULARY)


def test_unknown_names_in_trees_are_reported():
    with pytest.raises(UnknownNameError, match=r"^tree\.name: unknown entity 'Frnce'"):
        query_from_tree(Tree(kind="entity", name="Frnce"), VOCABULARY)
    hop = Tree(kind="hop", name="bordrs", operands=[Tree(kind="all")])
    with pytest.raises(UnknownNameError, match=r"^tree.operands.1.name: .*'bordrs'") as caught:
        query_from_tree(Tree(kind="and", operands=[Tree(kind="all"), hop]), VOCABULARY)
    with pytest.raises(UnknownNameError) as plain:
        VOCABULARY.relation_id("bordrs")
    assert caught.value.hint == plain.value.hint
    assert caught.value.suggestions == plain.value.suggestions


@given(queries)
def test_size_limits_are_exact(query):
    nodes, levels = len(subtrees(query)), depth(query)
    assert check_size(query, Limits(query_nodes=nodes, query_depth=levels)) == levels
    if nodes > 1:
        with pytest.raises(QueryTooLargeError, match=f"{nodes} nodes"):
            check_size(query, Limits(query_nodes=nodes - 1))
    if levels > 1:
        with pytest.raises(QueryTooLargeError, match=f"{levels} levels"):
            check_size(query, Limits(query_depth=levels - 1))


@given(queries)
def test_the_limit_of_names_is_exact(query):
    tree = tree_of_query(query, VOCABULARY)
    texts = re.findall(r'"name":"([^"]+)"', tree.model_dump_json())
    total = sum(map(len, texts))
    check_names(tree, Limits(query_chars=max(1, total)))
    if total > 1:
        refusal = f"have {total} characters; this server takes {total - 1}"
        with pytest.raises(QueryTooLargeError, match=refusal):
            check_names(tree, Limits(query_chars=total - 1))


def test_the_name_that_is_too_much_is_located():
    short, long = Tree(kind="entity", name="ab", label="x" * 99), Tree(kind="entity", name="abcd")
    hop = Tree(kind="hop", name="xyz", operands=[long])
    tree = Tree(kind="and", operands=[short, Tree(kind="not", operands=[hop]), long])
    for limit, place in ((1, "0"), (4, "1.operands.0"), (8, "1.operands.0.operands.0"), (12, "2")):
        where = rf"^tree\.operands\.{re.escape(place)}\.name: "
        with pytest.raises(QueryTooLargeError, match=where):
            check_names(tree, Limits(query_chars=limit))
    check_names(tree, Limits(query_chars=13))


def test_the_limit_of_branches_is_exact():
    union = Or(tuple(Anchor(entity_id) for entity_id in range(17)))
    assert num_branches(union) == 17
    check_branches(union, "dnf", Limits(query_branches=17))
    with pytest.raises(QueryTooLargeError, match="17 union-free branches; this server takes 16"):
        check_branches(union, "dnf", Limits(query_branches=16))


def test_what_is_said_twice_is_counted_once():
    union = Or((Anchor(0), Anchor(1).project(0)))
    assert num_branches(union & union) == 2
    check_branches(And((union,) * 10), "dnf", Limits(query_branches=2))


def test_long_texts_are_refused():
    assert check_text("abc", Limits(query_chars=3), "query") == "abc"
    with pytest.raises(QueryTooLargeError, match="4 characters"):
        check_text("abcd", Limits(query_chars=3), "query")
