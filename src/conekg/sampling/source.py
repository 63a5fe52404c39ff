"""The one entry point to query sets: an Arrow file, a folder of them, or a benchmark's folder."""

from __future__ import annotations

from pathlib import Path

from conekg.errors import ConfigError, DataError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.sampling.benchmark_files import holds_queries, read_queries
from conekg.sampling.query_set import QuerySet, load_query_set


def open_queries(
    path: str | Path, split: Split | None, graph: KnowledgeGraph, *, recompute: bool = False
) -> QuerySet:
    """The queries of a split, made for `graph`.

    `path` is an Arrow file of `conekg sample`, a folder with `train.arrow`, `valid.arrow` and
    `test.arrow`, or a BetaE or Query2Box folder. With `recompute`, the answers to the queries of
    a BetaE or Query2Box folder are computed from the graph. A single file holds one split, which
    must be `split` unless that is None; for a folder, None means `test`. Raises `DataError` if
    there are no such queries or they do not fit this graph, and `ConfigError` if an option cannot
    be used with the file.
    """
    place = Path(path)
    own = place if place.is_file() else place / f"{split or 'test'}.arrow"
    if own.is_file():
        query_set = load_query_set(own, graph)
        if split is not None and split != query_set.split:
            raise ConfigError(
                f"{own} holds {query_set.split} queries, not {split} queries; leave the split out "
                "to take those of the file",
                key="split",
            )
        if recompute:
            raise ConfigError(
                f"{own} already has its answers; only those of a benchmark folder can be "
                "recomputed",
                key="recompute",
            )
        return query_set
    if not place.is_dir():
        raise DataError(
            "no such file or folder",
            path=str(place),
            hint="give a file that `conekg sample` wrote, or a BetaE or Query2Box folder",
        )
    return read_queries(place, split or "test", graph, recompute=recompute)


def has_queries(folder: Path, split: Split) -> bool:
    """Whether a folder holds queries of a split in any known format."""
    return (folder / f"{split}.arrow").is_file() or holds_queries(folder, split)


def splits_of(folder: Path) -> list[Split]:
    """The splits of which a folder holds queries; none of them are read.

    Raises `DataError` if there is no such folder.
    """
    if not folder.is_dir():
        what = "it is a file" if folder.exists() else "no such folder"
        raise DataError(
            what,
            path=str(folder),
            hint="give a folder from `conekg sample`, or a BetaE or Query2Box folder",
        )
    return [split for split in SPLITS if has_queries(folder, split)]


def open_all_queries(folder: Path, graph: KnowledgeGraph) -> dict[Split, QuerySet]:
    """The queries of every split that a folder holds; raises the errors of `open_queries`."""
    return {split: open_queries(folder, split, graph) for split in splits_of(folder)}
