"""Contradictions and certainties against every completion of a small graph."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.query.open_world import certainty_of, contradiction_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from oracle import Oracle

NUM_ENTITIES = 3
FACTS = {(0, 0, 1), (1, 0, 2)}
POSSIBLE = [(head, 0, tail) for head in range(NUM_ENTITIES) for tail in range(NUM_ENTITIES)]
UNKNOWN = [triple for triple in POSSIBLE if triple not in FACTS]


def queries() -> st.SearchStrategy[Query]:
    leaves = st.one_of(st.builds(Anchor, st.integers(0, NUM_ENTITIES - 1)), st.just(Universe()))

    def grow(inner: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
        pairs = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.builds(Project, inner, st.just(0)),
            st.builds(Not, inner),
            st.builds(And, pairs),
            st.builds(Or, pairs),
        )

    return st.recursive(leaves, grow, max_leaves=5)


def completions() -> list[Oracle]:
    subsets = chain.from_iterable(combinations(UNKNOWN, n) for n in range(len(UNKNOWN) + 1))
    return [Oracle(FACTS | set(more), NUM_ENTITIES) for more in subsets]


COMPLETIONS = completions()
A, B = Project(Anchor(0), 0), Project(Anchor(1), 0)


@given(queries())
def test_what_is_ruled_out_is_an_answer_in_no_completion(query: Query) -> None:
    contradiction = contradiction_of(query)
    ruled_out = set() if contradiction is None else COMPLETIONS[0].answer(contradiction)
    for world in COMPLETIONS:
        assert not ruled_out & world.answer(query)


@given(queries())
def test_what_is_certain_is_an_answer_in_every_completion(query: Query) -> None:
    certainty = certainty_of(query)
    certain = set() if certainty is None else COMPLETIONS[0].answer(certainty)
    for world in COMPLETIONS:
        assert certain <= world.answer(query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Project(Anchor(0), 0), {1}),
        # An entity differs from another one whatever the facts are.
        (Not(Anchor(0)), {1, 2}),
        (And((Project(Universe(), 0), Not(Anchor(1)))), {2}),
        (Project(Not(Anchor(0)), 0), {2}),
        # New facts can make a negation false, but not the part beside it.
        (Not(Project(Anchor(0), 0)), set()),
        (And((Project(Anchor(0), 0), Not(Project(Anchor(2), 0)))), set()),
        (Or((Project(Anchor(0), 0), Not(Project(Anchor(2), 0)))), {1}),
        (Not(Not(Project(Anchor(0), 0))), {1}),
    ],
)
def test_every_answer_in_all_completions_is_certain(query: Query, expected: set[int]) -> None:
    certainty = certainty_of(query)
    found = set() if certainty is None else COMPLETIONS[0].answer(certainty)
    everywhere = set.intersection(*(set(world.answer(query)) for world in COMPLETIONS))
    assert found == expected == everywhere


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Not(Project(Anchor(0), 0)), {1}),
        (And((Project(Anchor(2), 0), Not(Project(Anchor(0), 0)))), {1}),
        # Two steps are known to lead from 0 to 2, so 2 is no answer to their negation.
        (Not(Project(Project(Anchor(0), 0), 0)), {2}),
        # An intersection of negations rules out what either does; a union only what both do.
        (And((Not(Project(Anchor(0), 0)), Not(Project(Anchor(1), 0)))), {1, 2}),
        (Or((Not(Project(Anchor(0), 0)), Not(Project(Anchor(1), 0)))), set()),
        # A named entity is no other entity.
        (And((Anchor(0), Project(Universe(), 0))), {1, 2}),
        # After a projection nothing is ruled out: its operand may have further answers.
        (Project(Not(Project(Anchor(0), 0)), 0), set()),
        (Project(Anchor(0), 0), set()),
        # A projection of the empty set is empty in every completion.
        (Project(Not(Universe()), 0), {0, 1, 2}),
        (Or((Project(Not(Universe()), 0), Anchor(0))), {1, 2}),
    ],
)
def test_every_answer_in_no_completion_is_ruled_out(query: Query, expected: set[int]) -> None:
    contradiction = contradiction_of(query)
    found = set() if contradiction is None else COMPLETIONS[0].answer(contradiction)
    possible = set().union(*(world.answer(query) for world in COMPLETIONS))
    assert found == expected == set(range(NUM_ENTITIES)) - possible


@pytest.mark.parametrize(
    "query",
    [A, Not(Not(A)), Project(Not(A), 0), And((A, Not(Project(Not(B), 0)))), Or((Not(A), B))],
)
def test_there_is_no_query_for_what_nothing_rules_out(query: Query) -> None:
    assert contradiction_of(query) is None


@pytest.mark.parametrize(
    "query", [Not(A), Not(Not(Not(A))), Project(Not(A), 0), And((A, Not(Project(Not(Not(B)), 0))))]
)
def test_there_is_no_query_for_what_no_facts_settle(query: Query) -> None:
    assert certainty_of(query) is None


def test_bounds_follow_the_relations_of_the_query() -> None:
    path = Project(Project(Anchor(0), 3), 5)
    assert certainty_of(path) == path
    assert contradiction_of(And((A, Not(path)))) == path
