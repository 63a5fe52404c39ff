"""Parts of questions that known facts leave empty, however the graph is completed.

`Poland & !Germany.borders` has no answers if Poland is known to border Germany, so
`(Poland & !Germany.borders).capital` has none either, and in a union that branch adds nothing. A
model knows no empty set and would guess answers. So such parts are dropped before it ranks, and so
is `Poland` in `((Poland | Spain) & !Germany.borders).capital`, where it has no consequences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from conekg.answering.facts import Asked, exact_answers, filled
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.open_world import doubts_of
from conekg.query.rewrite import NOTHING, settle
from conekg.query.shape import Grounded, Shape, grounded
from conekg.query.tree import And, Not, Query, any_of, fold, rebuild, relabel


class _Doubt(NamedTuple):
    """A `Doubt` about all queries of a shape; the ids of both are slots of the shape."""

    part: Query
    bound: Grounded
    is_complement: bool
    """Whether the bound gives the entities that the part cannot have, not those that it may have.
    `!a.r` is nearly every entity, and `a.r` takes less time and memory."""


def without_empty_parts(graph: KnowledgeGraph, asked: Sequence[Asked]) -> list[Grounded]:
    """Each query without its empty parts: it has the same answers in every completion.

    The queries are settled, and so are the results. A query without such parts is returned itself;
    one that is empty as a whole may become `!*`.
    """
    queries = [query for query, _ in asked]
    pending: Collection[int] = range(len(queries))
    while pending:  # a part around an empty one may turn out to be empty too
        doubts = [
            (place, doubt) for place in pending for doubt in _doubts_of_shape(queries[place].shape)
        ]
        bounds = [(filled(doubt.bound, queries[place]), asked[place][1]) for place, doubt in doubts]
        empty: dict[int, set[Query]] = defaultdict(set)
        for (place, doubt), ids in zip(doubts, exact_answers(graph, bounds), strict=True):
            if len(ids) == (graph.num_entities if doubt.is_complement else 0):
                empty[place].add(doubt.part)
        for place, parts in empty.items():
            queries[place] = _without(parts, queries[place])
        pending = empty
    return queries


@lru_cache(maxsize=1024)
def _doubts_of_shape(shape: Shape) -> tuple[_Doubt, ...]:
    found = []
    for part, possible in doubts_of(shape.template):
        operands = possible.operands if isinstance(possible, And) else (possible,)
        excluded = [operand.operand for operand in operands if isinstance(operand, Not)]
        is_complement = len(excluded) == len(operands)
        bound = any_of(excluded) if is_complement else possible
        found.append(_Doubt(part, grounded(bound), is_complement))
    return tuple(found)


def _without(parts: Collection[Query], query: Grounded) -> Grounded:
    """The query without parts of its shape's template, settled."""

    def drop(node: Query, operands: tuple[Query, ...]) -> Query:
        return NOTHING if node in parts else rebuild(node, operands)

    left = fold(query.shape.template, drop)
    return grounded(
        settle(relabel(left, query.entity_ids.__getitem__, query.relation_ids.__getitem__))
    )
