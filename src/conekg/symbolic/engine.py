"""The exact engine: the entities that answer one query, or each query of a batch, on a graph.

Batches are cut into pieces of fixed size that are shared out to threads; the answers
do not depend on the number of threads. How sets are stored and combined is in `kernels`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conekg.errors import ConfigError, QueryError
from conekg.graph.adjacency import Adjacency, IntArray, LongArray
from conekg.graph.ragged import Ragged, offsets_of
from conekg.query.shape import Shape, check_whole, grounded
from conekg.query.tree import Query
from conekg.symbolic.kernels import answer_rows
from conekg.symbolic.memory import graph_arrays, make_workspace
from conekg.symbolic.program import compile_shape
from conekg.symbolic.workers import PerThread, map_in_order

_ROWS_PER_PIECE = 512
"""Queries per piece: enough that the hand-over costs little, few enough to share them evenly."""


def answer(adjacency: Adjacency, query: Query) -> IntArray:
    """The sorted entities that answer a query.

    Raises `QueryError` if the query has an id that the graph does not have.

    >>> import numpy as np
    >>> from conekg.graph.adjacency import build_adjacency
    >>> from conekg.query.tree import Anchor
    >>> edges = np.array([[0, 0, 1], [0, 0, 2], [3, 2, 2]], dtype=np.int32)
    >>> graph = build_adjacency(edges, num_entities=4, num_relations=4)
    >>> answer(graph, Anchor(0).project(0) & ~Anchor(3).project(2)).tolist()
    [1]
    """
    shape, entity_ids, relation_ids = grounded(query)
    anchors, relations = _row("entity", entity_ids), _row("relation", relation_ids)
    return answer_batch(adjacency, shape, anchors, relations, workers=1).values


def _row(kind: str, ids: Sequence[int]) -> LongArray:
    """[1, len(ids)] the ids as one row; `QueryError` for an id that is not a whole number.

    Ids beyond 64 bits are clipped to 64 bits, and so are still outside of any graph.
    """
    check_whole(kind, ids)
    bounds = np.iinfo(np.int64)
    held = [max(bounds.min, min(int(value), bounds.max)) for value in ids]
    return np.array(held, dtype=np.int64).reshape(1, -1)


def answer_batch(
    adjacency: Adjacency,
    shape: Shape,
    anchors: IntArray | LongArray,
    relations: IntArray | LongArray,
    *,
    workers: int | None = None,
) -> Ragged:
    """The sorted answers of every query of one shape, row by row.

    `anchors` is [queries, shape.num_anchors], `relations` [queries, shape.num_relations].
    `workers` threads share the work, by default one per core. Raises `QueryError` if a query has
    an id that the graph does not have.
    """
    check_queries(adjacency, shape, anchors, relations)
    program = compile_shape(shape)
    graph = graph_arrays(adjacency)
    memory = PerThread(lambda: _Memory(adjacency.num_entities, program.stack_size))
    anchors = np.ascontiguousarray(anchors, dtype=np.int32)
    relations = np.ascontiguousarray(relations, dtype=np.int32)

    def answer_piece(start: int) -> Ragged:
        piece = slice(start, start + _ROWS_PER_PIECE)
        mine = memory.value
        offsets, mine.buffer = answer_rows(
            graph, mine.work, program.instructions, anchors[piece], relations[piece], mine.buffer
        )
        return Ragged(offsets, mine.buffer[: offsets[-1]].copy())

    starts = range(0, len(anchors), _ROWS_PER_PIECE)
    if len(starts) <= 1:
        workers = 1
    return _joined(list(map_in_order(answer_piece, starts, workers)), workers)


def _joined(pieces: list[Ragged], workers: int | None) -> Ragged:
    """The rows of all pieces, copied by all threads: with one thread the others would be idle."""
    if len(pieces) == 1:
        return pieces[0]
    lengths = [np.zeros(0, dtype=np.int64), *(piece.lengths for piece in pieces)]
    offsets = offsets_of(np.concatenate(lengths))
    starts = offsets_of([len(piece.values) for piece in pieces])
    values = np.empty(starts[-1], dtype=np.int32)

    def copy(place: int) -> None:
        values[starts[place] : starts[place + 1]] = pieces[place].values

    for _ in map_in_order(copy, range(len(pieces)), workers):
        pass
    return Ragged(offsets, values)


class _Memory:
    """Memory that a thread reuses for all its pieces.

    Allocating new memory for each piece would take as long as answering it.
    """

    def __init__(self, num_entities: int, stack_size: int) -> None:
        self.work = make_workspace(num_entities, stack_size)
        self.buffer: IntArray = np.empty(16 * _ROWS_PER_PIECE, dtype=np.int32)


def check_queries(
    adjacency: Adjacency,
    shape: Shape,
    anchors: IntArray | LongArray,
    relations: IntArray | LongArray,
) -> None:
    """Raise `QueryError` for ids that the graph does not have.

    The compiled code does not check ids and would read beyond the end of its arrays.
    """
    if not isinstance(adjacency, Adjacency):
        raise ConfigError(
            f"adjacency is a {type(adjacency).__name__}; it must be the adjacency of one of the "
            "nested graphs, such as graph.adjacency('train')",
            key="adjacency",
        )
    assert anchors.shape == (len(anchors), shape.num_anchors), "one column per entity slot"
    assert relations.shape == (len(anchors), shape.num_relations), "one column per relation slot"
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
