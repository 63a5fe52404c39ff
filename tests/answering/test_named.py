"""Entities that a question names: the query that is left to rank by, and the limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import strategies
from conekg.answering.named import Limit, ranked_by
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.parse import parse_query
from conekg.query.rewrite import settle
from conekg.query.shape import grounded
from conekg.query.tree import Query
from oracle import Oracle


@pytest.mark.parametrize(
    ("text", "left", "limits"),
    [
        ("a1.won_by", "a1.won_by", []),
        ("a1.won_by & f1", "a1.won_by", [(["f1"], [])]),
        ("a1.won_by & !f1 & !f2", "a1.won_by", [(None, ["f1", "f2"])]),
        ("a1.won_by & f1 & !f1", "a1.won_by", [([], ["f1"])]),
        ("a1.won_by & f1 & f2", "a1.won_by", [([], [])]),
        ("a1.won_by & c1.produced & f1", "a1.won_by & c1.produced", [(["f1"], [])]),
        ("a1.won_by & (f1 | f2)", "a1.won_by | a1.won_by", [(["f1"], []), (["f2"], [])]),
        ("a1.won_by | c1.produced & f2", "a1.won_by | c1.produced", [(None, []), (["f2"], [])]),
        ("f1", "f1", [(["f1"], [])]),
        ("!f1 & !f2", "!f1", [(None, ["f1", "f2"])]),
        ("!d1 & f1", "f1", [(["f1"], ["d1"])]),
        # An entity that is named inside a path sets no limit.
        ("(a1.won_by & f1).directed_by", "(a1.won_by & f1).directed_by", []),
    ],
)
def test_named_entities_become_limits(
    film_graph: KnowledgeGraph,
    text: str,
    left: str,
    limits: list[tuple[list[str] | None, list[str]]],
) -> None:
    words = film_graph.vocabulary

    def ids(names: list[str]) -> frozenset[int]:
        return frozenset(map(words.entities.id_of, names))

    form = ranked_by(parse_query(text, words), "dnf", 8)
    assert form.grounded == grounded(parse_query(left, words))
    expected = [Limit(None if among is None else ids(among), ids(but)) for among, but in limits]
    assert list(form.limits) == expected


def test_what_a_branch_does_not_allow_is_barred_from_it(film_graph: KnowledgeGraph) -> None:
    words = film_graph.vocabulary
    first, second = map(words.entities.id_of, ("f1", "f2"))
    text = "a1.won_by & f1 | c1.produced & !f2 | c1.produced & !f1"
    barred = ranked_by(parse_query(text, words), "dnf", 8).barred(film_graph.num_entities)
    others = sorted(set(range(film_graph.num_entities)) - {first})
    assert [ids.tolist() for ids in barred] == [others, [second], [first]]
    assert ranked_by(parse_query("a1.won_by", words), "dnf", 8).barred(8) == []


@given(strategies.graphs_with_queries())
def test_every_answer_is_allowed_by_some_branch(
    given_graph: tuple[KnowledgeGraph, Query],
) -> None:
    graph, query = given_graph
    form = ranked_by(settle(query), "dnf", 4096)
    if form.limits:
        everything = np.arange(graph.num_entities)
        barred = np.stack([~limit.allowed(everything) for limit in form.limits]).all(axis=0)
        answers = Oracle(graph.edges("train").tolist(), graph.num_entities).answer(query)
        assert not set(np.flatnonzero(barred).tolist()) & answers
