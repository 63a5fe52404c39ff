"""One door to query sets: a file of ours, a folder of them, or a benchmark's folder."""

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
    `test.arrow`, or a BetaE or Query2Box folder; of the latter, `recompute` takes the queries
    and answers them from the graph. A single file is of one split, which `split` may confirm;
    of a folder, None is `test`. Raises `DataError` where there are no such queries or they are
    not of this graph, `ConfigError` where an option does not go with the file.
    """
    place = Path(path)
    own = place if place.is_file() else place / f"{split or 'test'}.arrow"
    if own.is_file():
        query_set = load_query_set(own, graph)
        if split is not None and split != query_set.split:
            raise ConfigError(
                f"{own} holds {query_set.split} queries, not {split} queries", key="split"
            )
        if recompute:
            raise ConfigError(
                f"{own} has its answers; only those of a benchmark folder can be recomputed",
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
    """Whether a folder holds queries of a split in any of the known forms."""
    return (folder / f"{split}.arrow").is_file() or holds_queries(folder, split)


def open_all_queries(folder: Path, graph: KnowledgeGraph) -> dict[Split, QuerySet]:
    """The queries of every split that a folder holds."""
    if not folder.is_dir():
        what = "it is a file" if folder.exists() else "no such folder"
        raise DataError(
            what,
            path=str(folder),
            hint="give a folder from `conekg sample`, or a BetaE or Query2Box folder",
        )
    return {
        split: open_queries(folder, split, graph) for split in SPLITS if has_queries(folder, split)
    }
