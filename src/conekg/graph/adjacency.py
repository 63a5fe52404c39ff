"""Adjacency: the edges of one graph as flat arrays, grouped by (relation, head).

An adjacency is built once and never changed. It consists of plain NumPy arrays, so that it can
be memory-mapped and passed to compiled code without conversion. Inverse edges are stored like
all others, so edges that enter an entity are found as the inverse edges that leave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conekg.graph.edge_keys import edge_keys
from conekg.graph.head_index import HeadIndex, build_head_index
from conekg.graph.tail_index import TailIndex, build_tail_index

IntArray = NDArray[np.int32]
LongArray = NDArray[np.int64]


@dataclass(frozen=True)
class Adjacency:
    """Edges grouped into *pairs*: one pair is a (relation, head) together with all its tails.

    Pairs are sorted by relation, then head; the tails of a pair are sorted.
    """

    num_entities: int
    num_relations: int
    relation_offsets: LongArray
    """[num_relations + 1] the pairs of relation r are numbered from `relation_offsets[r]` up to,
    but not including, `relation_offsets[r + 1]`."""
    pair_heads: IntArray
    """[num_pairs] the head of each pair."""
    pair_offsets: LongArray
    """[num_pairs + 1] the tails of pair p are `tails[pair_offsets[p] : pair_offsets[p + 1]]`."""
    tails: IntArray
    """[num_edges] tail ids."""
    entity_offsets: LongArray
    """[num_entities + 1] where each entity's part of the two arrays below starts."""
    entity_relations: IntArray
    """[num_pairs] the relations that leave each entity, grouped by entity and sorted within it."""
    entity_pairs: IntArray
    """[num_pairs] the number of the pair for that entity and relation."""

    @property
    def num_edges(self) -> int:
        """How many distinct edges there are, inverses included."""
        return len(self.tails)

    @property
    def pair_relations(self) -> IntArray:
        """[num_pairs] the relation of each pair."""
        relations = np.arange(self.num_relations, dtype=np.int32)
        return np.repeat(relations, np.diff(self.relation_offsets))

    @cached_property
    def head_index(self) -> HeadIndex:
        """The index from (relation, head) to pair, built on first use; empty if too large."""
        return build_head_index(self.relation_offsets, self.pair_heads, self.num_entities)

    @cached_property
    def tail_index(self) -> TailIndex:
        """Bitmaps of the pairs that have many tails, built on first use."""
        return build_tail_index(self.pair_offsets, self.tails, self.num_entities)

    def neighbors(self, head_id: int, relation_id: int) -> IntArray:
        """The tails of all `relation_id` edges that leave `head_id`, sorted; a view, not a copy."""
        start, stop = self.entity_offsets[head_id], self.entity_offsets[head_id + 1]
        place = start + np.searchsorted(self.entity_relations[start:stop], relation_id)
        if place == stop or self.entity_relations[place] != relation_id:
            return self.tails[:0]
        pair = self.entity_pairs[place]
        return self.tails[self.pair_offsets[pair] : self.pair_offsets[pair + 1]]

    def relations_of(self, head_id: int) -> IntArray:
        """The relations that leave `head_id`, sorted; a view, not a copy."""
        return self.entity_relations[
            self.entity_offsets[head_id] : self.entity_offsets[head_id + 1]
        ]


def build_adjacency(edges: IntArray, num_entities: int, num_relations: int) -> Adjacency:
    """The adjacency of `edges` [n, 3] (head, relation, tail); duplicates are merged."""
    heads, relations, tails = _sorted_distinct(edges, num_entities)
    starts_pair = np.ones(len(heads), dtype=bool)
    starts_pair[1:] = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
    pair_starts = np.flatnonzero(starts_pair)
    pair_heads = heads[pair_starts]
    pair_relations = relations[pair_starts]
    by_entity = np.argsort(pair_heads, kind="stable")  # relations stay sorted within an entity
    arrays: dict[str, NDArray[Any]] = {
        "relation_offsets": _offsets(pair_relations, num_relations),
        "pair_heads": pair_heads,
        "pair_offsets": np.append(pair_starts, len(tails)).astype(np.int64),
        "tails": tails,
        "entity_offsets": _offsets(pair_heads, num_entities),
        "entity_relations": pair_relations[by_entity],
        "entity_pairs": by_entity.astype(np.int32),
    }
    for array in arrays.values():
        array.flags.writeable = False
    return Adjacency(num_entities=num_entities, num_relations=num_relations, **arrays)


def _sorted_distinct(edges: IntArray, num_entities: int) -> tuple[IntArray, IntArray, IntArray]:
    """Heads, relations and tails of the distinct edges, sorted by relation, head, then tail."""
    key = edge_keys(edges, num_entities)
    key.sort()
    if len(key):
        key = key[np.append(True, key[1:] != key[:-1])]
    size = max(num_entities, 1)
    key, tails = np.divmod(key, size)
    relations, heads = np.divmod(key, size)
    return heads.astype(np.int32), relations.astype(np.int32), tails.astype(np.int32)


def _offsets(groups: IntArray, num_groups: int) -> LongArray:
    """[num_groups + 1] where each group starts when items are sorted by group number."""
    offsets = np.zeros(num_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(groups, minlength=num_groups), out=offsets[1:])
    return offsets
