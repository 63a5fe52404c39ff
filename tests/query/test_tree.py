from itertools import product

import numpy as np
import pytest
from hypothesis import given

import strategies
from conekg.errors import QueryError
from conekg.graph.knowledge_graph import SPLITS
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Universe,
    all_of,
    any_of,
    children,
    depth,
    descend,
    fold,
    fold_each,
    has_negation,
    has_union,
    inverse_of,
    is_monotone,
    rebuild,
    relabel,
    subtrees,
)
from oracle import Oracle

A, B = Anchor(0), Anchor(1)
QUERY = Project(And((Project(A, 2), Not(Or((B, Universe()))))), 5)


@pytest.mark.parametrize("part", ["France", None, 3])
def test_a_part_that_is_no_node_is_refused_when_the_tree_is_walked(part):
    for tree in (part, Project(part, 0), And((A, Not(part)))):
        with pytest.raises(QueryError, match="in a query is no part of a tree") as caught:
            subtrees(tree)
        assert repr(part) in caught.value.message
        assert "parse_query" in str(caught.value.hint)


def test_operators_build_the_nodes_they_look_like():
    assert (A.project(2) & ~(B | Universe())).project(5) == QUERY


def test_nodes_are_hashable_and_equal_by_value():
    assert len({QUERY, Project(And((Project(A, 2), Not(B | Universe()))), 5)}) == 1


def test_an_intersection_and_a_union_of_one_are_refused():
    with pytest.raises(QueryError, match="it needs at least two"):
        And((A,))
    with pytest.raises(QueryError, match="it needs at least two"):
        Or((A,))


def test_one_set_alone_is_its_own_intersection_and_union():
    assert all_of([A]) == any_of([A]) == A
    assert all_of([A, B]) == And((A, B))
    assert any_of([A, B, A]) == Or((A, B, A))


def test_fold_visits_bottom_up_left_to_right():
    seen = []
    total = fold(QUERY, lambda node, below: seen.append(type(node).__name__) or 1 + sum(below))
    assert seen == ["Anchor", "Project", "Anchor", "Universe", "Or", "Not", "And", "Project"]
    assert total == 8


def test_fold_each_keeps_what_every_node_gives():
    query = And((Project(Anchor(1), 0), Not(Anchor(2))))
    assert fold_each(query, lambda _, below: 1 + sum(below)) == [1, 2, 1, 2, 5]
    assert len(subtrees(query)) == 5


def test_fold_is_not_bounded_by_the_stack():
    query = A
    for _ in range(5_000):
        query = Project(query, 0)
    assert depth(query) == 5_001


def test_trees_of_any_depth_are_compared_hashed_and_shown():
    steps = (lambda q: Project(q, 0), Not, lambda q: And((q, A)), lambda q: Or((A, q)))

    def deep(leaf):
        query = leaf
        for level in range(3_000):
            query = steps[level % 4](query)
        return query

    assert deep(A) == deep(Anchor(0))
    assert deep(A) != deep(B)
    assert len({deep(A), deep(Anchor(0)), deep(B)}) == 2
    assert repr(deep(A)).startswith("Or(operands=(Anchor(entity_id=0), And(operands=(Not(operand=")


def test_nodes_are_equal_where_kind_ids_and_operands_are():
    different = [A, B, Universe(), Project(A, 0), Project(A, 1), Project(B, 0), Not(A), Not(Not(A)),
                 A & B, B & A, A | B, And((A, B, A)), And((A, B & A)), Not(A & B)]  # fmt: skip
    for one, other in product(different, repeat=2):
        assert (one == other) == (one is other)
    for query in different:
        same = relabel(query, entity=lambda e: e, relation=lambda r: r)
        assert same == query
        assert hash(same) == hash(query)
        assert eval(repr(query)) == query
    assert A != 0


def test_a_descent_is_not_bounded_by_the_stack():
    def length(query):
        return 1 + (yield length(query.operand)) if isinstance(query, Project) else 0

    query = A
    for _ in range(5_000):
        query = Project(query, 0)
    assert descend(length(query)) == 5_000


def test_relabel_replaces_ids_in_reading_order():
    relabelled = relabel(QUERY, entity=lambda e: e + 10, relation=lambda r: r + 100)
    assert relabelled == Project(
        And((Project(Anchor(10), 102), Not(Or((Anchor(11), Universe()))))), 105
    )


def test_predicates():
    assert depth(A) == 1
    assert depth(QUERY) == 5
    assert has_negation(QUERY)
    assert has_union(QUERY)
    assert not has_negation(A | B)
    assert not has_union(A & B)


def test_negations_are_monotone_where_no_projection_is_under_an_odd_number_of_them():
    link, other = A.project(0), B.project(1)
    for query in (A, ~A, link, ~~link, link & ~A, ~(~link & ~other), ~(A & ~link.project(2))):
        assert is_monotone(query)
    for query in (~link, link & ~other, (link & ~other).project(2), ~(A & link), ~~(~link | other)):
        assert not is_monotone(query)


@given(strategies.graphs_with_queries())
def test_a_monotone_query_loses_no_answer_to_more_facts(case):
    graph, query = case
    few, all_facts = (
        Oracle(np.concatenate([graph.edges(part) for part in SPLITS[:count]]), graph.num_entities)
        for count in (1, 3)
    )
    if is_monotone(query):
        assert few.answer(query) <= all_facts.answer(query)
    if is_monotone(~query):
        assert few.answer(query) >= all_facts.answer(query)


def test_inverses_pair_up():
    assert [inverse_of(r) for r in range(4)] == [1, 0, 3, 2]


@given(strategies.queries())
def test_rebuilding_a_node_over_its_own_operands_changes_nothing(query):
    assert fold(query, rebuild) == query
    assert subtrees(query)[-1] == query
    assert all(child in subtrees(query) for child in children(query))
