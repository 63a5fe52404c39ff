"""Finds witnesses: the cheapest assignment of entities to a query's variables, for given answers.

On the way down from the answers, every projection proposes entities that may be its origins; on
the way back up, each entity keeps its cheapest origin. A hop that is a fact costs nothing; a
guess costs more the lower the model scores it. So facts are preferred, and an answer that follows
from facts gets a path of facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray

from conekg.answering.batch import EmbeddedQueries, embed_queries
from conekg.answering.index import EntityIndex
from conekg.answering.ranking import merge_rankings
from conekg.graph.adjacency import Adjacency, IntArray, LongArray
from conekg.model.interface import QueryModel, Region
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm, capped
from conekg.query.tree import (
    Anchor,
    And,
    Descent,
    Not,
    Or,
    Project,
    Query,
    Universe,
    descend,
    inverse_of,
    subtrees,
)
from conekg.symbolic.engine import answer

FloatArray = NDArray[np.float64]

_GUESS = 1.0
"""The cost of a guess, besides its cost by score: even a sure guess is worse than a fact."""
_CONTRADICTION = 100.0
"""The cost of a contradiction, besides its cost by score: more than that of many guesses."""
_NEAR = 8
"""At most this many origins are proposed for each answer from the facts about it, twice: among the
known answers of the operand, and among other entities."""
_SHARED = 16
"""This many origins are proposed for all answers together, twice: the operand's best known answers,
and its best entities of all."""
_SPREAD = 128
"""`_NEAR` is lowered to this number divided by the number of answers, though not below 1."""

_EDGES_AT_ONCE = 1 << 16
"""Single edges scored together, which bounds the memory for hundreds of answers."""


@dataclass(frozen=True)
class Cell:
    """One node of the query with candidate entities, and the cheapest witness of each."""

    query: Query
    entity_ids: LongArray
    """[candidates]"""
    costs: FloatArray
    """[candidates] the cost of the cheapest witness."""
    scores: FloatArray
    """[candidates] the logit of a projection's chosen hop, of a negation or of an entity; for
    intersections and unions minus the cost."""
    facts: NDArray[np.bool_]
    """[candidates] for a projection whether the chosen hop is a fact, else whether the known
    facts support the node."""
    choices: LongArray
    """[candidates] the place of a projection's chosen origin, or of a union's chosen operand."""
    operands: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Step:
    """One step of a witness: a hop, a negated condition, or a named entity."""

    cell: Cell
    candidate: int

    @property
    def entity_id(self) -> int:
        """The entity that the step leads to."""
        return int(self.cell.entity_ids[self.candidate])

    @property
    def origin_id(self) -> int | None:
        """The entity that a hop starts from; None for other steps."""
        if not isinstance(self.cell.query, Project):
            return None
        return int(self.cell.operands[0].entity_ids[self.cell.choices[self.candidate]])

    @property
    def score(self) -> float:
        """The model's logit."""
        return float(self.cell.scores[self.candidate])

    @property
    def holds(self) -> bool:
        """Whether the known facts support the step."""
        return bool(self.cell.facts[self.candidate])


def walk(cell: Cell, candidate: int) -> Iterator[Step]:
    """The steps of the cheapest witness of a candidate, from the anchors to the answer."""
    pending = [(cell, candidate, False)]
    while pending:
        cell, candidate, is_reached = pending.pop()
        match cell.query:
            case Universe():
                continue
            case Anchor() | Not():
                yield Step(cell, candidate)
            case Project(operand, _):
                if is_reached or isinstance(operand, Anchor):
                    yield Step(cell, candidate)
                else:  # the steps that lead to the hop's origin come before the hop
                    pending.append((cell, candidate, True))
                    pending.append((cell.operands[0], int(cell.choices[candidate]), False))
            case And():
                pending.extend((part, candidate, False) for part in reversed(cell.operands))
            case Or():
                pending.append((cell.operands[int(cell.choices[candidate])], candidate, False))
            case _:
                assert_never(cell.query)


