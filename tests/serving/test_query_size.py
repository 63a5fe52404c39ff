"""The server's size limits, each exact."""

from __future__ import annotations

import re

from extras import need

need("fastapi")

import pytest
from hypothesis import given

import strategies
from conekg.errors import QueryTooLargeError
from conekg.query.tree import Anchor, And, Or, depth, subtrees
from conekg.serving.limits import Limits
from conekg.serving.query_size import (
    check_branches,
    check_names,
    check_size,
    check_text,
    num_branches,
)
from conekg.serving.schemas import Tree
from conekg.serving.trees import tree_of_query

IN_PARTS = "ask for its parts one at a time"


@given(strategies.queries(max_leaves=8))
def test_size_limits_are_exact(query):
    nodes, levels = len(subtrees(query)), depth(query)
    assert check_size(query, Limits(query_nodes=nodes, query_depth=levels)) == levels
    if nodes > 1:
        with pytest.raises(QueryTooLargeError, match=f"{nodes} nodes") as caught:
            check_size(query, Limits(query_nodes=nodes - 1))
        assert caught.value.hint == IN_PARTS
    if levels > 1:
        with pytest.raises(QueryTooLargeError, match=f"{levels} levels") as caught:
            check_size(query, Limits(query_depth=levels - 1))
        assert caught.value.hint == IN_PARTS


@given(strategies.queries(max_leaves=8))
def test_the_limit_of_names_is_exact(query):
    tree = tree_of_query(query, strategies.plain_vocabulary())
    texts = re.findall(r'"name":"([^"]+)"', tree.model_dump_json())
    total = sum(map(len, texts))
    check_names(tree, Limits(query_chars=max(1, total)))
    if total > 1:
        refusal = f"have {total} characters; this server allows {total - 1}"
        with pytest.raises(QueryTooLargeError, match=refusal) as caught:
            check_names(tree, Limits(query_chars=total - 1))
        assert caught.value.hint == IN_PARTS


def test_the_name_that_exceeds_the_limit_is_located():
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
    refusal = "17 union-free branches; this server allows 16"
    with pytest.raises(QueryTooLargeError, match=refusal) as caught:
        check_branches(union, "dnf", Limits(query_branches=16))
    assert 'send "union": "demorgan"' in str(caught.value.hint)
    check_branches(union, "demorgan", Limits(query_branches=1))


def test_repeated_parts_are_counted_once():
    union = Or((Anchor(0), Anchor(1).project(0)))
    assert num_branches(union & union) == 2
    check_branches(And((union,) * 10), "dnf", Limits(query_branches=2))


def test_long_texts_are_refused():
    assert check_text("abc", Limits(query_chars=3), "query") == "abc"
    for place, hint in (("query", IN_PARTS), ("shape", None)):
        refusal = f"^{place} has 4 characters; this server allows 3"
        with pytest.raises(QueryTooLargeError, match=refusal) as caught:
            check_text("abcd", Limits(query_chars=3), place)
        assert caught.value.hint == hint
