"""Cuts a small benchmark out of a large one: the facts of one domain of Freebase's relations.

It is for trials that would take too long on the whole graph. All held-out facts but two become
validation facts. Otherwise answers that follow only from test facts would count as wrong when
validation queries are ranked; with test queries, all true answers are known. Two facts remain test
facts, so that the graph has all three splits.

    python benchmarks/cut_graph.py FB15k --domain music --out music
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from conekg.errors import ConeKGError, DataError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.source import open_graph
from conekg.graph.store import save_graph
from conekg.graph.vocabulary import NameTable, Vocabulary


def cut(graph: KnowledgeGraph, domain: str) -> KnowledgeGraph:
    """The facts whose relation's name begins with `/domain/`.

    Held-out facts are kept only if training facts have their entities and their relation. Raises
    `DataError` if no training fact is in the domain.
    """
    names = list(graph.vocabulary.relations)
    chosen = [place for place, name in enumerate(names) if name.startswith(f"/{domain}/")]
    inside = {split: _of_relations(graph.edges(split), chosen) for split in SPLITS}
    train = inside["train"]
    if not len(train):
        known = sorted({name.split("/")[1] for name in names if name.startswith("/")})
        raise DataError(f"no training fact has a relation of /{domain}/: there are {known}")
    entities = np.unique(train[:, [0, 2]])
    relations = np.unique(train[:, 1] // 2)
    held_out = np.concatenate([inside["valid"], inside["test"]])
    seen = np.isin(held_out[:, [0, 2]], entities).all(axis=1)
    held_out = held_out[seen & np.isin(held_out[:, 1] // 2, relations)]

    def renumbered(edges: np.ndarray) -> np.ndarray:
        heads, tails = (np.searchsorted(entities, edges[:, column]) for column in (0, 2))
        kinds = 2 * np.searchsorted(relations, edges[:, 1] // 2) + edges[:, 1] % 2
        return np.stack([heads, kinds, tails], axis=1).astype(np.int32)

    vocabulary = Vocabulary(
        NameTable("entity", graph.vocabulary.entities.names.take(entities)),
        NameTable("relation", [names[i] for i in relations]),
    )
    parts = {"train": train, "valid": held_out[:-4], "test": held_out[-4:]}
    edges = {split: renumbered(parts[split]) for split in SPLITS}
    return KnowledgeGraph(f"{graph.name}-{domain}", vocabulary, edges)


def _of_relations(edges: np.ndarray, chosen: list[int]) -> np.ndarray:
    return edges[np.isin(edges[:, 1] // 2, chosen)]


def main() -> int:
    """Cut the graph, save it, and print its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graph", help="a folder or the name of a benchmark")
    parser.add_argument("--domain", required=True, help="first part of the relations' names")
    parser.add_argument("--out", type=Path, required=True, help="folder for the small graph")
    options = parser.parse_args()
    try:
        small = cut(open_graph(options.graph), options.domain)
        save_graph(small, options.out)
    except ConeKGError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    held_out = len(small.edges("valid")) + len(small.edges("test"))
    print(
        f"{small.num_entities:,} entities, {len(small.edges('train')) // 2:,} training facts, "
        f"{held_out // 2:,} held out"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
