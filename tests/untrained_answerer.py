"""An answerer over a few facts, for tests in which names matter and answers do not."""

from __future__ import annotations

import numpy as np

from conekg.answering.engine import Answerer
from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.model.catalog import build_model


def untrained_answerer(
    entities: list[str],
    relations: list[str],
    facts: list[tuple[int, int, int]],
    *,
    labels: list[str] | None = None,
    name: str = "few facts",
) -> Answerer:
    """An untrained ConE over training facts, each (head, relation, tail) by place in the lists.

    `labels` are those of the entities; without them, or where one is empty, the names serve.
    """
    vocabulary = Vocabulary(NameTable("entity", entities, labels), NameTable("relation", relations))
    train = with_inverses(np.array(facts, dtype=np.int32))
    graph = KnowledgeGraph(name, vocabulary, {"train": train})
    model = build_model("cone", len(entities), 2 * len(relations), {"dim": 4, "hidden": 4})
    return Answerer(graph, model)
