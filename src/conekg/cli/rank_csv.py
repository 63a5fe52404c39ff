"""Ranks as CSV, for comparing runs query by query: one row per hard answer that was ranked."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from conekg.graph.vocabulary import Vocabulary
    from conekg.sampling.query_set import QueryBlock

COLUMNS = ("structure", "query", "question", "answer", "rank")
"""The header row. `query` numbers the ranked queries of a structure, from 1."""


def rank_csv(
    ranked: Iterable[tuple[QueryBlock, NDArray[np.float64]]], vocabulary: Vocabulary
) -> str:
    """The ranks of the hard answers of each block, query after query, with names as in the graph.

    The mean rank of answers with equal scores may end in .5; all other ranks are whole numbers.
    """
    from conekg.query.render import render_query

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for block, ranks in ranked:
        places = iter(ranks.tolist())
        for row in range(len(block)):
            question = render_query(block.query(row), vocabulary)
            for answer in block.hard[row].tolist():
                rank = next(places)
                name = vocabulary.entities.name(answer)
                place = int(rank) if rank.is_integer() else rank
                writer.writerow((block.shape.name, row + 1, question, name, place))
    return text.getvalue()
