"""The index of facts, against plain sets of triples."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.model.facts import FactIndex

NUM_ENTITIES, NUM_RELATIONS = 7, 3
Fact = tuple[int, int, int]

facts = st.lists(
    st.tuples(
        st.integers(0, NUM_ENTITIES - 1),
        st.integers(0, NUM_RELATIONS - 1),
        st.integers(0, NUM_ENTITIES - 1),
    ),
    min_size=1,
    max_size=30,
)


def index_of(triples: list[Fact]) -> FactIndex:
    return FactIndex(torch.tensor(triples, dtype=torch.int32), NUM_ENTITIES, NUM_RELATIONS)


def sets_of(triples: list[Fact]) -> dict[tuple[int, int], set[int]]:
    sets: dict[tuple[int, int], set[int]] = {}
    for subject, relation, member in triples:
        sets.setdefault((subject, relation), set()).add(member)
    return sets


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(5)


@given(facts)
def test_duplicate_facts_are_merged(triples: list[Fact]) -> None:
    index = index_of(triples + triples[:2])
    columns = index.columns(torch.arange(index.num_facts))
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == sorted(set(triples))
    assert index.state_dict() == {}


@given(facts, st.randoms(use_true_random=False))
def test_members_are_the_objects_of_each_pair(triples: list[Fact], random) -> None:
    sets = sets_of(triples)
    pairs = random.choices(list(sets), k=9)
    subjects, relations = (torch.tensor(column) for column in zip(*pairs, strict=True))
    table = index_of(triples).members(subjects, relations)
    assert table.shape == (9, NUM_ENTITIES)
    assert [set(row.nonzero().flatten().tolist()) for row in table] == [sets[p] for p in pairs]


def test_every_pair_is_drawn_as_often_as_any_other() -> None:
    """Including a pair with far more members, and with gaps between the subjects' ids."""
    triples = [(0, 1, member) for member in range(NUM_ENTITIES)] + [(3, 0, 2), (3, 2, 2), (6, 2, 5)]
    subjects, relations = index_of(triples).draw_pairs(8_000, seeded())
    counts = Counter(zip(subjects.tolist(), relations.tolist(), strict=True))
    assert counts.keys() == sets_of(triples).keys()
    assert [abs(count - 2_000) < 200 for count in counts.values()] == [True] * 4
    again = index_of(triples).draw_pairs(8_000, seeded())
    assert torch.equal(again[0], subjects)
    assert torch.equal(again[1], relations)


@given(facts, st.randoms(use_true_random=False))
def test_overlapping_pairs_share_a_member(triples: list[Fact], random) -> None:
    sets, index = sets_of(triples), index_of(triples)
    pairs = random.choices(list(sets), k=9)
    subjects, relations = (torch.tensor(column) for column in zip(*pairs, strict=True))
    others = index.draw_overlapping(index.members(subjects, relations), seeded())
    for pair, *other in zip(pairs, *(column.tolist() for column in others), strict=True):
        assert sets[pair] & sets[tuple(other)]


def test_every_pair_of_a_shared_member_can_be_drawn() -> None:
    triples = [(0, 0, 1), (0, 0, 2), (3, 1, 1), (4, 2, 2), (5, 0, 6)]
    index = index_of(triples)
    first = torch.zeros(8_000, dtype=torch.int64)
    subjects, relations = index.draw_overlapping(index.members(first, first), seeded())
    counts = Counter(zip(subjects.tolist(), relations.tolist(), strict=True))
    assert counts == pytest.approx({(0, 0): 4_000, (3, 1): 2_000, (4, 2): 2_000}, abs=250)
