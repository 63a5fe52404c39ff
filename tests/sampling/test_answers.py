from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.query.shape import shape_of, slots_of
from conekg.query.tree import Anchor, Query
from conekg.sampling.answers import easy_and_hard, graphs_of, subtract_answers
from oracle import Oracle
from strategies import graphs_with_queries


def easy_and_hard_of(graph: KnowledgeGraph, split: Split, query: Query) -> tuple[set, set]:
    entity_ids, relation_ids = slots_of(query)
    easy, hard = easy_and_hard(
        graph,
        split,
        shape_of(query),
        np.array([entity_ids], dtype=np.int32).reshape(1, -1),
        np.array([relation_ids], dtype=np.int32).reshape(1, -1),
    )
    return set(easy[0].tolist()), set(hard[0].tolist())


@given(graphs_with_queries())
def test_easy_and_hard_answers_equal_the_oracles(case: tuple[KnowledgeGraph, Query]) -> None:
    graph, query = case
    answers = []
    known: list[tuple[int, int, int]] = []
    for split in SPLITS:
        known += [tuple(edge) for edge in graph.edges(split).tolist()]
        answers.append(Oracle(known, graph.num_entities).answer(query))
    assert easy_and_hard_of(graph, "train", query) == (set(), answers[0])
    assert easy_and_hard_of(graph, "valid", query) == (answers[0], answers[1] - answers[0])
    assert easy_and_hard_of(graph, "test", query) == (answers[1], answers[2] - answers[1])


@given(st.integers(0, 2**16), st.integers(0, 5))
def test_answers_are_subtracted_row_by_row(seed: int, num_rows: int) -> None:
    generator = np.random.default_rng(seed)
    left, right = (
        [set(generator.integers(0, 20, generator.integers(9)).tolist()) for _ in range(num_rows)]
        for _ in range(2)
    )
    found = subtract_answers(as_ragged(left), as_ragged(right))
    assert [set(found[row].tolist()) for row in range(len(found))] == [
        more - less for more, less in zip(left, right, strict=True)
    ]


def as_ragged(rows: list[set[int]]) -> Ragged:
    offsets = np.cumsum([0, *map(len, rows)])
    return Ragged(offsets, np.array([x for row in rows for x in sorted(row)], dtype=np.int32))


def test_an_answer_that_negation_makes_false_stays_easy(film_graph: KnowledgeGraph) -> None:
    names = film_graph.vocabulary
    f1, f2 = (names.entities.id_of(name) for name in ("f1", "f2"))
    produced = Anchor(names.entities.id_of("c1")).project(names.relation_id("produced"))
    won = Anchor(names.entities.id_of("a1")).project(names.relation_id("won_by"))
    # In training f2 has not won; the validation facts say it has.
    assert easy_and_hard_of(film_graph, "valid", produced & ~won) == ({f2}, set())
    assert easy_and_hard_of(film_graph, "valid", produced & won) == ({f1}, {f2})


@pytest.mark.parametrize(("split", "smaller"), [("valid", "train"), ("test", "valid")])
def test_the_graphs_of_a_split(film_graph: KnowledgeGraph, split: Split, smaller: Split) -> None:
    small, full = graphs_of(film_graph, split)
    assert small is film_graph.adjacency(smaller)
    assert full is film_graph.adjacency(split)
    assert graphs_of(film_graph, "train")[0] is None
