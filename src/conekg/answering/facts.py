"""What the facts alone say of a question's answers: given, ruled out, or neither.

Exact search over one of the nested graphs, many questions together. Ranking and
probabilities are the model's business, in `engine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.answering.batch import group_by_shape
from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.query.open_world import contradiction_of
from conekg.query.shape import slots_of
from conekg.query.tree import Query
from conekg.symbolic.engine import answer_batch


@dataclass(frozen=True)
class Facts:
    """What a known graph says of a query's answers; sorted ids."""

    known: IntArray
    """Entities that follow from the facts, nothing else being true."""
    contradicted: IntArray
    """Entities that the facts rule out, whatever else is true."""


def facts_of(graph: KnowledgeGraph, asked: Sequence[tuple[Query, Split]]) -> list[Facts]:
    """What each query's nested graph says of its answers."""
    known = exact_answers(graph, asked)
    ruled_out: list[IntArray] = [np.empty(0, dtype=np.int32)] * len(asked)
    places, negated = [], []
    for place, (query, split) in enumerate(asked):
        contradiction = contradiction_of(query)
        if contradiction is not None:
            places.append(place)
            negated.append((contradiction, split))
    for place, ids in zip(places, exact_answers(graph, negated), strict=True):
        ruled_out[place] = ids
    return [Facts(*pair) for pair in zip(known, ruled_out, strict=True)]


def exact_answers(graph: KnowledgeGraph, asked: Sequence[tuple[Query, Split]]) -> list[IntArray]:
    """The sorted ids that answer each query on its nested graph."""
    found: list[IntArray] = [np.empty(0, dtype=np.int32)] * len(asked)
    for split in SPLITS:
        chosen = [place for place, (_, wanted) in enumerate(asked) if wanted == split]
        groups = group_by_shape([asked[place][0] for place in chosen])
        for shape, members in groups.items():
            places = [chosen[member] for member in members]
            slots = [slots_of(asked[place][0]) for place in places]
            answers = answer_batch(
                graph.adjacency(split),
                shape,
                np.array([s[0] for s in slots], dtype=np.int32).reshape(len(slots), -1),
                np.array([s[1] for s in slots], dtype=np.int32).reshape(len(slots), -1),
                workers=1,
            )
            for row, place in enumerate(places):
                found[place] = answers[row]
    return found


def contains(sorted_ids: IntArray, ids: LongArray) -> NDArray[np.bool_]:
    """[n] whether each of `ids` is among the sorted ones."""
    if len(sorted_ids) == 0:
        return np.zeros(len(ids), dtype=bool)
    places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.equal(sorted_ids[places], ids)
