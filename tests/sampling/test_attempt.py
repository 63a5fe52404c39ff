"""Each attempt is drawn again by its number and judged with plain sets."""

from __future__ import annotations

from threading import Barrier

import numpy as np
import pytest

from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, with_inverses
from conekg.query.shape import STRUCTURES, Shape, shape_of
from conekg.query.tree import Anchor, Or, Project, Query, Universe, has_negation
from conekg.sampling import attempt
from conekg.sampling.attempt import (
    ACCEPTED,
    DUPLICATE,
    NO_ANSWER,
    NO_HARD_ANSWER,
    NO_RETRACTED_ANSWER,
    OVER_CAP,
    attempts,
)
from conekg.sampling.ground import (
    GROUNDED,
    TWIN_BRANCHES,
    compile_grounding,
    draw_query,
    possible_starts,
    random_below,
    random_state,
)
from conekg.symbolic.memory import graph_arrays
from oracle import Oracle

KEY = np.uint64(11)
TRIES = 40
SIZE = 250
"""Attempts per piece."""
FIRST = 1000
MANY_ANSWERS = shape_of(Or((Project(Universe(), 0), Project(Anchor(0), 0))))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_ATTEMPTS_PER_PIECE", SIZE)


def drawn(graph: KnowledgeGraph, split: Split, shape: Shape, number: int) -> tuple[int, Query]:
    """The outcome of a numbered draw, and its query."""
    adjacency = graph.adjacency(split)
    program = compile_grounding(shape)
    nodes = np.empty((program.num_nodes, 2), dtype=np.int32)
    anchors = np.zeros(shape.num_anchors, dtype=np.int32)
    relations = np.zeros(shape.num_relations, dtype=np.int32)
    state = np.array([random_state(KEY, number)], dtype=np.uint64)
    targets = possible_starts(adjacency)
    target = targets[random_below(state, len(targets))]
    outcome = draw_query(
        graph_arrays(adjacency), program, target, state, TRIES, nodes, anchors, relations
    )
    return outcome, shape.ground(anchors, relations)


def judged(known: set[int], answers: set[int], query: Query, split: Split, cap: int | None) -> int:
    """The rules of the BetaE release, in their order."""
    if not answers:
        return NO_ANSWER
    if not answers - known:
        return NO_HARD_ANSWER
    if split != "train" and has_negation(query) and not known - answers:
        return NO_RETRACTED_ANSWER
    if cap is not None and (len(answers - known) > cap or len(known - answers) > cap):
        return OVER_CAP
    return ACCEPTED


def oracles(graph: KnowledgeGraph, split: Split) -> tuple[Oracle, Oracle]:
    place = SPLITS.index(split)
    small, full = (
        [tuple(edge) for part in SPLITS[:count] for edge in graph.edges(part).tolist()]
        for count in (place, place + 1)
    )
    return Oracle(small, graph.num_entities), Oracle(full, graph.num_entities)


Found = tuple[Query, list[int], list[int]]
"""A query with its easy and its hard answers."""


def expected(
    graph: KnowledgeGraph, split: Split, shape: Shape, cap: int | None
) -> tuple[list[int], list[Found | None]]:
    """The outcome of every attempt, and the query and answers of each that is accepted."""
    small, full = oracles(graph, split)
    outcomes: list[int] = []
    found: list[Found | None] = []
    for number in range(FIRST, FIRST + 2 * SIZE):
        outcome, query = drawn(graph, split, shape, number)
        known = set() if split == "train" else small.answer(query)
        answers = full.answer(query)
        if outcome == GROUNDED:
            outcome = judged(known, answers, query, split, cap)
        outcomes.append(outcome)
        accepted = outcome == ACCEPTED
        found.append((query, sorted(known), sorted(answers - known)) if accepted else None)
    return outcomes, found


def check(
    graph: KnowledgeGraph, split: Split, shape: Shape, cap: int | None, *, distinct: bool
) -> set[int]:
    """Compare two pieces of attempts with the expected outcomes; return those that occurred."""
    outcomes, found = expected(graph, split, shape, cap)
    seen: set[Query] = set()
    for place, entry in enumerate(found):
        if distinct and entry is not None:
            if entry[0] in seen:
                outcomes[place], found[place] = DUPLICATE, None
            seen.add(entry[0])
    pieces = attempts(
        graph,
        split,
        shape,
        key=KEY,
        cap=cap,
        tries=TRIES,
        distinct=distinct,
        first=FIRST,
        workers=1,
    )
    for start, piece in zip((0, SIZE), pieces, strict=False):
        span = slice(start, start + SIZE)
        assert piece.outcomes.tolist() == outcomes[span]
        accepted = piece.accepted
        assert [
            (accepted.query(row), accepted.easy[row].tolist(), accepted.hard[row].tolist())
            for row in range(len(accepted))
        ] == [entry for entry in found[span] if entry is not None]
    return set(outcomes)


