"""Plans, run by an interpreter on query trees, which shows exactly what a plan computes."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import strategies
from conekg.errors import QueryTooLargeError
from conekg.query.branches import union_free_branches
from conekg.query.plan import (
    AnchorStep,
    IntersectStep,
    NegateStep,
    ProjectStep,
    Rows,
    UniverseStep,
    describe,
    join_rows,
    plan_shapes,
)
from conekg.query.shape import STRUCTURES, Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe, fold, subtrees

BATCHES = st.lists(
    st.tuples(strategies.shapes(), st.integers(0, 3)), min_size=1, max_size=4
).filter(lambda batch: all(shape.num_anchors + shape.num_relations for shape, _ in batch))


def run(plan, anchors, relations):
    """The tree each root row denotes: the steps carried out on trees instead of tensors."""
    values = []

    def ids(columns, slots):
        return [row[slot.column] for slot in slots for row in columns[slot.group]]

    def take(rows):
        return [value for r in rows for value in values[r.step][r.start : r.stop]]

    for step in plan.steps:
        match step:
            case AnchorStep(entities):
                values.append([Anchor(e) for e in ids(anchors, entities)])
            case UniverseStep(count):
                values.append([Universe()] * count)
            case ProjectStep(operands, slots):
                pairs = zip(take(operands), ids(relations, slots), strict=True)
                values.append([Project(operand, r) for operand, r in pairs])
            case IntersectStep(operand_lists):
                columns = zip(*map(take, operand_lists), strict=True)
                values.append([And(operands) for operands in columns])
            case NegateStep(operands):
                values.append([Not(operand) for operand in take(operands)])
    return [[take([branch]) for branch in branches] for branches in plan.roots]


def made_up_ids(shape, count, group):
    """Ids that differ in every row and slot, so that every mix-up is noticed."""
    anchors = [
        [1000 * group + 10 * row + k for k in range(shape.num_anchors)] for row in range(count)
    ]
    relations = [
        [5000 * group + 10 * row + k for k in range(shape.num_relations)] for row in range(count)
    ]
    return anchors, relations


@given(BATCHES, st.sampled_from(["dnf", "demorgan"]))
def test_a_plan_computes_every_branch_of_every_query(batch, union):
    plan = plan_shapes(batch, union=union, cap=10_000)
    ids = [made_up_ids(shape, count, g) for g, (shape, count) in enumerate(batch)]
    results = run(plan, [a for a, _ in ids], [r for _, r in ids])
    for (shape, count), (anchors, relations), branches in zip(batch, ids, results, strict=True):
        templates = union_free_branches(shape.template, union, cap=10_000)
        assert len(branches) == len(templates)
        for template, rows in zip(templates, branches, strict=True):
            assert rows == [
                Shape(template).ground(anchors[row], relations[row]) for row in range(count)
            ]


def projection_depth(query):
    return fold(query, lambda node, below: max(below, default=0) + isinstance(node, Project))


@given(BATCHES)
def test_projections_of_one_depth_are_one_step(batch):
    plan = plan_shapes(batch, cap=10_000)
    deepest = max(projection_depth(b) for group in plan.groups for b in group.branches)
    assert sum(isinstance(step, ProjectStep) for step in plan.steps) == deepest


@given(BATCHES)
def test_equal_subtrees_of_a_group_are_computed_once(batch):
    plan = plan_shapes(batch, cap=10_000)
    distinct = sum(
        group.count * len({node for branch in group.branches for node in subtrees(branch)})
        for group in plan.groups
    )
    computed = 0
    for step in plan.steps:
        match step:
            case AnchorStep(slots):
                computed += sum(plan.groups[slot.group].count for slot in slots)
            case UniverseStep(count):
                computed += count
            case ProjectStep(rows, _) | NegateStep(rows):
                computed += sum(r.stop - r.start for r in rows)
            case IntersectStep(operand_lists):
                computed += sum(r.stop - r.start for r in operand_lists[0])
    assert computed == distinct


def taken_by(step):
    """The runs of rows that a step takes."""
    match step:
        case ProjectStep(rows, _) | NegateStep(rows):
            return list(rows)
        case IntersectStep(operand_lists):
            return [rows for operands in operand_lists for rows in operands]
    return []


def rows_of(run):
    return {(run.step, row) for row in range(run.start, run.stop)}


@given(BATCHES)
def test_outputs_are_cut_so_that_every_input_consists_of_whole_pieces(batch):
    plan = plan_shapes(batch, cap=10_000)
    runs = [run for step in plan.steps for run in taken_by(step)]
    # The roots of the whole batch are taken together, so that neighbours are one slice.
    runs += join_rows([root for branches in plan.roots for root in branches])
    for place, pieces in enumerate(plan.outputs):
        assert all(piece.step == place for piece in pieces)
        ends = [end for piece in pieces for end in (piece.start, piece.stop)]
        assert ends == sorted(ends)
        assert ends[:1] in ([], [0])
        assert ends[1:-1:2] == ends[2::2], "one begins where the one before ends"
        whole = set().union(*map(rows_of, pieces))
        wanted = [rows_of(run) for run in runs if run.step == place]
        assert set().union(*wanted) == whole, "every row is of use"
        for piece in pieces:
            assert all(rows_of(piece) <= rows or not rows_of(piece) & rows for rows in wanted)
        # There are no other cuts: at each one an input of some step begins or ends.
        cuts = {end for run in runs if run.step == place for end in (run.start, run.stop)}
        assert set(ends) <= cuts


@example([Rows(0, 0, 1), Rows(0, 2, 3)])
@given(st.lists(st.builds(Rows, st.integers(0, 1), st.integers(0, 2), st.integers(0, 3))))
def test_joined_rows_are_the_same_rows_in_fewer_slices(rows):
    rows = [run for run in rows if run.start <= run.stop]
    joined = join_rows(rows)

    def flat(runs):
        return [(run.step, row) for run in runs for row in range(run.start, run.stop)]

    assert flat(joined) == flat(rows)
    assert all(run.start < run.stop for run in joined)
    assert all(
        (left.step, left.stop) != (right.step, right.start) for left, right in pairwise(joined)
    )


def test_most_steps_take_one_slice_of_an_earlier_one():
    # A single slice is a view. More slices must be copied, in the forward and backward pass.
    for name in ("3p", "2i", "3i", "ip", "pi", "2in", "3in", "inp", "pin", "pni", "2u", "up"):
        plan = plan_shapes([(STRUCTURES[name], 4)])
        for step in plan.steps:
            wanted = len(step.operands) if isinstance(step, IntersectStep) else 1
            assert len(taken_by(step)) <= wanted, name
    plan = plan_shapes([(shape, 4) for shape in STRUCTURES.values()])
    assert sum(len(taken_by(step)) for step in plan.steps) <= 25, "unordered they would be 40"


def test_plans_in_words():
    whole = Project(Universe(), 0)
    shape = shape_of(And((whole, Not(Project(Anchor(0), 0)), Project(Anchor(0), 0))))
    assert describe(plan_shapes([(STRUCTURES["1p"], 1)])) == ["embed 1 entity", "project 1 set"]
    assert describe(plan_shapes([(shape, 1)])) == [
        "embed 2 entities",
        "embed the set of all entities",
        "project 3 sets",
        "complement 1 set",
        "intersect 3 sets",
    ]
    assert describe(plan_shapes([(shape, 2)]))[2:] == [
        "project 6 sets",
        "complement 2 sets",
        "intersect 3 sets, 2 times",
    ]
    several = [(STRUCTURES["2p"], 3), (STRUCTURES["2i"], 2)]
    assert describe(plan_shapes(several))[0] == "embed 7 entities"


def test_all_structures_share_three_projections():
    plan = plan_shapes([(shape, 5) for shape in STRUCTURES.values()])
    kinds = [type(step).__name__ for step in plan.steps]
    assert kinds.count("AnchorStep") == 1
    assert kinds.count("ProjectStep") == 3
    assert kinds.index("AnchorStep") == 0


def test_the_depth_of_a_projection_is_that_of_its_longest_path():
    long, short = STRUCTURES["2p"].template, STRUCTURES["1p"].template
    for uneven in (And((long, short)), And((short, long))):
        plan = plan_shapes([(shape_of(Project(uneven, 0)), 2), (STRUCTURES["3p"], 2)])
        assert sum(isinstance(step, ProjectStep) for step in plan.steps) == 3


def test_branches_of_a_union_are_separate_roots():
    plan = plan_shapes([(STRUCTURES["2u"], 2), (STRUCTURES["1p"], 1)])
    assert [len(branches) for branches in plan.roots] == [2, 1]
    plan = plan_shapes([(STRUCTURES["2u"], 2)], union="demorgan")
    assert [len(branches) for branches in plan.roots] == [1]


def test_intersections_of_equal_arity_are_one_step():
    plan = plan_shapes([(STRUCTURES["2i"], 2), (STRUCTURES["2in"], 2), (STRUCTURES["3i"], 2)])
    assert sum(isinstance(step, IntersectStep) for step in plan.steps) == 2


def test_plans_are_cached():
    assert plan_shapes([(STRUCTURES["3p"], 7)]) is plan_shapes(((STRUCTURES["3p"], 7),))


def test_a_path_of_any_length_is_planned():
    query = Anchor(0)
    for _ in range(10_000):
        query = Project(query, 0)
    assert len(plan_shapes([(shape_of(query), 1)]).steps) == 10_001


def test_too_many_branches_are_refused():
    union = Or((Project(Anchor(0), 0), Project(Anchor(0), 0)))
    shape = Shape(And((union, union, union)))
    with pytest.raises(QueryTooLargeError, match="8 union-free branches; at most 4"):
        plan_shapes([(shape, 1)], cap=4)
