"""The definition of easy and hard answers.

Each split has a smaller and a larger graph: (none, train), (train, valid) and (valid, test).
The *easy* answers are all answers on the smaller graph, even those that a negation makes
false on the larger one. The *hard* answers are the answers on the larger graph that are not
easy. The training split has no smaller graph, so every training answer is hard.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from conekg.graph.adjacency import Adjacency, IntArray, LongArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.query.shape import Shape
from conekg.symbolic.engine import answer_batch
from conekg.symbolic.sorted_arrays import subtract


def smaller_split(split: Split) -> Split | None:
    """The split whose graph gives the easy answers; None for `train`."""
    place = SPLITS.index(split)
    return SPLITS[place - 1] if place else None


def graphs_of(graph: KnowledgeGraph, split: Split) -> tuple[Adjacency | None, Adjacency]:
    """The smaller and the larger graph of a split; None is the smaller graph of `train`."""
    smaller = smaller_split(split)
    return None if smaller is None else graph.adjacency(smaller), graph.adjacency(split)


def easy_and_hard(
    graph: KnowledgeGraph,
    split: Split,
    shape: Shape,
    anchors: IntArray,
    relations: IntArray,
    *,
    workers: int | None = None,
) -> tuple[Ragged, Ragged]:
    """The easy and the hard answers of every query of one shape."""
    smaller, larger = graphs_of(graph, split)
    full = answer_batch(larger, shape, anchors, relations, workers=workers)
    if smaller is None:
        none = Ragged.empty(len(anchors))
        return none, full
    easy = answer_batch(smaller, shape, anchors, relations, workers=workers)
    return easy, subtract_answers(full, easy)


def subtract_answers(answers: Ragged, others: Ragged) -> Ragged:
    """Row by row, the answers that are not among the others."""
    return Ragged(*_subtract_rows(answers.offsets, answers.values, others.offsets, others.values))


@njit(cache=True, nogil=True)
def _subtract_rows(
    full_offsets: LongArray, full: IntArray, easy_offsets: LongArray, easy: IntArray
) -> tuple[LongArray, IntArray]:
    """The offsets and values of `full` without `easy`, row by row."""
    offsets = np.zeros_like(full_offsets)
    values = np.empty_like(full)
    for row in range(len(offsets) - 1):
        offsets[row + 1] = offsets[row] + subtract(
            full[full_offsets[row] : full_offsets[row + 1]],
            easy[easy_offsets[row] : easy_offsets[row + 1]],
            values[offsets[row] :],
        )
    return offsets, values[: offsets[-1]].copy()
