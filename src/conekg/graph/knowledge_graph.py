"""The knowledge graph: one vocabulary and three nested graphs, train < valid < test.

The *train* graph holds the training edges, the *valid* graph also the validation edges, and the
*test* graph all edges. Answers that a query has in a larger graph but not in a smaller one are
what a model has to predict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from conekg.errors import ConfigError, DataError
from conekg.graph.adjacency import Adjacency, IntArray, build_adjacency
from conekg.graph.edge_keys import check_size, edge_keys
from conekg.graph.text_array import flat_bytes
from conekg.graph.vocabulary import NameTable, Vocabulary

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise ConfigError(f"{split!r} is no split; there are {', '.join(SPLITS)}", key="split")


class KnowledgeGraph:
    """An immutable graph; its edges include both directions (relation 2k and its inverse 2k+1).

    `with_inverses` makes such edges. `adjacency` and `fingerprint` are passed in by the store,
    which keeps them on disk; otherwise they are computed on first use. Raises `DataError` where
    edges are not an [n, 3] array of int32 or hold ids that the vocabulary does not name,
    `ConfigError` where a split is unknown.
    """

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        edges: Mapping[Split, IntArray],
        *,
        adjacency: Mapping[Split, Adjacency] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.name = name
        self.vocabulary = vocabulary
        for split in edges:
            _check_split(split)
        self._edges = {split: _frozen(edges.get(split)) for split in SPLITS}
        self._adjacency: dict[Split, Adjacency] = dict(adjacency or {})
        if fingerprint is not None:
            self.__dict__["fingerprint"] = fingerprint
        else:
            check_size(self.num_entities, self.num_relations)
            for split in SPLITS:
                self._refuse_unknown_ids(split)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(self._edges[split]) // 2:,} {split}" for split in SPLITS)
        return (
            f"<KnowledgeGraph {self.name!r}: {self.num_entities:,} entities, "
            f"{len(self.vocabulary.relations):,} relations, triples: {sizes}>"
        )

    @property
    def num_entities(self) -> int:
        """How many entities the vocabulary names."""
        return len(self.vocabulary.entities)

    @property
    def num_relations(self) -> int:
        """How many relation ids there are, inverses counted."""
        return self.vocabulary.num_relations

    def edges(self, split: Split) -> IntArray:
        """[n, 3] the edges (head, relation, tail) of this split alone, inverses included.

        The array is read-only.
        """
        _check_split(split)
        return self._edges[split]

    def triples(self, split: Split) -> IntArray:
        """[n, 3] the forward edges of this split; their relation ids 2k are even."""
        edges = self.edges(split)
        forward: IntArray = edges[(edges[:, 1] & 1) == 0]
        return forward

    def adjacency(self, split: Split) -> Adjacency:
        """The nested graph of a split: its own edges and those of the splits before it."""
        _check_split(split)
        if split not in self._adjacency:
            parts = [self._edges[part] for part in SPLITS[: SPLITS.index(split) + 1]]
            self._adjacency[split] = build_adjacency(
                np.concatenate(parts), self.num_entities, self.num_relations
            )
        return self._adjacency[split]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the names and edges as hexadecimal text, the same on every machine.

        Labels and the order of edges do not enter it, since neither changes an answer. The order
        of names does, because queries and embeddings refer to entities by id.
        """
        digest = hashlib.sha256(b"conekg graph 1\n")
        for table in (self.vocabulary.entities, self.vocabulary.relations):
            _digest_names(digest, table)
        for split in SPLITS:
            key = edge_keys(self._edges[split], self.num_entities)
            key.sort()
            digest.update(f"{split} {len(key)}\n".encode())
            digest.update(key.astype("<i8", copy=False).data)
        return digest.hexdigest()

    def _refuse_unknown_ids(self, split: Split) -> None:
        edges = self._edges[split]
        if not len(edges):
            return
        for column, kind, size in (
            (0, "entity", self.num_entities),
            (1, "relation", self.num_relations),
            (2, "entity", self.num_entities),
        ):
            low, high = int(edges[:, column].min()), int(edges[:, column].max())
            if low < 0 or high >= size:
                raise DataError(
                    f"{kind} id {low if low < 0 else high} in the {split} edges of graph "
                    f"{self.name!r}; ids go from 0 to {size - 1}"
                )


def with_inverses(triples: IntArray) -> IntArray:
    """[2n, 3] the edges of `triples` [n, 3], whose relations are numbered k = 0, 1, ...

    Each triple becomes a forward edge of relation 2k followed by its inverse of relation 2k+1.
    """
    edges = np.empty((2 * len(triples), 3), dtype=np.int32)
    edges[0::2, 0] = edges[1::2, 2] = triples[:, 0]
    edges[0::2, 1] = 2 * triples[:, 1]
    edges[1::2, 1] = 2 * triples[:, 1] + 1
    edges[0::2, 2] = edges[1::2, 0] = triples[:, 2]
    return edges


def _frozen(edges: IntArray | None) -> IntArray:
    """The edges as a read-only [n, 3] array; a writable array is copied."""
    edges = np.empty((0, 3), dtype=np.int32) if edges is None else np.asarray(edges)
    if edges.ndim != 2 or edges.shape[1] != 3 or edges.dtype != np.int32:
        raise DataError(
            f"edges must be an [n, 3] array of int32, not {list(edges.shape)} of {edges.dtype}"
        )
    if edges.flags.writeable:
        edges = edges.copy()
        edges.flags.writeable = False
    return edges


def _digest_names(digest: hashlib._Hash, table: NameTable) -> None:
    """Add the count, lengths and bytes of all names, so that different tables hash differently."""
    offsets, data = flat_bytes(table.names)
    digest.update(f"{table.kind} {len(table)}\n".encode())
    digest.update(np.diff(offsets).astype("<i8", copy=False).data)
    digest.update(data.data)
