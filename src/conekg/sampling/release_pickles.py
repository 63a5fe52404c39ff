"""Reads what the pickles of both releases share: dictionaries, and answers as entity ids.

How the files are named, and what a query looks like in them, is left to the module of each release.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from conekg.errors import DataError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.ragged import Ragged
from conekg.graph.safe_pickle import load_pickle
from conekg.query.tuples import Nested

_RECOMPUTE = (
    "`conekg queries import FOLDER --recompute --out FILE` answers its queries from the graph"
)


def load_dictionary(path: Path) -> dict[Any, Any]:
    """The dictionary in a pickle; `DataError` if it holds something else."""
    content = load_pickle(path)
    if not isinstance(content, dict):
        raise DataError(f"holds a {type(content).__name__}, not a dictionary", path=str(path))
    return content


def load_answers(path: Path) -> Mapping[Nested, Any]:
    """The content of a file of answers, not yet checked; `DataError` if there is none."""
    if not path.is_file():
        raise DataError("no such file of answers", path=str(path), hint=_RECOMPUTE)
    return load_dictionary(path)


def answer_rows(
    keys: list[Nested],
    answers: Mapping[Nested, Any],
    graph: KnowledgeGraph,
    folder: Path,
) -> Ragged:
    """The sorted, distinct answers of each query; `DataError` if a query has no entry."""
    rows: list[IntArray] = []
    for key in keys:
        if key not in answers:
            raise DataError(f"no answers to the query {key!r}", path=str(folder), hint=_RECOMPUTE)
        found = answers[key]
        try:
            # The answers may be a list, which can hold an answer more than once.
            rows.append(np.unique(np.fromiter(map(index, found), np.int32, len(found))))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"the answers to {key!r} are no set of entity ids",
                path=str(folder),
                hint=_RECOMPUTE,
            ) from error
    ragged = Ragged.from_rows(rows)
    outside = ragged.values[(ragged.values < 0) | (ragged.values >= graph.num_entities)]
    if len(outside):
        raise DataError(
            f"the answers name entity {int(outside[0])}; the graph has ids 0 to "
            f"{graph.num_entities - 1}",
            path=str(folder),
            hint="do the queries belong to this graph?",
        )
    return ragged
