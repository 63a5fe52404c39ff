"""Branches without unions: case files say what is made, properties that answers never change."""

import pytest
from hypothesis import given

import strategies
from conekg.errors import QueryTooLargeError
from conekg.query import branches
from conekg.query.branches import (
    DEFAULT_BRANCH_CAP,
    capped,
    count_branches,
    distribute,
    replace_unions,
    to_de_morgan,
    to_dnf,
    union_free_branches,
)
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.shape import STRUCTURES, Shape, shape_of, slots_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, has_union, subtrees
from rewrite_cases import LETTERS, known_answers, read_cases

LARGE = 100_000


@pytest.mark.parametrize(("function", "text", "expected"), read_cases("branches"))
def test_case_files(function, text, expected):
    result = getattr(branches, function)(parse_query(text, LETTERS))
    trees = result if isinstance(result, tuple) else [result]
    assert [render_query(tree, LETTERS) for tree in trees] == expected


@given(strategies.graphs_with_queries())
def test_normal_forms_keep_the_answers(pair):
    graph, query = pair
    expected = known_answers(graph, query)
    assert known_answers(graph, replace_unions(query)) == expected
    assert known_answers(graph, to_de_morgan(query)) == expected
    assert known_answers(graph, to_dnf(query, LARGE)) == expected


@given(strategies.graphs_with_queries())
def test_distribution_keeps_the_answers_or_is_refused(pair):
    graph, query = pair
    try:
        distributed = distribute(query)
    except QueryTooLargeError:
        assert count_branches(query) > DEFAULT_BRANCH_CAP
    else:
        assert known_answers(graph, distributed) == known_answers(graph, query)


@given(strategies.graphs_with_queries())
def test_union_free_branches_answer_as_the_whole_does(pair):
    graph, query = pair
    branches = union_free_branches(query, cap=LARGE)
    assert set().union(*(known_answers(graph, branch) for branch in branches)) == known_answers(
        graph, query
    )
    assert not any(has_union(branch) for branch in branches)
    (single,) = union_free_branches(query, union="demorgan")
    assert known_answers(graph, single) == known_answers(graph, query)
    assert not has_union(single)


@given(strategies.queries())
def test_the_count_bounds_what_is_made(query):
    branches = union_free_branches(query, cap=LARGE)
    assert len(branches) <= count_branches(query)


@given(strategies.queries(universe=False))
def test_the_count_is_exact_on_templates(query):
    # Slots are distinct, so no two branches coincide; without negation nothing merges either.
    template = shape_of(query).template
    if not any(isinstance(node, Not) for node in subtrees(template)):
        assert len(union_free_branches(template, cap=LARGE)) == count_branches(template)


@given(strategies.queries(universe=False))
def test_branches_of_a_template_ground_to_branches_of_the_query(query):
    shape = shape_of(query)
    ids = slots_of(query)
    grounded = [
        Shape(branch).ground(*ids) for branch in union_free_branches(shape.template, cap=LARGE)
    ]
    assert tuple(dict.fromkeys(grounded)) == union_free_branches(query, cap=LARGE)


@given(strategies.queries(union=False))
def test_a_query_without_union_is_its_own_branch(query):
    assert union_free_branches(query) == (query,)
    assert union_free_branches(query, union="demorgan") == (query,)


@given(strategies.queries())
def test_a_dnf_has_unions_at_the_root_alone(query):
    dnf = to_dnf(query, LARGE)
    operands = dnf.operands if isinstance(dnf, Or) else (dnf,)
    assert not any(has_union(operand) for operand in operands)
    for operand in operands:
        for node in subtrees(operand):
            if isinstance(node, Not):
                assert not isinstance(node.operand, Not | And | Or)


def test_de_morgan_forms_of_the_literature():
    for plain, form in (("2u", "2u-DM"), ("up", "up-DM")):
        assert to_de_morgan(STRUCTURES[plain].template) == STRUCTURES[form].template
        assert union_free_branches(STRUCTURES[plain].template, "demorgan") == (
            STRUCTURES[form].template,
        )
        assert len(union_free_branches(STRUCTURES[plain].template)) == 2


def conjunction_of_unions(k):
    return And(tuple(Or((Anchor(2 * i), Anchor(2 * i + 1))) for i in range(k)))


def test_k_unions_under_one_intersection_give_two_to_the_k():
    assert count_branches(conjunction_of_unions(6)) == 64
    assert len(union_free_branches(conjunction_of_unions(6))) == 64


def test_the_cap_is_checked_before_the_work_is_done():
    query = conjunction_of_unions(200)  # 2^200 branches: distributing them would never end
    with pytest.raises(QueryTooLargeError, match=r"union-free branches; at most 64 are allowed"):
        union_free_branches(query)
    with pytest.raises(QueryTooLargeError, match="has more than a billion union-free branches"):
        union_free_branches(conjunction_of_unions(15_000))  # a number of 4,516 digits
    with pytest.raises(QueryTooLargeError) as caught:
        to_dnf(conjunction_of_unions(7), cap=100)
    assert "128 union-free branches; at most 100" in caught.value.message
    with pytest.raises(QueryTooLargeError):
        union_free_branches(conjunction_of_unions(3), cap=7)
    assert len(union_free_branches(conjunction_of_unions(3), cap=8)) == 8
    assert "De Morgan" in str(caught.value.hint)
    assert "negated intersections" in str(caught.value.hint)


def test_operands_under_a_negated_projection_count_too():
    # One branch, but an intersection of 2^200 operands.
    query = Not(Project(conjunction_of_unions(200), 0))
    with pytest.raises(QueryTooLargeError):
        union_free_branches(query)


def test_branches_multiply_behind_projections_and_not_behind_negated_ones():
    steps = [Project(Or((Anchor(2 * i), Anchor(2 * i + 1))), 0) for i in range(200)]
    assert count_branches(And(tuple(steps[:3]))) == 8
    with pytest.raises(QueryTooLargeError):
        union_free_branches(And(tuple(steps)))
    negated = And(tuple(Not(step) for step in steps))
    assert count_branches(negated) == 2, "each is an intersection of two"
    assert len(union_free_branches(negated)) == 1


def test_de_morgan_never_multiplies():
    (branch,) = union_free_branches(conjunction_of_unions(200), union="demorgan")
    assert len(subtrees(branch)) == 1 + 200 * 6


def test_negation_swaps_what_multiplies():
    pairs = Or(tuple(And((Anchor(2 * i), Anchor(2 * i + 1))) for i in range(200)))
    assert count_branches(pairs) == 200
    assert len(union_free_branches(Not(pairs))) == 1  # the pairs hold no union: kept whole
    assert count_branches(Not(pairs)) == 1
    with pytest.raises(QueryTooLargeError):
        to_dnf(Not(pairs))
    both = And((Or((Anchor(0), Anchor(1))), Anchor(2), Anchor(3)))
    assert count_branches(Not(both)) == len(union_free_branches(Not(both))) == 3


def test_only_a_part_of_more_branches_than_the_cap_is_rewritten():
    query = conjunction_of_unions(3)
    assert capped(query, "dnf", 8) == query
    assert capped(query, "dnf", 7) == to_de_morgan(query) != query
    assert capped(query, "demorgan", 7) == query


def test_lifting_is_not_bounded_by_the_stack():
    query = path = Anchor(0)
    for _ in range(500):
        query = Project(And((Not(Not(query)), Universe())), 0)
        path = Project(path, 0)
    assert to_dnf(query) == Project(And((to_dnf(query.operand.operands[0]), Universe())), 0)
    assert count_branches(Or((query, path))) == 2
