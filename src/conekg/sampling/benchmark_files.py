"""The queries in a folder of a public benchmark, in the form of the BetaE or Query2Box release.

Which of the two a folder holds is decided here, by its file names; each form is a module of its
own. Both are pickles of plain containers, which only the restricted unpickler reads.
"""

from __future__ import annotations

from pathlib import Path

from conekg.errors import DataError
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.sampling.betae_files import has_betae_queries, read_betae
from conekg.sampling.query2box_files import has_query2box_queries, read_query2box
from conekg.sampling.query_set import QuerySet


def read_queries(
    folder: str | Path, split: Split, graph: KnowledgeGraph, *, recompute: bool = False
) -> QuerySet:
    """The queries of a split in a BetaE or Query2Box folder, with their answers.

    With `recompute` the answers are computed from the graph, and the folder needs no files of
    answers. Raises `DataError` if there are no such queries or they do not fit this graph.
    """
    place = Path(folder)
    if has_betae_queries(place, split):
        return read_betae(place, split, graph, recompute)
    if has_query2box_queries(place, split):
        return read_query2box(place, split, graph, recompute)
    own = place if place.is_file() else place / f"{split}.arrow"
    if own.is_file():
        raise DataError(
            "not a BetaE or Query2Box folder" if own == place else "a query set already",
            path=str(own),
            hint="`conekg queries info` looks into a query set, --queries takes it as it is",
        )
    raise DataError(
        f"no {split} queries here" if place.is_dir() else "no such folder",
        path=str(place),
        hint=f"a folder of `conekg sample` has {split}.arrow, one of BetaE {split}-queries.pkl, "
        f"one of Query2Box {split}_triples_1c.pkl",
    )


def holds_queries(folder: Path, split: Split) -> bool:
    """Whether a folder has files of queries of a split, as either release names them."""
    return has_betae_queries(folder, split) or has_query2box_queries(folder, split)
