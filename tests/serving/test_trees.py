"""JSON trees: conversion in both directions, and refusals."""

from __future__ import annotations

from extras import need

need("fastapi")

import pytest
from hypothesis import given

import strategies
from conekg.errors import QueryError, UnknownNameError
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.tree import Anchor, Project
from conekg.serving.schemas import Tree
from conekg.serving.trees import query_from_tree, tree_of_query

VOCABULARY = Vocabulary(
    NameTable("entity", ["/m/1", "/m/2", "/m/3"], ["France", "Spain", ""]),
    NameTable("relation", ["borders", "speaks"]),
)


@given(strategies.queries(3, 4, max_leaves=8))
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
