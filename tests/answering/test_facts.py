"""What facts say about many questions at once, against the oracle one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.answering.facts import contains, exact_answers, facts_of
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.query.open_world import certainty_of, contradiction_of
from conekg.query.shape import grounded
from conekg.query.tree import Anchor, And, Not, Or, Query
from oracle import Oracle


def by_oracle(graph: KnowledgeGraph, split: Split, query: Query) -> list[int]:
    parts = [graph.edges(part) for part in SPLITS[: SPLITS.index(split) + 1]]
    return sorted(Oracle(np.concatenate(parts).tolist(), graph.num_entities).answer(query))


@given(
    graph=strategies.graphs(),
    queries=st.lists(strategies.queries(1, 2, max_leaves=3), max_size=6),
    data=st.data(),
)
def test_each_question_gets_the_facts_of_its_own_graph(
    graph: KnowledgeGraph, queries: list[Query], data: st.DataObject
) -> None:
    splits = data.draw(
        st.lists(st.sampled_from(SPLITS), min_size=len(queries), max_size=len(queries))
    )
    asked = [(grounded(query), split) for query, split in zip(queries, splits, strict=True)]
    found = facts_of(graph, asked)
    assert [ids.tolist() for ids in exact_answers(graph, asked)] == [
        facts.known.tolist() for facts in found
    ]
    for query, split, facts in zip(queries, splits, found, strict=True):
        assert facts.known.tolist() == by_oracle(graph, split, query)
        contradiction = contradiction_of(query)
        expected = [] if contradiction is None else by_oracle(graph, split, contradiction)
        assert facts.contradicted.tolist() == expected
        assert not set(expected) & set(facts.known.tolist()), "what is known is not ruled out"
        certainty = certainty_of(query)
        certain = [] if certainty is None else by_oracle(graph, split, certainty)
        assert facts.certain.tolist() == certain
        assert set(certain) <= set(facts.known.tolist())


def test_some_known_answers_are_certain(film_graph: KnowledgeGraph) -> None:
    """Films of the award, or that the United States did not produce; only the first are certain."""
    awarded, produced = Anchor(0).project(0), Anchor(6).project(4)
    (facts,) = facts_of(film_graph, [(grounded(Or((awarded, Not(produced)))), "train")])
    assert facts.certain.tolist() == by_oracle(film_graph, "train", awarded) == [1, 3]
    assert facts.known.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert facts.contradicted.tolist() == []
    (facts,) = facts_of(film_graph, [(grounded(And((awarded, Not(produced)))), "train")])
    assert facts.known.tolist() == [3]
    assert facts.certain.tolist() == []
    assert facts.contradicted.tolist() == [1, 2]


def test_more_facts_rule_more_out(film_graph: KnowledgeGraph) -> None:
    """Films of the award that France did not produce: a later fact rules one more out."""
    query = grounded(And((Anchor(0).project(0), Not(Anchor(7).project(4)))))
    found = facts_of(film_graph, [(query, split) for split in SPLITS])
    assert [facts.contradicted.tolist() for facts in found] == [[3], [3], [1, 3]]


@given(
    sorted_ids=st.sets(st.integers(0, 20)).map(sorted),
    ids=st.lists(st.integers(0, 25), max_size=10),
)
def test_contains(sorted_ids: list[int], ids: list[int]) -> None:
    found = contains(np.array(sorted_ids, dtype=np.int32), np.array(ids, dtype=np.int64))
    assert found.tolist() == [i in set(sorted_ids) for i in ids]