class WitnessSearch:
    """Finds witnesses for the answers of one query.

    Negations in `query` must stand before projections, entities and `*` only; `adjacency` holds
    the known facts.
    """

    def __init__(
        self,
        model: QueryModel,
        index: EntityIndex,
        adjacency: Adjacency,
        query: Query,
        union: UnionForm = "dnf",
        cap: int = DEFAULT_BRANCH_CAP,
    ) -> None:
        self._model = model
        self._index = index
        self._adjacency = adjacency
        self._query = query
        self._known: dict[Query, IntArray] = {}
        nodes = _scored_nodes(query)
        self._place: dict[Query, int] = {node: place for place, node in enumerate(nodes)}
        forms = [capped(node, union, cap) for node in nodes]
        self._embedded: EmbeddedQueries = embed_queries(model, forms, union, cap)

    def search(self, entity_ids: Sequence[int]) -> Cell:
        """The root cell with the cheapest witness of each given entity, in the order given."""
        with torch.inference_mode():
            return descend(self._cell(self._query, np.array(entity_ids, dtype=np.int64)))

    def _cell(self, query: Query, ids: LongArray) -> Descent[Cell]:
        """The cell of a node for candidate entities, after those of its operands."""
        no_choices = np.zeros(len(ids), dtype=np.int64)
        match query:
            case Universe():
                zero = np.zeros(len(ids))
                return Cell(query, ids, zero, zero, np.ones(len(ids), dtype=bool), no_choices)
            case Anchor() | Not():
                holds = np.isin(ids, self._known_answers(query))
                scores = self._scores(query, ids)
                costs = np.where(holds, 0.0, _CONTRADICTION + np.logaddexp(0, -scores))
                return Cell(query, ids, costs, scores, holds, no_choices)
            case And(operands):
                cells = yield self._cells(operands, ids)
                costs = np.sum([cell.costs for cell in cells], axis=0)
                return self._joined(query, ids, costs, no_choices, cells)
            case Or(operands):
                cells = yield self._cells(operands, ids)
                table = np.stack([cell.costs for cell in cells])
                return self._joined(query, ids, table.min(axis=0), table.argmin(axis=0), cells)
            case Project(operand, relation_id):
                origins = yield self._cell(operand, self._origins(operand, relation_id, ids))
                return self._hop(query, ids, relation_id, origins)
        assert_never(query)

    def _cells(self, queries: Sequence[Query], ids: LongArray) -> Descent[tuple[Cell, ...]]:
        cells: list[Cell] = []
        for query in queries:
            cells.append((yield self._cell(query, ids)))
        return tuple(cells)

    def _joined(
        self, query: Query, ids: LongArray, costs: FloatArray, choices: LongArray,
        cells: tuple[Cell, ...],
    ) -> Cell:  # fmt: skip
        """The cell of an intersection or a union, whose witness holds if it has no guess."""
        return Cell(query, ids, costs, -costs, costs < _GUESS, choices, cells)

    def _hop(self, query: Query, ids: LongArray, relation_id: int, origins: Cell) -> Cell:
        """The cell of a projection: for each entity the cheapest origin, on ties by the model."""
        scores = self._hop_scores(origins.entity_ids, relation_id, ids)
        facts = np.array(
            [
                np.isin(ids, self._adjacency.neighbors(int(origin), relation_id))
                for origin in origins.entity_ids
            ]
        )
        costs = origins.costs[:, None] + np.where(facts, 0.0, _GUESS + np.logaddexp(0, -scores))
        chosen = np.array(
            [np.lexsort((-scores[:, i], costs[:, i]))[0] for i in range(len(ids))], dtype=np.int64
        )
        column = np.arange(len(ids))
        return Cell(
            query,
            ids,
            costs[chosen, column],
            scores[chosen, column],
            facts[chosen, column],
            chosen,
            (origins,),
        )

    def _origins(self, operand: Query, relation_id: int, ids: LongArray) -> LongArray:
        """The sorted ids of proposed origins: heads of facts about `ids`, and likely ones."""
        if isinstance(operand, Anchor):
            return np.array([operand.entity_id], dtype=np.int64)
        known = self._known_answers(operand)
        near = max(1, min(_NEAR, _SPREAD // len(ids)))
        proposed: list[LongArray] = []
        for entity_id in ids.tolist():
            heads = self._adjacency.neighbors(entity_id, inverse_of(relation_id))
            known_heads = np.intersect1d(heads, known, assume_unique=True)
            other_heads = np.setdiff1d(heads, known, assume_unique=True)
            proposed.extend(
                self._best_of(operand, part, near) for part in (known_heads, other_heads)
            )
        if isinstance(operand, Universe):
            proposed.append(self._likely_heads(relation_id, ids))
        else:
            proposed.extend(self._best_overall(operand, known))
        return np.unique(np.concatenate(proposed))

    def _best_of(self, query: Query, ids: IntArray, count: int) -> LongArray:
        """The `count` entities among `ids` that a sub-query scores best; all if there are fewer."""
        if len(ids) <= count:
            return ids.astype(np.int64)
        order = np.argsort(-self._scores(query, ids.astype(np.int64)), kind="stable")
        return ids[order[:count]].astype(np.int64)

    def _best_overall(self, query: Query, known: IntArray) -> list[LongArray]:
        """The best entities of a sub-query: among its known answers, and among all."""
        rows = self._rows(query)
        region = self._region(rows)
        others = np.setdiff1d(np.arange(self._adjacency.num_entities, dtype=np.int32), known)
        nothing = np.empty(0, dtype=np.int32)
        found = []
        for skip in (others, nothing):
            rankings = self._index.top(region, [_SHARED] * len(rows), [skip] * len(rows))
            found.append(merge_rankings(rankings, _SHARED)[0].entity_ids)
        return found

    def _likely_heads(self, relation_id: int, ids: LongArray) -> LongArray:
        """For each entity, the best head of an edge of the relation to it, by the model."""
        region = self._project(ids, inverse_of(relation_id))
        nothing = [np.empty(0, dtype=np.int32)] * len(ids)
        rankings = self._index.top(region, [1] * len(ids), nothing)
        return np.concatenate([ranking.entity_ids for ranking in rankings])

    def _known_answers(self, query: Query) -> IntArray:
        if query not in self._known:
            self._known[query] = answer(self._adjacency, query)
        return self._known[query]

    def _scores(self, query: Query, ids: LongArray) -> FloatArray:
        """[candidates] the model's logits of a sub-query."""
        if isinstance(query, Universe):
            return np.zeros(len(ids))
        region = self._region(self._rows(query))
        logits = self._model.logits(region, self._tensor(ids)[None]).amax(dim=0)
        return np.asarray(logits.double().cpu().numpy())

    def _hop_scores(self, heads: LongArray, relation_id: int, tails: LongArray) -> FloatArray:
        """[heads, tails] the logits of single edges."""
        rows = max(1, _EDGES_AT_ONCE // len(tails))
        candidates = self._tensor(tails)[None]
        scores: list[FloatArray] = []
        for start in range(0, len(heads), rows):
            region = self._project(heads[start : start + rows], relation_id)
            scores.append(self._model.logits(region, candidates).double().cpu().numpy())
        return np.concatenate(scores)

    def _project(self, ids: LongArray, relation_id: int) -> Region:
        relations = torch.full((len(ids),), relation_id, device=self._model.device)
        return self._model.project(self._model.anchor(self._tensor(ids)), relations)

    def _rows(self, query: Query) -> tuple[int, ...]:
        return self._embedded.rows[self._place[query]]

    def _region(self, rows: Sequence[int]) -> Region:
        return tuple(part[list(rows)] for part in self._embedded.region)

    def _tensor(self, ids: LongArray) -> torch.Tensor:
        return torch.as_tensor(ids, device=self._model.device)


def _scored_nodes(query: Query) -> list[Query]:
    """The parts of a query whose regions score entities, each once.

    These are its entities and negations, and the operands of its projections.
    """
    found: dict[Query, None] = {}
    for node in subtrees(query):
        if isinstance(node, Anchor | Not):
            found[node] = None
        elif isinstance(node, Project) and not isinstance(node.operand, Universe):
            found[node.operand] = None
    return list(found)
