from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.adjacency import Adjacency, build_adjacency
from conekg.query.shape import STRUCTURES, shape_of, slots_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from conekg.symbolic.bitmaps import SLACK
from conekg.symbolic.engine import answer, answer_batch
from conekg.symbolic.kernels import answer_rows, evaluate
from conekg.symbolic.memory import Workspace, graph_arrays, make_workspace
from conekg.symbolic.program import compile_shape
from oracle import Oracle
from strategies import queries


def assert_clean(work: Workspace) -> None:
    """Nothing is left in the workspace that could change the next query's answers."""
    assert not work.words.any()
    assert not work.summary.any()
    assert (work.steps == 1).all()
    assert sorted(work.stack[:, 0]) == list(range(len(work.stack)))


@cache
def graph_of_every_size(num_entities: int) -> tuple[Adjacency, Oracle]:
    """Entities 0 to 7 have from no to hundreds of tails, the others about two; with inverses."""
    generator = np.random.default_rng(num_entities)
    sizes = [0, 1, 3, 20, 24, 60, 150, num_entities // 2]
    hubs = np.repeat(np.arange(8), sizes)
    others = generator.integers(0, num_entities, 2 * num_entities)
    heads = np.concatenate([hubs, others])
    relations = np.repeat([0, 2], [len(hubs), len(others)])
    tails = generator.integers(0, num_entities, len(heads))
    # Make some tails of the hubs coincide, even among many entities.
    tails[: len(hubs)] //= generator.choice([1, num_entities // 80], len(hubs))
    edges = np.stack([heads, relations, tails], axis=1)
    edges = np.concatenate([edges, edges[:, [2, 1, 0]] + [0, 1, 0]]).astype(np.int32)
    return build_adjacency(edges, num_entities, 4), Oracle(edges.tolist(), num_entities)


def assert_answered(adjacency: Adjacency, oracle: Oracle, query: Query) -> None:
    """The query is answered alone, again in the same workspace, which is left clean, and as a
    batch."""
    program = compile_shape(shape_of(query))
    work = make_workspace(adjacency.num_entities, program.stack_size)
    anchors, relations = (np.array(ids, dtype=np.int32) for ids in slots_of(query))
    expected = sorted(oracle.answer(query))
    for _ in range(2):
        graph = graph_arrays(adjacency)
        found = evaluate(graph, work, program.instructions, anchors, relations)
        assert found.tolist() == expected
        assert_clean(work)
    assert answer(adjacency, query).tolist() == expected


@pytest.mark.parametrize("num_entities", [180, 6_000])
def test_every_pair_of_sets_combines_as_the_oracle_says(num_entities: int) -> None:
    adjacency, oracle = graph_of_every_size(num_entities)
    hubs = [Project(Anchor(hub), 0) for hub in range(8)]
    most = Project(Universe(), 2)
    few = Project(Or((hubs[2], Anchor(9))), 2)
    for single in (Anchor(5), few, most):
        assert_answered(adjacency, oracle, Not(single))
    for left, right in product([*hubs, Universe(), most, few], repeat=2):
        for query in (And((left, right)), Or((left, right)), And((left, Not(right)))):
            assert_answered(adjacency, oracle, query)


@pytest.mark.parametrize("num_entities", [180, 6_000])
@given(query=queries(8, 4, max_leaves=5))
def test_sets_of_every_form_combine_as_the_oracle_says(num_entities: int, query: Query) -> None:
    # With few entities nearly all sets are bitmaps, with many most are lists or the tails of pairs.
    assert_answered(*graph_of_every_size(num_entities), query)


def test_a_workspace_is_clean_after_every_query() -> None:
    generator = np.random.default_rng(0)
    edges = generator.integers(0, (500, 4, 500), size=(3_000, 3)).astype(np.int32)
    adjacency = build_adjacency(edges, 500, 4)
    graph = graph_arrays(adjacency)
    for name in ("3p", "pin", "pni", "up", "up-DM", "3in"):
        shape = STRUCTURES[name]
        work = make_workspace(500, compile_shape(shape).stack_size)
        for _ in range(50):
            anchors = generator.integers(0, 500, shape.num_anchors).astype(np.int32)
            relations = generator.integers(0, 4, shape.num_relations).astype(np.int32)
            found = evaluate(graph, work, compile_shape(shape).instructions, anchors, relations)
            assert found.tolist() == answer(adjacency, shape.ground(anchors, relations)).tolist()
            assert_clean(work)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_buffer_has_room_for_any_answers_of_the_last_query(rows: int) -> None:
    # Compiled code would write past its end without an error.
    adjacency, oracle = graph_of_every_size(180)
    program = compile_shape(STRUCTURES["1p"])
    offsets, buffer = answer_rows(
        graph_arrays(adjacency),
        make_workspace(180, program.stack_size),
        program.instructions,
        np.full((rows, 1), 7, dtype=np.int32),
        np.zeros((rows, 1), dtype=np.int32),
        np.empty(0, dtype=np.int32),
    )
    assert buffer[: offsets[-1]].tolist() == rows * sorted(oracle.answer(Project(Anchor(7), 0)))
    assert len(buffer) >= offsets[-2] + 180 + SLACK


@pytest.mark.parametrize("name", ["pni", "pi", "inp"])
def test_a_batch_answers_as_the_oracle_does(name: str) -> None:
    # Bits that one query left in the workspace would appear among the answers of the next.
    generator = np.random.default_rng(1)
    edges = generator.integers(0, (500, 4, 500), size=(3_000, 3)).astype(np.int32)
    adjacency, oracle = build_adjacency(edges, 500, 4), Oracle(edges.tolist(), 500)
    shape = STRUCTURES[name]
    anchors = generator.integers(0, 500, (200, shape.num_anchors)).astype(np.int32)
    relations = generator.integers(0, 4, (200, shape.num_relations)).astype(np.int32)
    found = answer_batch(adjacency, shape, anchors, relations, workers=1)
    assert len(found.values) > 0
    for row in range(200):
        query = shape.ground(anchors[row].tolist(), relations[row].tolist())
        assert found[row].tolist() == sorted(oracle.answer(query))


@pytest.mark.parametrize("size", [3, 40, 900])
@given(seed=st.integers(0, 2**20))
def test_sets_of_every_proportion_combine_as_the_oracle_says(size: int, seed: int) -> None:
    # Sets of 0 to 900 entities reach the merge, the search and the bitmap.
    generator = np.random.default_rng(seed)
    heads = np.repeat([0, 1], [size, generator.integers(0, 900)])
    edges = np.stack([heads, heads * 0, generator.integers(0, 1_000, len(heads))], axis=1)
    back = edges[:, [2, 1, 0]] + [0, 1, 0]
    edges = np.concatenate([edges, back]).astype(np.int32)
    adjacency, oracle = build_adjacency(edges, 1_000, 2), Oracle(edges.tolist(), 1_000)
    left, right = (Project(Anchor(head), 0) for head in (0, 1))
    for query in (
        And((left, right)),
        Or((left, right)),
        And((left, Not(right))),
        And((Not(left), right)),
        Or((left, Not(right))),
        Not(Or((left, right))),
        Project(And((left, right)), 1),
        Project(Or((left, Anchor(5))), 1),
        Project(Not(left), 1),
        Project(Universe(), 0),
        And((Project(left, 1), Project(right, 1))),
        And((Project(Or((left, Anchor(5))), 1), Not(Project(right, 1)))),
        Or((Project(Or((left, right)), 1), Project(Anchor(7), 1))),
        Or((left, Not(Project(Or((left, right)), 1)))),
        Project(Not(Project(Or((left, right)), 1)), 0),
    ):
        assert answer(adjacency, query).tolist() == sorted(oracle.answer(query))
