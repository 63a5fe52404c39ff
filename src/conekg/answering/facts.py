"""What the known facts say about a question's answers: which they give and which they rule out.

Queries are answered exactly on one of the nested graphs, many together. Ranking and
probabilities are left to `engine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from conekg.answering.batch import group_by_shape
from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.query.open_world import certainty_of, contradiction_of
from conekg.query.shape import Grounded, Shape, grounded
from conekg.symbolic.engine import answer_batch


@dataclass(frozen=True)
class Facts:
    """What a known graph says about a query's answers; each field holds sorted ids."""

    known: IntArray
    """The answers if the known facts were all facts there are."""
    contradicted: IntArray
    """Entities that are no answers, whatever facts are added."""
    certain: IntArray
    """Known answers that stay answers, whatever facts are added; all of them without negation."""


Asked: TypeAlias = tuple[Grounded, Split]
"""A query, and the nested graph whose facts count."""


def facts_of(graph: KnowledgeGraph, asked: Sequence[Asked]) -> list[Facts]:
    """The facts about each query's answers, on the nested graph that it is asked of."""
    known = exact_answers(graph, asked)
    ruled_out: list[IntArray] = [np.empty(0, dtype=np.int32)] * len(asked)
    certain = list(known)
    bounds: list[Asked] = []
    places: list[tuple[list[IntArray], int]] = []
    for place, (query, split) in enumerate(asked):
        of_shape = _bounds_of_shape(query.shape)
        if of_shape is None:
            continue
        contradiction, certainty = of_shape
        if contradiction is not None:
            bounds.append((filled(contradiction, query), split))
            places.append((ruled_out, place))
        if certainty is None:
            certain[place] = np.empty(0, dtype=np.int32)
        elif certainty.shape != query.shape:
            bounds.append((filled(certainty, query), split))
            places.append((certain, place))
    for (found, place), ids in zip(places, exact_answers(graph, bounds), strict=True):
        found[place] = ids
    return [Facts(*each) for each in zip(known, ruled_out, certain, strict=True)]


def exact_answers(graph: KnowledgeGraph, asked: Sequence[Asked]) -> list[IntArray]:
    """The sorted ids that answer each query on its nested graph."""
    found: list[IntArray] = [np.empty(0, dtype=np.int32)] * len(asked)
    for split in SPLITS:
        chosen = [place for place, (_, wanted) in enumerate(asked) if wanted == split]
        groups = group_by_shape([asked[place][0] for place in chosen])
        for shape, members in groups.items():
            places = [chosen[member] for member in members]
            queries = [asked[place][0] for place in places]
            answers = answer_batch(
                graph.adjacency(split),
                shape,
                np.array([query.entity_ids for query in queries], dtype=np.int32),
                np.array([query.relation_ids for query in queries], dtype=np.int32),
                workers=1,
            )
            for row, place in enumerate(places):
                found[place] = answers[row]
    return found


def filled(bound: Grounded, query: Grounded) -> Grounded:
    """A bound whose ids are slots of the query's shape, with the query's ids in their place."""
    return Grounded(
        bound.shape,
        [query.entity_ids[slot] for slot in bound.entity_ids],
        [query.relation_ids[slot] for slot in bound.relation_ids],
    )


@lru_cache(maxsize=1024)
def _bounds_of_shape(shape: Shape) -> tuple[Grounded | None, Grounded | None] | None:
    """The queries whose exact answers are contradicted and certain, for queries of a shape.

    Their ids are slots of the shape. A bound is None if no entity can be contradicted or certain.
    The result is None if nothing can be contradicted and all known answers are certain.
    """
    found = tuple(
        None if bound is None else grounded(bound)
        for bound in (contradiction_of(shape.template), certainty_of(shape.template))
    )
    contradiction, certainty = found
    if contradiction is None and certainty is not None and certainty.shape == shape:
        return None
    return contradiction, certainty


def contains(sorted_ids: IntArray, ids: LongArray) -> NDArray[np.bool_]:
    """[n] whether each of `ids` is among the sorted ones."""
    if len(sorted_ids) == 0:
        return np.zeros(len(ids), dtype=bool)
    places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.equal(sorted_ids[places], ids)
