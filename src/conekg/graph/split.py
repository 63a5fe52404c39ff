"""Splitting: which facts a model may see, and which are held out to be predicted.

Facts are held out at random but never the last one of an entity or a relation, so
that everything asked about at validation or test time occurs in training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.errors import ConfigError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import Split


@dataclass(frozen=True)
class HoldOut:
    """Which share of the facts is held out for validation and for test, and by which seed."""

    valid: float = 0.05
    test: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for key, share in (("valid", self.valid), ("test", self.test)):
            if not 0 <= share < 1:
                raise ConfigError(
                    f"the {key} share is {share}; it must be at least 0 and below 1", key=key
                )
        if self.valid + self.test >= 1:
            raise ConfigError(
                f"the valid share {self.valid} and the test share {self.test} leave nothing "
                "to train on; together they must stay below 1"
            )
        if self.seed < 0:
            raise ConfigError(f"the seed is {self.seed}; it must not be negative", key="seed")

    def wanted(self, num_triples: int) -> tuple[int, int]:
        """How many of so many facts are to be held out for validation and for test."""
        return round(self.valid * num_triples), round(self.test * num_triples)


def split_triples(
    triples: IntArray, num_entities: int, num_relations: int, hold_out: HoldOut
) -> dict[Split, IntArray]:
    """`triples` [n, 3] in three parts that keep the order of the whole.

    Fewer than the wanted share are held out where too many facts are the only one of
    their entity or relation.
    """
    order = np.random.default_rng(hold_out.seed).permutation(len(triples))
    shuffled = triples[order]
    needed = _covering(shuffled, num_entities, num_relations)
    free = order[~needed]
    wanted_valid, wanted_test = hold_out.wanted(len(triples))
    if wanted_valid + wanted_test > len(free):  # shrink both alike
        wanted_valid = len(free) * wanted_valid // (wanted_valid + wanted_test)
        wanted_test = len(free) - wanted_valid
    valid = np.sort(free[:wanted_valid])
    test = np.sort(free[wanted_valid : wanted_valid + wanted_test])
    train = np.ones(len(triples), dtype=bool)
    train[valid] = train[test] = False
    return {"train": triples[train], "valid": triples[valid], "test": triples[test]}


def _covering(triples: IntArray, num_entities: int, num_relations: int) -> NDArray[np.bool_]:
    """[n] whether a triple is the first to mention its head, its relation or its tail."""
    needed = np.zeros(len(triples), dtype=bool)
    backwards = np.arange(len(triples) - 1, -1, -1)
    mentions = [
        (np.repeat(backwards, 2), triples[::-1][:, [2, 0]].ravel(), num_entities),
        (backwards, triples[::-1, 1], num_relations),
    ]
    for places, ids, size in mentions:
        first = np.full(size, -1, dtype=np.int64)
        first[ids] = places  # the last assignment wins, which is the earliest place
        needed[first[first >= 0]] = True
    return needed
