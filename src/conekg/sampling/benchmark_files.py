"""The queries in a folder of a public benchmark, in the form of the BetaE or Query2Box release.

Which of the two a folder holds is decided here, by its file names; each form is a module of its
own. Both are pickles of plain containers, which only the restricted unpickler reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from conekg.errors import DataError
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.sampling.betae_files import BETAE, has_betae_queries, read_betae, write_betae
from conekg.sampling.query2box_files import (
    QUERY2BOX,
    has_query2box_queries,
    read_query2box,
    write_query2box,
)
from conekg.sampling.query_set import QuerySet

Form: TypeAlias = Literal["betae", "query2box"]
"""The release whose file names and content are meant."""


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


def write_queries(folder: str | Path, query_set: QuerySet, form: Form) -> list[Path]:
    """The files, after writing a set in one of the two forms.

    Raises the errors of `write_betae`, and `DataError` also if the folder has queries of the split
    in the other form: of a folder that has both, `read_queries` would read one and ignore the
    other.
    """
    place, split = Path(folder), query_set.split
    is_betae = form == "betae"
    has_others = has_query2box_queries if is_betae else has_betae_queries
    if has_others(place, split):
        raise DataError(
            f"holds {split} queries in the form of {QUERY2BOX if is_betae else BETAE}; of a folder "
            "with both forms, those of BetaE alone are read",
            path=str(place),
            hint="choose another folder, or remove the other queries first",
        )
    return (write_betae if is_betae else write_query2box)(place, query_set)
