"""Entities that a question names as its answers: filters, and nothing for the model to rank by.

`France.borders & Japan` asks whether Japan borders France. A model that intersects the cone
of Japan with the other one answers whether Japan is Japan. So a branch is ranked by what is
left of it without such names, and gives back no others than it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray, LongArray
from conekg.query.rewrite import UnionForm, flatten, union_free_branches
from conekg.query.shape import Grounded, grounded
from conekg.query.tree import Anchor, And, Not, Query, all_of, any_of


@dataclass(frozen=True, slots=True)
class Limit:
    """Which entities a branch may give back."""

    among: frozenset[int] | None = None
    """None: all of them."""
    but: frozenset[int] = frozenset()

    @property
    def is_none(self) -> bool:
        """Whether nothing is left out."""
        return self.among is None and not self.but

    def allowed(self, ids: IntArray | LongArray) -> NDArray[np.bool_]:
        """[n] whether each of the ids may come back."""
        found = ~np.isin(ids, list(self.but))
        return found if self.among is None else found & np.isin(ids, list(self.among))


@dataclass(frozen=True, slots=True)
class RankedBy:
    """What a model ranks a question's entities by."""

    grounded: Grounded
    limits: tuple[Limit, ...]
    """One for each of its branches; empty where none of them leaves anything out."""

    def allowed(self, ids: IntArray | LongArray) -> NDArray[np.bool_] | None:
        """[branches, n] who may come back from which branch; None where all may from each.

        Whoever may come back from none, and so is no answer, counts as if from each.
        """
        if not self.limits:
            return None
        found = np.stack([limit.allowed(ids) for limit in self.limits])
        return found | ~found.any(axis=0)


def ranked_by(query: Query, union: UnionForm, cap: int) -> RankedBy:
    """A query of `cap` branches at most without the entities that its branches name.

    >>> form = ranked_by(Anchor(3).project(0) & Anchor(7), "dnf", 1)
    >>> form.grounded == grounded(Anchor(3).project(0)), form.limits[0].among
    (True, frozenset({7}))
    """
    parts = [_without_names(branch) for branch in union_free_branches(query, union, cap)]
    limits = tuple(limit for _, limit in parts)
    if all(limit.is_none for limit in limits):
        return RankedBy(grounded(query), ())
    rests = tuple(rest for rest, _ in parts)
    return RankedBy(grounded(any_of(rests)), limits)


def _without_names(branch: Query) -> tuple[Query, Limit]:
    """What is left of a union-free tree, and whom it names; one of the names if nothing is left."""
    flat = flatten(branch)
    operands = flat.operands if isinstance(flat, And) else (flat,)
    rest = [operand for operand in operands if not _is_name(operand)]
    if len(rest) == len(operands):
        return branch, Limit()
    named = _ids(operands)
    but = _ids([operand.operand for operand in operands if isinstance(operand, Not)])
    # Nothing is two entities at once.
    among = None if not named else named - but if len(named) == 1 else frozenset[int]()
    if not rest:
        rest = sorted(operands, key=lambda operand: isinstance(operand, Not))[:1]
    return all_of(rest), Limit(among, but)


def _ids(queries: Sequence[Query]) -> frozenset[int]:
    return frozenset(query.entity_id for query in queries if isinstance(query, Anchor))


def _is_name(query: Query) -> bool:
    return isinstance(query.operand if isinstance(query, Not) else query, Anchor)
