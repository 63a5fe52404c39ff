"""The exact engine: which entities answer a query on one graph, one query or a batch.

Batches are cut into pieces of fixed size that threads take in turn; the answers
do not depend on how many threads there are. What a set is and how sets are
combined is in `kernels`.
"""

from __future__ import annotations

import numpy as np

from conekg.errors import QueryError
from conekg.graph.adjacency import Adjacency, IntArray
from conekg.graph.ragged import Ragged
from conekg.query.shape import Shape, shape_of, slots_of
from conekg.query.tree import Query
from conekg.symbolic.kernels import answer_rows, graph_arrays
from conekg.symbolic.program import compile_shape
from conekg.symbolic.workers import Workspaces, map_in_order

_ROWS_A_PIECE = 2048
"""Queries a thread takes at once: enough to hide the hand-over, few enough to share evenly."""


def answer(adjacency: Adjacency, query: Query) -> IntArray:
    """The sorted entities that answer a query.

    >>> import numpy as np
    >>> from conekg.graph.adjacency import build_adjacency
    >>> from conekg.query.tree import Anchor
    >>> edges = np.array([[0, 0, 1], [0, 0, 2], [3, 2, 2]], dtype=np.int32)
    >>> graph = build_adjacency(edges, num_entities=4, num_relations=4)
    >>> answer(graph, Anchor(0).project(0) & ~Anchor(3).project(2)).tolist()
    [1]
    """
    entity_ids, relation_ids = slots_of(query)
    anchors = np.array(entity_ids, dtype=np.int32).reshape(1, -1)
    relations = np.array(relation_ids, dtype=np.int32).reshape(1, -1)
    return answer_batch(adjacency, shape_of(query), anchors, relations, workers=1).values


def answer_batch(
    adjacency: Adjacency,
    shape: Shape,
    anchors: IntArray,
    relations: IntArray,
    *,
    workers: int | None = None,
) -> Ragged:
    """The sorted answers of every query of one shape, row by row.

    `anchors` is [queries, shape.num_anchors], `relations` [queries, shape.num_relations].
    `workers` threads share the work, by default one a core.
    """
    check_queries(adjacency, shape, anchors, relations)
    program = compile_shape(shape)
    graph = graph_arrays(adjacency)
    workspaces = Workspaces(adjacency.num_entities, program.stack_size)
    anchors = np.ascontiguousarray(anchors, dtype=np.int32)
    relations = np.ascontiguousarray(relations, dtype=np.int32)

    def answer_piece(start: int) -> Ragged:
        piece = slice(start, start + _ROWS_A_PIECE)
        return Ragged(
            *answer_rows(
                graph, workspaces.mine(), program.instructions, anchors[piece], relations[piece]
            )
        )

    starts = range(0, len(anchors), _ROWS_A_PIECE)
    pieces = list(map_in_order(answer_piece, starts, workers if len(starts) > 1 else 1))
    return concatenate_rows(pieces)


def concatenate_rows(parts: list[Ragged]) -> Ragged:
    """The rows of all parts, in order."""
    lengths = [np.zeros(1, dtype=np.int64), *(part.lengths for part in parts)]
    values = [np.zeros(0, dtype=np.int32), *(part.values for part in parts)]
    return Ragged(np.cumsum(np.concatenate(lengths)), np.concatenate(values))


def check_queries(
    adjacency: Adjacency, shape: Shape, anchors: IntArray, relations: IntArray
) -> None:
    """Refuse queries whose ids the graph does not have; compiled code would read astray."""
    assert anchors.shape == (len(anchors), shape.num_anchors), "one column an entity slot"
    assert relations.shape == (len(anchors), shape.num_relations), "one column a relation slot"
    for kind, ids, size in (
        ("entity", anchors, adjacency.num_entities),
        ("relation", relations, adjacency.num_relations),
    ):
        outside = ids[(ids < 0) | (ids >= size)]
        if len(outside):
            raise QueryError(
                f"{kind} id {int(outside[0])} in a query of shape {shape.name}; "
                f"the graph has ids 0 to {size - 1}",
                hint="was the query written for another graph?",
            )