CASES: list[tuple[Split, Shape, int | None, bool, set[int]]] = [
    ("train", STRUCTURES["2i"], 1, True, {OVER_CAP, TWIN_BRANCHES, DUPLICATE}),
    ("train", STRUCTURES["2in"], 1, False, {OVER_CAP, NO_ANSWER}),
    ("valid", STRUCTURES["2u"], 3, False, {NO_HARD_ANSWER}),
    ("test", STRUCTURES["pin"], 1, True, {NO_HARD_ANSWER, NO_RETRACTED_ANSWER, OVER_CAP}),
    ("test", STRUCTURES["pni"], None, False, {NO_RETRACTED_ANSWER}),
    # So many answers that the buffers of the hard and of the easy ones have to grow.
    ("train", MANY_ANSWERS, None, False, set()),
    ("test", MANY_ANSWERS, None, False, set()),
]


@pytest.mark.parametrize(("split", "shape", "cap", "distinct", "rejected"), CASES)
def test_every_attempt_has_the_outcome_that_plain_sets_give(
    random_graph: KnowledgeGraph,
    split: Split,
    shape: Shape,
    cap: int | None,
    distinct: bool,
    rejected: set[int],
) -> None:
    outcomes = check(random_graph, split, shape, cap, distinct=distinct)
    assert {ACCEPTED, *rejected} <= outcomes


def test_walks_start_from_every_entity_of_the_larger_graph(
    random_graph: KnowledgeGraph,
) -> None:
    edges = {split: random_graph.edges(split) for split in SPLITS}
    forward = edges["train"][edges["train"][:, 1] % 2 == 0][:20] // np.array([1, 2, 1])
    edges["train"] = with_inverses(forward.astype(np.int32))
    graph = KnowledgeGraph("few facts", random_graph.vocabulary, edges)
    few, more = (len(possible_starts(graph.adjacency(split))) for split in ("train", "valid"))
    assert few < more
    assert ACCEPTED in check(graph, "valid", STRUCTURES["2p"], None, distinct=False)


def test_a_graph_without_edges_gives_no_attempts(film_graph: KnowledgeGraph) -> None:
    none = np.zeros((0, 3), dtype=np.int32)
    empty = KnowledgeGraph("empty", film_graph.vocabulary, dict.fromkeys(SPLITS, none))
    shape = STRUCTURES["2p"]
    pieces = attempts(empty, "train", shape, key=KEY, cap=None, tries=TRIES, distinct=False)
    assert next(pieces, None) is None


def test_the_cap_is_the_last_reason_to_reject(
    random_graph: KnowledgeGraph,
) -> None:
    outcomes = [
        next(
            attempts(
                random_graph,
                "test",
                STRUCTURES["2in"],
                key=KEY,
                cap=cap,
                tries=TRIES,
                distinct=False,
                workers=1,
            )
        ).outcomes
        for cap in (None, 0)
    ]
    assert np.array_equal(np.where(outcomes[0] == ACCEPTED, OVER_CAP, outcomes[0]), outcomes[1])
    assert ACCEPTED in outcomes[0]


def test_workers_at_once_do_not_share_memory(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_at_work = Barrier(2)
    seen = []

    def run_together(graphs, works, *rest):
        if len(seen) < 2:
            seen.append([array for work in works for array in work])
            both_at_work.wait(timeout=60)
        return run_attempts(graphs, works, *rest)

    run_attempts = attempt._run_attempts
    monkeypatch.setattr(attempt, "_run_attempts", run_together)
    pieces = attempts(
        random_graph,
        "train",
        STRUCTURES["2p"],
        key=KEY,
        cap=None,
        tries=TRIES,
        distinct=True,
        workers=2,
    )
    next(pieces)
    pieces.close()
    one, other = seen
    for mine, others in zip(one, other, strict=True):
        assert not np.shares_memory(mine, others)
