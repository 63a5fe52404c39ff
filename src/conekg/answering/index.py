"""The top-k entities of regions: exact, except for ConE models of a million entities and more.

Equal scores rank by entity id. `search` chooses the algorithm; this file adds what all of them
share: memory-bounded chunks, the table of all scores, and the mean score of arbitrary entities.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from conekg.answering.ranking import Ranking
from conekg.answering.search import choose_search
from conekg.graph.adjacency import IntArray
from conekg.model.interface import QueryModel, Region
from conekg.model.scoring import ScoringTable, check_weights_finite, scoring_table

_BACKGROUND = 32
"""About how many entities are sampled for a region's mean score."""
_CHUNK_ROWS = 64
"""Regions searched at once, which bounds the memory of partial sums and logits."""


class EntityIndex:
    """The entity table of a model, prepared for searching; the model's weights must not change.

    `shortlist` turns the approximate search on or off; by default it is used for ConE models of a
    million entities and more. Safe to use from several threads at once. Weights that are not
    finite are refused: comparisons with NaN are false, so searches would silently drop entities.
    """

    def __init__(self, model: QueryModel, *, shortlist: bool | None = None) -> None:
        check_weights_finite(model)
        self._model = model
        self._table: ScoringTable | None = None
        self._table_lock = threading.Lock()
        self._search = choose_search(model, lambda: self.table, shortlist=shortlist)

    @property
    def recall(self) -> float:
        """The share of the true top-10 entities that are found; 1 unless a shortlist is used."""
        return self._search.recall

    @property
    def table(self) -> ScoringTable:
        """The table that scores all entities, for callers that need every score; made once."""
        with self._table_lock:
            if self._table is None:
                self._table = scoring_table(self._model)
            return self._table

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """For each row its best `counts[row]` entities that are not in `skip[row]`, sorted ids.

        Fewer entities are returned if fewer are left.
        """
        rankings: list[Ranking] = []
        with torch.inference_mode():
            for start in range(0, len(counts), _CHUNK_ROWS):
                rows = slice(start, start + _CHUNK_ROWS)
                part = tuple(component[rows] for component in region)
                rankings.extend(self._search.top(part, counts[rows], skip[rows]))
        return rankings

    def background(self, region: Region) -> NDArray[np.float64]:
        """[rows] the mean score of a fixed, evenly spaced sample of the entities."""
        stride = max(1, self._model.num_entities // _BACKGROUND)
        ids = torch.arange(0, self._model.num_entities, stride, device=region[0].device)
        with torch.inference_mode():
            scores = torch.cat(
                [
                    self._model.logits(tuple(part[rows] for part in region), ids[None])
                    for rows in torch.arange(len(region[0])).split(_CHUNK_ROWS)
                ]
            )
        return np.asarray(scores.double().mean(dim=1).cpu().numpy())
