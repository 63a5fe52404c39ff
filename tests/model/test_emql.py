"""EmQL: sketches, looking facts up, and its four losses, against plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.model.catalog import build_model
from conekg.model.emql import Emql
from conekg.model.facts import FactIndex
from small_models import (
    NUM_ENTITIES,
    NUM_RELATIONS,
    SMALL_FACTS,
    SMALL_OPTIONS,
    small_model,
)

FACTS = [tuple(map(int, fact)) for fact in SMALL_FACTS]


def emql(**options: object) -> Emql:
    model = small_model("emql", **options)
    assert isinstance(model, Emql)
    return model


def objects(
    subject: int, relation: int, facts: Sequence[tuple[int, ...]] = tuple(FACTS)
) -> set[int]:
    return {o for s, r, o in facts if (s, r) == (subject, relation)}


@given(
    members=st.dictionaries(st.integers(0, NUM_ENTITIES - 1), st.floats(0.1, 1.0), min_size=1),
    seed=st.integers(0, 3),
)
def test_a_sketch_never_underestimates(members: dict[int, float], seed: int) -> None:
    model = small_model("emql", seed)
    assert isinstance(model, Emql)
    ids, weights = (
        torch.tensor([list(members)]),
        torch.tensor([list(members.values())], dtype=torch.float64),
    )
    sketch = model.sketch(ids, weights)
    all_ids = torch.arange(NUM_ENTITIES)[None]
    found = model.weight_in(sketch, all_ids)[0].tolist()
    # A cell holds the weight of all that fall into it; an entity's estimate is its best cell.
    for entity in range(NUM_ENTITIES):
        cells = [
            sum(w for m, w in members.items() if model.cells[m, j] == model.cells[entity, j])
            for j in range(6)
        ]
        assert found[entity] == pytest.approx(min(cells))
        assert found[entity] >= members.get(entity, 0.0) - 1e-12


def test_an_anchor_is_a_set_of_one() -> None:
    model = emql()
    centroid, sketch = model.anchor(torch.tensor([3, 5]))
    torch.testing.assert_close(centroid, model.entity[[3, 5]])
    member = model.is_member(sketch, torch.arange(NUM_ENTITIES).repeat(2, 1))
    assert member.nonzero().tolist() == [[0, 3], [1, 5]]


@pytest.mark.parametrize("top_k", [1, 4, 40])
def test_a_member_weighs_at_least_half_of_an_equal_share(top_k: int) -> None:
    """k equal members weigh 1/k each; an entity below half of that is no member."""
    model = emql(top_k=top_k)
    shares = [1.0, 0.51, 0.5, 0.49, 0.25, 0.0]
    weights = torch.tensor([[share / top_k for share in shares]], dtype=torch.float64)
    ids = torch.arange(len(shares))[None]
    sketch = model.sketch(ids, weights)
    # No two of the entities share all cells.
    torch.testing.assert_close(model.weight_in(sketch, ids), weights)
    assert model.is_member(sketch, ids)[0].tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize(("subject", "relation"), [(0, 0), (1, 2)])
def test_following_a_relation_is_the_formula(subject: int, relation: int) -> None:
    model = emql()
    region = model.anchor(torch.tensor([subject]))
    centroid, sketch = model.project(region, torch.tensor([relation]))
    weights = []
    for s, r, _ in FACTS:
        key = float(region[0][0] @ model.entity[s] + model.relation[relation] @ model.relation[r])
        # Facts about other subjects miss the sketch of the one subject, so they get no weight.
        weights.append(math.exp(key / math.sqrt(3 * 5)) if s == subject else 0.0)
    expected = sum(
        w / sum(weights) * model.entity[o] for w, (_, _, o) in zip(weights, FACTS, strict=True)
    )
    torch.testing.assert_close(centroid[0], expected)
    members = model.is_member(sketch, torch.arange(NUM_ENTITIES)[None])[0].nonzero().flatten()
    assert set(members.tolist()) == {o for s, _, o in FACTS if s == subject}
    # Where a subject has facts of two relations, their weights differ.
    assert len({w for w in weights if w}) == (2 if subject == 1 else 1)


def test_facts_that_all_miss_the_sketch_weigh_by_their_scores() -> None:
    """In float32 a score less the penalty for a miss would be rounded to sixteenths."""
    exact = emql()
    model = emql().float()
    centroid, own_sketch = exact.anchor(torch.tensor([4]))
    nobody = torch.zeros_like(own_sketch)
    found, _ = model.project((centroid.float(), nobody.float()), torch.tensor([1]))
    keys = [
        float(centroid[0] @ exact.entity[s] + exact.relation[1] @ exact.relation[r])
        for s, r, _ in FACTS
    ]
    weights = [math.exp(key / math.sqrt(3 * 5)) for key in keys]
    expected = sum(
        w / sum(weights) * exact.entity[o] for w, (_, _, o) in zip(weights, FACTS, strict=True)
    )
    torch.testing.assert_close(found[0].double(), expected, rtol=1e-5, atol=1e-6)


def test_only_the_best_facts_are_kept() -> None:
    model = emql(top_k=3)
    # Make fact keys with relation 2 stand out, whatever the subject.
    model.relation.zero_()
    model.relation[2] = 10.0
    region = model.anchor(torch.tensor([1]))
    best = model._best_facts(region[0], model.relation[[2]])
    subjects, relations, _ = model.facts.columns(best)
    assert best.shape == (1, 3)
    assert relations[0, :2].tolist() == [2, 2]
    assert {int(s) for s in subjects[0, :2]} == {1, 2}


def test_intersection_and_union_combine_sketches() -> None:
    model = emql()
    left = model.sketch(torch.tensor([[1, 2]]), torch.ones(1, 2).double())
    right = model.sketch(torch.tensor([[2, 3]]), torch.ones(1, 2).double())
    centroids = torch.stack([model.entity[[1]], model.entity[[3]]])
    both, either = (
        verb((centroids, torch.stack([left, right]))) for verb in (model.intersect, model.unite)
    )
    torch.testing.assert_close(both[0], model.entity[[1]] + model.entity[[3]])
    torch.testing.assert_close(either[0], both[0])
    all_ids = torch.arange(NUM_ENTITIES)[None]
    assert model.is_member(both[1], all_ids)[0].nonzero().flatten().tolist() == [2]
    assert model.is_member(either[1], all_ids)[0].nonzero().flatten().tolist() == [1, 2, 3]


def test_decoding_with_the_sketch_keeps_to_the_facts() -> None:
    faithful, free = emql(decode_with_sketch=True), emql()
    region = free.project(free.anchor(torch.tensor([0])), torch.tensor([0]))
    guesses, known = free.logits_of_all(region)[0], faithful.logits_of_all(region)[0]
    reachable = {o for s, _, o in FACTS if s == 0}
    for entity in range(NUM_ENTITIES):
        expected = float(guesses[entity]) - (0 if entity in reachable else 1e6)
        assert float(known[entity]) == pytest.approx(expected)
    some = torch.tensor([[2, 7]])
    torch.testing.assert_close(faithful.logits(region, some)[0], known[some[0]])
    torch.testing.assert_close(guesses, (free.entity @ region[0][0]))


def test_entities_outside_the_sketch_keep_their_order() -> None:
    """In float32 a score less the penalty would be rounded to sixteenths, and most would tie."""
    model = emql(decode_with_sketch=True).float()
    centroid, own_sketch = model.anchor(torch.tensor([4]))
    region = centroid, torch.zeros_like(own_sketch)
    ids = torch.arange(NUM_ENTITIES)[None]
    scores = -(centroid @ model.entity.T).double()
    for distances in (model.distance(region, ids), model.distance_to_all(region)):
        assert len(distances.unique()) == NUM_ENTITIES
        torch.testing.assert_close(distances - 1e6, scores, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("method", ["is_member", "weight_in"])
def test_a_subclass_with_its_own_members_ranks_by_them(method: str) -> None:
    """Ranking all entities and scoring given ones agree: here every entity is a member."""
    model = emql(decode_with_sketch=True)
    region = model.project(model.anchor(torch.tensor([0, 1])), torch.tensor([0, 2]))
    ids = torch.arange(NUM_ENTITIES).expand(2, -1)
    own = {method: lambda self, sketch, entity_ids: torch.ones(entity_ids.shape) > 0}
    assert (model.logits_of_all(region) < -1e5).any()
    model.__class__ = type("Derived", (Emql,), own)
    assert (model.logits_of_all(region) > -1e5).all()
    torch.testing.assert_close(model.logits_of_all(region), model.logits(region, ids))


def test_the_loss_is_the_sum_of_four_cross_entropies() -> None:
    # Three sets that overlap without being equal, beside those of the small graph.
    facts = [*FACTS, (5, 4, 2), (5, 4, 3), (7, 2, 1), (7, 2, 3), (7, 2, 6)]
    model = build_model(
        "emql", NUM_ENTITIES, NUM_RELATIONS, SMALL_OPTIONS["emql"], 0, facts=np.array(facts)
    )
    model.double().requires_grad_(False)
    assert isinstance(model, Emql)
    rows = 40
    loss = float(model.training_loss(rows, torch.Generator().manual_seed(5)))
    generator = torch.Generator().manual_seed(5)
    subjects, relations = model.facts.draw_pairs(rows, generator)
    left = [objects(int(s), int(r), facts) for s, r in zip(subjects, relations, strict=True)]
    table = model.facts.members(subjects, relations)
    others = model.facts.draw_overlapping(table, generator)
    right = [objects(int(s), int(r), facts) for s, r in zip(*others, strict=True)]
    assert sum(a != b for a, b in zip(left, right, strict=True)) > 5

    def mean(members: set[int]) -> torch.Tensor:
        return model.entity[sorted(members)].mean(dim=0)

    def surprise(centroid: torch.Tensor, members: set[int]) -> float:
        logits = torch.log_softmax(model.entity @ centroid, dim=0)
        return -float(logits[sorted(members)].mean())

    expected = 0.0
    for row in range(rows):
        a, b = left[row], right[row]
        assert a & b
        followed, _ = model.project(model.anchor(subjects[row : row + 1]), relations[row : row + 1])
        expected += surprise(mean(a), a) + surprise(followed[0], a)
        expected += surprise(mean(a) + mean(b), a & b) + surprise(mean(a) + mean(b), a | b)
    assert loss == pytest.approx(expected / rows)


def test_training_finds_the_facts() -> None:
    model = build_model(
        "emql",
        NUM_ENTITIES,
        6,
        {"dim": 12, "top_k": 16, "sketch_width": 64, "sketch_depth": 4},
        facts=SMALL_FACTS,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(0)
    for _ in range(80):
        optimizer.zero_grad()
        model.training_loss(16, generator).backward()
        optimizer.step()
    with torch.no_grad():
        for subject, relation, _ in FACTS:
            region = model.project(model.anchor(torch.tensor([subject])), torch.tensor([relation]))
            wanted = objects(subject, relation)
            best = model.logits_of_all(region)[0].topk(len(wanted))[1].tolist()
            assert set(best) == wanted


def test_the_facts_are_not_part_of_a_checkpoint_but_the_hashes_are() -> None:
    assert set(emql().state_dict()) == {"entity", "relation", "cells"}


def test_the_fact_index_merges_duplicates_and_groups_pairs() -> None:
    index = FactIndex(torch.tensor(FACTS + FACTS[:3]), NUM_ENTITIES, 6)
    assert index.num_facts == len(FACTS)
    subjects = torch.tensor([s for s, _, _ in FACTS])
    relations = torch.tensor([r for _, r, _ in FACTS])
    table = index.members(subjects, relations)
    for row, (s, r, _) in enumerate(FACTS):
        assert set(table[row].nonzero().flatten().tolist()) == objects(s, r)


@given(seed=st.integers(0, 1000))
def test_drawn_pairs_exist_and_overlap(seed: int) -> None:
    index = FactIndex(torch.tensor(FACTS), NUM_ENTITIES, 6)
    generator = torch.Generator().manual_seed(seed)
    pairs = index.draw_pairs(20, generator)
    members = index.members(*pairs)
    others = index.members(*index.draw_overlapping(members, generator))
    assert (members.sum(dim=1) > 0).all()
    assert (members & others).any(dim=1).all()


def test_pairs_that_overlap_are_drawn_uniformly() -> None:
    """First a member of the set, then a fact about that member, each uniformly."""
    facts = [(0, 0, 5), (1, 0, 5), (2, 1, 5), (3, 2, 6), (3, 2, 5), (4, 0, 7)]
    index = FactIndex(torch.tensor(facts), NUM_ENTITIES, 6)
    rows = 6000
    members = torch.zeros(rows, NUM_ENTITIES, dtype=torch.bool)
    members[:, [5, 6]] = True
    pairs = index.draw_overlapping(members, torch.Generator().manual_seed(0))
    drawn = Counter(zip(*(ids.tolist() for ids in pairs), strict=True))
    # Four facts are about 5, one about 6: (3, 2) leads to both.
    expected = {(0, 0): 1 / 8, (1, 0): 1 / 8, (2, 1): 1 / 8, (3, 2): 1 / 2 + 1 / 8}
    assert drawn.keys() == expected.keys()
    for pair, share in expected.items():
        assert drawn[pair] / rows == pytest.approx(share, abs=0.03), pair
