"""Running plans: one product per depth, branches in order, unions by their best branch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from conekg.model.embed import best_over_branches, embed, embed_shape
from conekg.model.interface import Region
from conekg.query.plan import plan_shapes
from conekg.query.shape import STRUCTURES
from conekg.query.tree import Anchor, And, Or, Project
from small_models import VARIANTS, score_queries, small_model


def ids(*rows: list[int]) -> Tensor:
    return torch.tensor(rows)


def test_rows_come_group_by_group_and_branch_by_branch() -> None:
    model = small_model("gqe")
    plan = plan_shapes([(STRUCTURES["2u"], 2), (STRUCTURES["1p"], 1)])
    region = embed(model, plan, [ids([0, 1], [2, 3]), ids([4])], [ids([0, 1], [2, 3]), ids([5])])
    order = [(0, 0), (2, 2), (1, 1), (3, 3), (4, 5)]
    expected = torch.stack([model.entity[e] + model.relation[r] for e, r in order])
    torch.testing.assert_close(region[0], expected)


def test_queries_of_one_shape_are_embedded_from_their_ids() -> None:
    model = small_model("gqe")
    anchors, relations = np.array([[0, 1], [2, 3]]), np.array([[4, 5], [0, 1]])
    plan, region = embed_shape(model, STRUCTURES["2u"], anchors, relations)
    assert [(len(group.branches), group.count) for group in plan.groups] == [(2, 2)]
    order = [(0, 4), (2, 0), (1, 5), (3, 1)]
    expected = torch.stack([model.entity[e] + model.relation[r] for e, r in order])
    torch.testing.assert_close(region[0], expected)


def test_a_union_is_as_good_as_its_best_branch() -> None:
    model = small_model("cone")
    left, right = Project(Anchor(0), 1), Project(Anchor(3), 2)
    united, *apart = score_queries(model, [Or((left, right)), left, right])
    torch.testing.assert_close(united, torch.maximum(*apart))


def test_branches_are_reduced_group_by_group() -> None:
    plan = plan_shapes([(STRUCTURES["2u"], 2), (STRUCTURES["1p"], 1)])
    logits = torch.tensor([[1.0], [5.0], [3.0], [2.0], [9.0]])
    assert best_over_branches(plan, logits).tolist() == [[3.0], [5.0], [9.0]]
    plain = plan_shapes([(STRUCTURES["1p"], 5)])
    assert best_over_branches(plain, logits) is logits


def test_all_projections_of_a_depth_are_one_product() -> None:
    model = small_model("cone")
    calls: list[int] = []
    project = model.project_by_weights

    def counted(region: Region, relation: tuple[Tensor, ...]) -> Region:
        calls.append(len(relation[0]))
        return project(region, relation)

    model.project_by_weights = counted  # type: ignore[method-assign]
    shapes = [STRUCTURES[name] for name in ("1p", "2p", "3p", "2i", "pi", "ip", "inp")]
    plan = plan_shapes([(shape, 3) for shape in shapes])
    anchors = [torch.zeros(3, shape.num_anchors, dtype=torch.long) for shape in shapes]
    relations = [torch.zeros(3, shape.num_relations, dtype=torch.long) for shape in shapes]
    embed(model, plan, anchors, relations)
    # First hops: 1 + 1 + 1 + 2 + 2 + 2 + 2; second: 2p 3p pi ip inp; third: 3p.
    assert calls == [3 * 11, 3 * 5, 3 * 1]


def test_intersections_of_a_depth_run_their_networks_once() -> None:
    model = small_model("cone")
    calls: list[list[int]] = []
    intersect = model.intersect_each

    def counted(operands: Sequence[Region]) -> list[Region]:
        calls.append([len(axis) for axis, _ in operands])
        return intersect(operands)

    model.intersect_each = counted  # type: ignore[method-assign]
    shapes = [STRUCTURES[name] for name in ("2i", "3i", "3in", "pin", "ip")]
    plan = plan_shapes([(shape, 2) for shape in shapes])
    anchors = [torch.arange(2 * s.num_anchors).reshape(2, -1) for s in shapes]
    relations = [torch.zeros(2, s.num_relations, dtype=torch.long) for s in shapes]
    together = embed(model, plan, anchors, relations)
    # 2i, ip with 3i, 3in; then pin, whose first operand is two hops deep.
    assert calls == [[2, 3], [2]]
    model.intersect_each = lambda operands: [intersect([o])[0] for o in operands]  # type: ignore[method-assign]
    for ours, theirs in zip(together, embed(model, plan, anchors, relations), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_plans_use_the_intersection_of_a_subclass(name: str) -> None:
    """Whether it is new, comes from a mixin, or calls the parent's."""
    model = small_model(name)
    kind = type(model)
    mixin = type("Mixin", (), {"intersect": lambda self, operands: tuple(p[1] for p in operands)})
    first = {"intersect": lambda self, operands: tuple(part[0] for part in operands)}
    halved = {
        "intersect": lambda self, operands: tuple(p / 2 for p in kind.intersect(self, operands))
    }
    anchors, relations = ids([1, 2], [3, 4], [0, 5]), ids([0, 1], [2, 3], [5, 4])
    plan = plan_shapes([(STRUCTURES["2i"], 3)])
    operands = [model.project(model.anchor(anchors[:, i]), relations[:, i]) for i in (0, 1)]
    usual = model.intersect(tuple(torch.stack(part) for part in zip(*operands, strict=True)))
    for bases, changes, expected in (
        ((kind,), first, operands[0]),
        ((mixin, kind), {}, operands[1]),
        ((kind,), halved, tuple(part / 2 for part in usual)),
    ):
        model.__class__ = type("Derived", bases, changes)
        region = embed(model, plan, [anchors], [relations])
        for ours, theirs in zip(region, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_a_batch_may_be_empty() -> None:
    model = small_model("cone")
    assert embed(model, plan_shapes([]), [], []) == ()
    none = torch.zeros(0, 2, dtype=torch.long)
    plan = plan_shapes([(STRUCTURES["2i"], 0), (STRUCTURES["1p"], 2), (STRUCTURES["2in"], 0)])
    region = embed(model, plan, [none, ids([1], [2]), none], [none, ids([0], [1]), none])
    expected = model.project(model.anchor(torch.tensor([1, 2])), torch.tensor([0, 1]))
    for ours, theirs in zip(region, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    region = embed(model, plan_shapes([(STRUCTURES["2in"], 0)]), [none], [none])
    assert [tuple(part.shape) for part in region] == [(0, model.dim)] * 2


def test_shared_parts_are_embedded_once() -> None:
    model = small_model("box")
    seen: list[int] = []
    anchor = model.anchor

    def counted(entity_ids: Tensor) -> Region:
        seen.append(len(entity_ids))
        return anchor(entity_ids)

    query = And((Project(Anchor(1), 0), Project(Anchor(2), 0)))
    plan = plan_shapes([(STRUCTURES["2i"], 1)])
    region = embed(model, plan, [ids([1, 2])], [ids([0, 0])], anchor=counted)
    assert seen == [2]
    torch.testing.assert_close(model.logits_of_all(region), score_queries(model, [query]))
