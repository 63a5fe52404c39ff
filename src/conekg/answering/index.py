"""The best entities of a region among all, exactly; approximately beyond a million.

Equal scores rank by entity id. How the entities are gone through is `search`'s to choose;
of an approximate search the recall is measured.
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
"""Entities that stand for all when a region's usual score is wanted."""
_CHUNK_ROWS = 64
"""Regions handled at once, which bounds the memory of partial sums and logits."""


class EntityIndex:
    """The entity table of a model, ready to be searched; its weights must stay as they are.

    `shortlist` asks for the approximate search or forbids it; by default the number of
    entities decides. Safe to use from several threads at once. Weights that are not all
    finite are refused: searches pass such entities by, and would find others in their place.
    """

    def __init__(self, model: QueryModel, *, shortlist: bool | None = None) -> None:
        check_weights_finite(model)
        self._model = model
        self._table: ScoringTable | None = None
        self._table_lock = threading.Lock()
        self._search = choose_search(model, lambda: self.table, shortlist=shortlist)

    @property
    def recall(self) -> float:
        """The share of true top-10 entities that a search finds; below 1 only by shortlist."""
        return self._search.recall

    @property
    def table(self) -> ScoringTable:
        """The scores of all entities, for who needs more than the best; made on first use."""
        with self._table_lock:
            if self._table is None:
                self._table = scoring_table(self._model)
            return self._table

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """For each row its best `counts[row]` entities that are not in `skip[row]`, sorted ids.

        Fewer come back where not so many are left.
        """
        rankings: list[Ranking] = []
        with torch.inference_mode():
            for start in range(0, len(counts), _CHUNK_ROWS):
                rows = slice(start, start + _CHUNK_ROWS)
                part = tuple(component[rows] for component in region)
                rankings.extend(self._search.top(part, counts[rows], skip[rows]))
        return rankings

    def background(self, region: Region) -> NDArray[np.float64]:
        """[rows] the mean score of a fixed sample of entities: what an arbitrary one scores."""
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
