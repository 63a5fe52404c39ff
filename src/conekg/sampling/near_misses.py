"""Near misses: entities that would answer a query if it had no negations.

The near misses of `A ∧ ¬B` are the entities in both `A` and `B`. Only they can teach a model
what the negation does, and uniform draws hardly ever hit one. They are the answers of another
query, so the exact engine finds them.
"""

from __future__ import annotations

import numpy as np

from conekg.graph.adjacency import Adjacency, IntArray
from conekg.graph.ragged import Ragged, offsets_of
from conekg.query.relax import near_miss_query
from conekg.query.shape import grounded
from conekg.sampling.query_set import QueryBlock
from conekg.symbolic.engine import answer_batch

MOST_KEPT = 32
"""Near misses kept per query: a training run draws from each query only a few times."""

_ROWS_AT_ONCE = 16_384
"""Queries answered before their near misses are thinned out: all of them may not fit in memory."""


def find_near_misses(
    adjacency: Adjacency, block: QueryBlock, *, seed: int, most: int = MOST_KEPT
) -> Ragged:
    """The near misses of every query of a block on a graph, row by row, at most `most` of each.

    If a query has more, they are cut into `most` runs of equal length, and one is drawn from each
    run. Without an intersection that has a negated part, there are none.
    """
    query = near_miss_query(block.shape.template)
    if query is None:
        return Ragged.empty(len(block))
    shape, anchor_columns, relation_columns = grounded(query)
    random = np.random.default_rng(seed)
    parts = []
    for start in range(0, len(block), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        found = answer_batch(
            adjacency,
            shape,
            block.anchors[rows][:, anchor_columns],
            block.relations[rows][:, relation_columns],
        )
        parts.append(_thinned(found, most, random))
    return Ragged.concatenate(parts)


def _thinned(rows: Ragged, most: int, random: np.random.Generator) -> Ragged:
    """At most `most` values of each row, drawn from runs of equal length."""
    lengths = np.minimum(rows.lengths, most)
    offsets = offsets_of(lengths)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    size, kept = np.repeat(rows.lengths, lengths), np.repeat(lengths, lengths)
    # Run i of k goes from ⌈i·n/k⌉ up to, but not including, ⌈(i + 1)·n/k⌉.
    first, stop = -(-place * size // kept), -(-(place + 1) * size // kept)
    drawn = first + (random.random(len(place)) * (stop - first)).astype(np.int64)
    values: IntArray = rows.values[np.repeat(rows.offsets[:-1], lengths) + drawn]
    return Ragged(offsets, values)
