"""Namesakes: what tells apart entities whose names say nothing, such as ids with one label.

A vocabulary knows what is called alike; only the facts know who is who.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from conekg.errors import UnknownNameError
from conekg.graph.adjacency import Adjacency
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.lines import one_line

_LOOKED_AT = 64
"""Tails of one entity and relation among which one is looked for that others lack."""


@contextmanager
def told_apart(graph: KnowledgeGraph) -> Iterator[None]:
    """Inside, an error that suggests entities by bare ids says what is known of each."""
    try:
        yield
    except UnknownNameError as error:
        if error.kind == "entity":
            error.tell(_about(error, graph))
        raise


def _about(error: UnknownNameError, graph: KnowledgeGraph) -> list[str]:
    """Of each suggestion its label and a fact that others lack; empty where its name says all."""
    table = graph.vocabulary.entities
    found = [table.find(name) for name in error.suggestions]  # None of one suggested by its label
    ids = [entity_id for entity_id in found if entity_id is not None]
    told = []
    for entity_id in found:
        parts = []
        if entity_id is not None and table.label(entity_id) != table.name(entity_id):
            label = table.label(entity_id)
            parts = [label] * (label != error.name)
            parts += _own_fact(entity_id, [each for each in ids if each != entity_id], graph)
        told.append(one_line(", ".join(parts)))
    return told


def _own_fact(entity_id: int, others: Sequence[int], graph: KnowledgeGraph) -> list[str]:
    """A training fact of an entity that none of the others has; those told forwards come first."""
    facts = graph.adjacency("train")
    relations = facts.relations_of(entity_id)
    for relation_id in relations[np.argsort(relations & 1, kind="stable")].tolist():
        for tail in facts.neighbors(entity_id, relation_id)[:_LOOKED_AT].tolist():
            if not any(_holds(facts, other, relation_id, tail) for other in others):
                vocabulary = graph.vocabulary
                relation = vocabulary.relation_label(relation_id)
                return [f"{relation}: {vocabulary.entities.label(tail)}"]
    return []


def _holds(facts: Adjacency, head_id: int, relation_id: int, tail_id: int) -> bool:
    tails = facts.neighbors(head_id, relation_id)
    place = int(np.searchsorted(tails, tail_id))
    return place < len(tails) and int(tails[place]) == tail_id
