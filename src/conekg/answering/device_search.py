"""The nearest entities of many regions on a GPU, which scores all of them.

Only the best leave the device. Abandoning far entities early, as `abandon` does on a CPU, does
not pay here (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from conekg.answering.ranking import Ranking, rank_arrays
from conekg.graph.adjacency import IntArray
from conekg.model.interface import Region
from conekg.model.scoring import DeviceTable


class DeviceSearch:
    """A search by one table for all rows at once; see `search.Search`."""

    recall = 1.0

    def __init__(self, table: DeviceTable) -> None:
        self._table = table

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `search.Search`."""
        wanted = [
            max(0, min(count, self._table.num_entities - len(ids)))
            for count, ids in zip(counts, skip, strict=True)
        ]
        most = max(wanted, default=0)
        if most == 0:
            return [Ranking(np.empty(0, dtype=np.int64), np.empty(0)) for _ in wanted]
        logits = self._table.logits(region)
        rows = np.repeat(np.arange(len(skip)), [len(ids) for ids in skip])
        skipped = np.stack([rows, np.concatenate(skip)])
        logits[tuple(torch.from_numpy(skipped).to(logits.device))] = -torch.inf
        # One more than wanted shows whether the last one is tied with an entity that is left out.
        scores, ids = logits.topk(min(most + 1, self._table.num_entities), dim=1)
        on_host = zip(wanted, ids.cpu().numpy(), scores.double().cpu().numpy(), strict=True)
        found = []
        for row, (count, row_ids, row_scores) in enumerate(on_host):
            if 0 < count < len(row_scores) and row_scores[count] == row_scores[count - 1]:
                tied = (logits[row] >= row_scores[count - 1]).nonzero()[:, 0]
                row_ids = tied.cpu().numpy()
                row_scores = logits[row, tied].double().cpu().numpy()
            else:
                row_ids, row_scores = row_ids[:count], row_scores[:count]
            found.append(rank_arrays(row_ids, row_scores, count))
        return found
