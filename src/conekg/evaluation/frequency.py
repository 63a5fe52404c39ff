"""The frequency baseline: rank entities by how often they answer the last relation.

It knows the training edges and nothing of the anchors, so a model that does not beat it
has learnt no more than which entities are common. A query with several last relations (an
intersection, a union) combines their counts as fuzzy sets do; negated parts say nothing
about which entities are frequent and are left out.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from conekg.graph.adjacency import Adjacency
from conekg.query.shape import Shape
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold
from conekg.sampling.query_set import QueryBlock

Counts = NDArray[np.float32]


class FrequencyScorer:
    """Scores entities by their number of incoming edges of the last relation."""

    def __init__(self, training: Adjacency) -> None:
        self._counts = answer_counts(training)

    @property
    def name(self) -> str:
        """What the report calls it."""
        return "frequency"

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    def why_not(self, shape: Shape) -> str | None:
        """Every shape can be answered."""
        return None

    def scores(self, block: QueryBlock) -> Tensor:
        """[queries, num_entities] combined counts."""
        relations = block.relations
        num_entities = self._counts.shape[1]

        def score(node: Query, below: tuple[Counts | None, ...]) -> Counts | None:
            parts = [part for part in below if part is not None]
            match node:
                case Project(_, slot):
                    return self._counts[relations[:, slot]]
                case Anchor() | Universe() | Not():
                    return None
                case And():
                    return np.minimum.reduce(parts) if parts else None
                case Or():
                    return np.maximum.reduce(parts) if parts else None
            assert_never(node)

        combined = fold(block.shape.template, score)
        if combined is None:
            combined = np.zeros((len(block), num_entities), dtype=np.float32)
        return torch.from_numpy(combined)


def answer_counts(adjacency: Adjacency) -> Counts:
    """[num_relations, num_entities] how many edges of each relation end in each entity."""
    pairs = np.diff(adjacency.relation_offsets)
    relation_of_pair = np.repeat(np.arange(adjacency.num_relations), pairs)
    relation_of_edge = np.repeat(relation_of_pair, np.diff(adjacency.pair_offsets))
    counts = np.zeros((adjacency.num_relations, adjacency.num_entities), dtype=np.float32)
    np.add.at(counts, (relation_of_edge, adjacency.tails), 1.0)
    return counts
