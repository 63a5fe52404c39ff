"""Namesakes: describes suggested entities that share a label, so that a user can tell them apart.

Their names are often bare ids. The vocabulary only knows that they share a label, so a fact of
each entity that the others lack is taken from the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from conekg.errors import UnknownNameError
from conekg.graph.adjacency import Adjacency
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.lines import one_line

_MAX_TAILS = 64
"""The most tails of one entity and relation that are searched for one that the others lack."""


@contextmanager
def told_apart(graph: KnowledgeGraph) -> Iterator[None]:
    """Inside the block, an `UnknownNameError` that suggests bare ids also describes each one."""
    try:
        yield
    except UnknownNameError as error:
        if error.kind == "entity":
            error.tell(_descriptions(error, graph))
        raise


def _descriptions(error: UnknownNameError, graph: KnowledgeGraph) -> list[str]:
    """For each suggestion its label and a distinguishing fact; empty if it has no own label."""
    table = graph.vocabulary.entities
    suggested = [table.find(name) for name in error.suggestions]  # None if suggested by label
    ids = [entity_id for entity_id in suggested if entity_id is not None]
    descriptions = []
    for entity_id in suggested:
        parts = []
        if entity_id is not None and table.label(entity_id) != table.name(entity_id):
            label = table.label(entity_id)
            if label != error.name:
                parts.append(label)
            parts += _own_fact(entity_id, [other for other in ids if other != entity_id], graph)
        descriptions.append(one_line(", ".join(parts)))
    return descriptions


def _own_fact(entity_id: int, others: Sequence[int], graph: KnowledgeGraph) -> list[str]:
    """A training fact `relation: tail` of an entity that none of the others has, as a list of one.

    Forward relations are tried before inverse ones. The list is empty if there is no such fact.
    """
    facts = graph.adjacency("train")
    relations = facts.relations_of(entity_id)
    for relation_id in relations[np.argsort(relations & 1, kind="stable")].tolist():
        for tail in facts.neighbors(entity_id, relation_id)[:_MAX_TAILS].tolist():
            if not any(_holds(facts, other, relation_id, tail) for other in others):
                vocabulary = graph.vocabulary
                relation = vocabulary.relation_label(relation_id)
                return [f"{relation}: {vocabulary.entities.label(tail)}"]
    return []


def _holds(facts: Adjacency, head_id: int, relation_id: int, tail_id: int) -> bool:
    tails = facts.neighbors(head_id, relation_id)
    place = int(np.searchsorted(tails, tail_id))
    return place < len(tails) and int(tails[place]) == tail_id
