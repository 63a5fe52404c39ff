from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.graph.adjacency import build_adjacency
from conekg.query.shape import STRUCTURES
from conekg.query.tree import Anchor, And, Not, Or, Project, Universe
from conekg.symbolic.engine import answer, answer_batch
from conekg.symbolic.kernels import evaluate
from conekg.symbolic.memory import graph_arrays, make_workspace
from conekg.symbolic.program import compile_shape
from oracle import Oracle


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
            assert not work.words.any()
            assert not work.summary.any()
            assert (work.steps == 1).all()
            assert sorted(work.stack[:, 0]) == list(range(len(work.stack)))


@pytest.mark.parametrize("name", ["pni", "pi", "inp"])
def test_a_batch_answers_as_the_oracle_does(name: str) -> None:
    # What one query leaves in the memory of a worker would be among the answers of the next.
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
