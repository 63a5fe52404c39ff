"""The frequency baseline: rank entities by their number of edges of the query's last relation.

It ignores the anchors, so a model that does not beat it has learnt no more than which entities
are common. For several last relations (an intersection, a union) counts are combined as fuzzy
sets are, by minimum and maximum. Negated parts are left out, as they do not say which entities
are common; double negations are removed first.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from conekg.graph.adjacency import Adjacency, IntArray
from conekg.query.branches import UnionForm
from conekg.query.rewrite import push_negation
from conekg.query.shape import Shape
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold
from conekg.sampling.query_set import QueryBlock

Counts = NDArray[np.float32]

_COUNTS_KEPT = 1 << 26
"""How many counts are cached, of the most recently used relations."""


class FrequencyScorer:
    """Scores entities by their number of incoming edges of the last relation."""

    def __init__(self, training: Adjacency) -> None:
        self._num_entities = training.num_entities
        # Not the counts of all relations: with millions of entities they exceed the memory.
        cached_relations = max(1, _COUNTS_KEPT // max(1, training.num_entities))
        self._counts_of = lru_cache(maxsize=cached_relations)(partial(answer_counts, training))

    @property
    def name(self) -> str:
        """The name in the report."""
        return "frequency"

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    @property
    def union(self) -> UnionForm:
        """`dnf`: a union is as good as the best of its operands."""
        return "dnf"

    def why_not(self, shape: Shape) -> str | None:
        """None: every shape can be answered."""
        return None

    def tables_of(self, shape: Shape) -> int:
        """The number of relations, an upper bound."""
        return max(1, shape.num_relations)

    def scores(self, block: QueryBlock) -> Tensor:
        """[queries, num_entities] the combined counts; zeros if no relation counts."""
        relations = block.relations

        def score(node: Query, below: tuple[Counts | None, ...]) -> Counts | None:
            parts = [part for part in below if part is not None]
            match node:
                case Project(_, slot):
                    return self._counts_of_each(relations[:, slot])
                case Anchor() | Universe() | Not():
                    return None
                case And():
                    return np.minimum.reduce(parts) if parts else None
                case Or():
                    return np.maximum.reduce(parts) if parts else None
            assert_never(node)

        combined = fold(push_negation(block.shape.template), score)
        if combined is None:
            combined = np.zeros((len(block), self._num_entities), dtype=np.float32)
        return torch.from_numpy(combined)

    def _counts_of_each(self, relations: IntArray) -> Counts:
        """[rows, num_entities] the counts of each row's relation."""
        counts = np.empty((len(relations), self._num_entities), dtype=np.float32)
        for relation in np.unique(relations).tolist():
            counts[relations == relation] = self._counts_of(relation)
        return counts


def answer_counts(adjacency: Adjacency, relation: int) -> Counts:
    """[num_entities] the number of edges of a relation that end in each entity."""
    start, stop = adjacency.pair_offsets[adjacency.relation_offsets[relation : relation + 2]]
    counts = np.bincount(adjacency.tails[start:stop], minlength=adjacency.num_entities)
    return counts.astype(np.float32)
