"""Splits triples into training, validation and test triples at random, by a seed.

A fact is held out only if its entities and its relation still occur in training, so that a model
has seen everything that validation and test ask about.
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
    """The shares of the facts to hold out for validation and test, and the random seed."""

    valid: float = 0.05
    test: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for key, share in (("valid", self.valid), ("test", self.test)):
            if (
                isinstance(share, bool)
                or not isinstance(share, float | int | np.floating | np.integer)
                or not 0 <= share < 1
            ):
                raise ConfigError(
                    f"the {key} share is {share!r}; it must be a number of at least 0 and below 1",
                    key=key,
                )
        if self.valid + self.test >= 1:
            raise ConfigError(
                f"the valid share {self.valid} and the test share {self.test} leave nothing "
                "to train on; together they must stay below 1"
            )
        is_whole = isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool)
        if not is_whole or self.seed < 0:
            raise ConfigError(
                f"the seed is {self.seed!r}; it must be a whole number that is not negative",
                key="seed",
            )

    def wanted(self, num_triples: int) -> tuple[int, int]:
        """How many of `num_triples` facts to hold out for validation and for test."""
        return round(self.valid * num_triples), round(self.test * num_triples)


def split_triples(
    triples: IntArray, num_entities: int, num_relations: int, hold_out: HoldOut
) -> dict[Split, IntArray]:
    """`triples` [n, 3] in three parts, each in the original order.

    Fewer than the wanted share are held out where too many facts are needed in training, because
    no other fact mentions their entity or relation.
    """
    order = np.random.default_rng(hold_out.seed).permutation(len(triples))
    shuffled = triples[order]
    needed = _covering(shuffled, num_entities, num_relations)
    free = order[~needed]
    wanted_valid, wanted_test = hold_out.wanted(len(triples))
    if wanted_valid + wanted_test > len(free):  # shrink both in proportion
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
    for rows, ids, size in mentions:
        first_row = np.full(size, -1, dtype=np.int64)
        first_row[ids] = rows  # of several assignments the last wins, here the earliest row
        needed[first_row[first_row >= 0]] = True
    return needed
