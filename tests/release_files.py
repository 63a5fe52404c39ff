"""Small query sets to write as the files of a release, and what a set holds, for tests."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.query.shape import STRUCTURES
from conekg.sampling.betae_files import write_betae
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.query_set import QuerySet
from conekg.sampling.sample import sample_query_set

PLAIN = SamplingProtocol("plain", cap=12, patience=20_000)

Write = Callable[[Path, QuerySet], list[Path]]
FORMS: list[tuple[Write, str, str]] = [
    (write_betae, "BetaE", "{}-queries-origin.json"),
    (write_query2box, "Query2Box", "{}_triples_origin.json"),
]
"""Of each release: what writes its files, its name, and that of the file of origin, by split."""


def sampled_queries(
    graph: KnowledgeGraph, split: Split, names: tuple[str, ...], *, count: int = 10, seed: int = 0
) -> QuerySet:
    """Queries of some structures, up to `count` of each."""
    shapes = [STRUCTURES[name] for name in names]
    return sample_query_set(graph, split, PLAIN, seed, shapes=shapes, count=count).query_set


def content(
    query_set: QuerySet,
) -> dict[str, dict[tuple[int, ...], tuple[list[int], list[int]]]]:
    """Answers by shape and query, whatever the order of the queries."""
    return {
        block.shape.name: {
            (*block.anchors[row].tolist(), *block.relations[row].tolist()): (
                block.easy[row].tolist(),
                block.hard[row].tolist(),
            )
            for row in range(len(block))
        }
        for block in query_set
    }


def origin(query_set: QuerySet) -> tuple[object, ...]:
    """All that a set says about where its queries come from."""
    return query_set.release, query_set.protocol, query_set.seed, query_set.paths_from


def write_pickle(path: Path, value: object) -> None:
    """Write what may be no content of a release at all."""
    path.write_bytes(pickle.dumps(value))
