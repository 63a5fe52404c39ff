"""Entities that a question names as its answers, which are treated as filters.

`France.borders & Japan` asks whether Japan borders France. Intersecting the cone of Japan with the
other cone would make every score depend on the distance to Japan. So a branch is ranked by its
other parts alone, and only the entities that it names can be its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.graph.adjacency import IntArray, LongArray
from conekg.query.branches import UnionForm, union_free_branches
from conekg.query.rewrite import flatten
from conekg.query.shape import Grounded, grounded
from conekg.query.tree import Anchor, And, Not, Query, all_of, any_of


@dataclass(frozen=True, slots=True)
class Limit:
    """Which entities can be answers of a branch."""

    among: frozenset[int] | None = None
    """Only these; None for all entities."""
    but: frozenset[int] = frozenset()
    """Never these."""

    @property
    def is_none(self) -> bool:
        """Whether all entities are allowed."""
        return self.among is None and not self.but

    def allowed(self, ids: IntArray | LongArray) -> NDArray[np.bool_]:
        """[n] whether each of the ids can be an answer."""
        found = ~np.isin(ids, list(self.but))
        return found if self.among is None else found & np.isin(ids, list(self.among))


@dataclass(frozen=True, slots=True)
class RankedBy:
    """The query that a model ranks a question's entities by, and the filters of its branches."""

    grounded: Grounded
    limits: tuple[Limit, ...]
    """One for each union-free branch; empty if every branch allows all entities."""

    def allowed(self, ids: IntArray | LongArray) -> NDArray[np.bool_] | None:
        """[branches, n] whether each id can be an answer of each branch; None if always.

        An id that no branch allows is no answer, but still gets a score: as if all allowed it.
        """
        if not self.limits:
            return None
        found = np.stack([limit.allowed(ids) for limit in self.limits])
        return found | ~found.any(axis=0)

    def barred(self, num_entities: int) -> list[IntArray]:
        """For each branch the sorted ids that it must not return; empty if no branch names any."""
        all_ids = np.arange(num_entities, dtype=np.int32)
        allowed = self.allowed(all_ids)
        return [] if allowed is None else [all_ids[~row] for row in allowed]


def ranked_by(query: Query, union: UnionForm, cap: int) -> RankedBy:
    """The query without the entities that its branches name, which become the branches' limits.

    The query has `cap` branches at most.

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
    """A branch without the entities that it names, and the limit that they set.

    A branch of names alone keeps one of them, for there must be something to rank by.
    """
    flat = flatten(branch)
    operands = flat.operands if isinstance(flat, And) else (flat,)
    rest = [operand for operand in operands if not _is_name(operand)]
    if len(rest) == len(operands):
        return branch, Limit()
    named = _ids(operands)
    but = _ids([operand.operand for operand in operands if isinstance(operand, Not)])
    # An entity is no other entity: an intersection of two names is empty.
    among = None if not named else named - but if len(named) == 1 else frozenset[int]()
    if not rest:
        rest = sorted(operands, key=lambda operand: isinstance(operand, Not))[:1]
    return all_of(rest), Limit(among, but)


def _ids(queries: Sequence[Query]) -> frozenset[int]:
    """The entities among the queries; other queries are ignored."""
    return frozenset(query.entity_id for query in queries if isinstance(query, Anchor))


def _is_name(query: Query) -> bool:
    """Whether a query is an entity or a negated entity."""
    return isinstance(query.operand if isinstance(query, Not) else query, Anchor)
