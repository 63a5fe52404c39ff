"""The knowledge graph: one vocabulary and three nested graphs, train < valid < test.

The *valid* graph holds the training and the validation edges, the *test* graph
holds all: what a query finds in a larger graph and not in the smaller one is what
a model has to predict.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from conekg.graph.adjacency import Adjacency, IntArray, build_adjacency
from conekg.graph.vocabulary import Vocabulary

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


class KnowledgeGraph:
    """An immutable graph; edges hold both directions (relation 2k and its inverse 2k+1)."""

    def __init__(self, name: str, vocabulary: Vocabulary, edges: Mapping[Split, IntArray]) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self._edges = dict(edges)
        self._adjacency: dict[Split, Adjacency] = {}

    @property
    def num_entities(self) -> int:
        """How many entities the vocabulary names."""
        return len(self.vocabulary.entities)

    @property
    def num_relations(self) -> int:
        """How many relation ids there are, inverses counted."""
        return self.vocabulary.num_relations

    def edges(self, split: Split) -> IntArray:
        """[n, 3] the edges (head, relation, tail) that belong to this split alone."""
        return self._edges[split]

    def adjacency(self, split: Split) -> Adjacency:
        """The nested graph of a split: its own edges and those of the splits before it."""
        if split not in self._adjacency:
            parts = [self._edges[part] for part in SPLITS[: SPLITS.index(split) + 1]]
            self._adjacency[split] = build_adjacency(
                np.concatenate(parts), self.num_entities, self.num_relations
            )
        return self._adjacency[split]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the names and edges, the same on every machine."""
        raise NotImplementedError
