"""Witnesses: the cheapest way to fill in the variables of a query for given answers.

Walking down from the answers, every projection proposes entities that may have led
there; walking back up, each keeps its cheapest origin. A fact costs nothing and a
guess what the model's one-hop projection says, so that facts are preferred, and an
answer that follows from facts gets a path of facts alone.
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
from conekg.query.rewrite import DEFAULT_BRANCH_CAP, UnionForm, capped
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
"""What a guess costs beyond what the model says: a sure guess is still no fact."""
_CONTRADICTION = 100.0
"""Worse than any number of guesses a query can ask for."""
_NEAR = 8
"""Origins that are proposed for each answer from the facts around it, at most."""
_SHARED = 16
"""Origins that are proposed for all answers, from the sub-query's own best entities."""
_SPREAD = 128
"""Origins in all from which on each answer gets a single one of its own."""

_EDGES_AT_ONCE = 1 << 16
"""Single edges scored together, which bounds the memory that hundreds of answers take."""


@dataclass(frozen=True)
class Cell:
    """One node of the query with the entities it was tried on and the cheapest way to each."""

    query: Query
    entity_ids: LongArray
    """[candidates]"""
    costs: FloatArray
    """[candidates]"""
    scores: FloatArray
    """[candidates] of a projection its chosen hop, of a negation or an entity the region."""
    facts: NDArray[np.bool_]
    """[candidates] of a projection whether the chosen hop is a fact; else whether it holds."""
    choices: LongArray
    """[candidates] of a projection which origin was chosen, of a union which operand."""
    operands: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Step:
    """A part of the query as one witness meets it: a hop, a negation, or a named entity."""

    cell: Cell
    candidate: int

    @property
    def entity_id(self) -> int:
        """Where the step ends."""
        return int(self.cell.entity_ids[self.candidate])

    @property
    def origin_id(self) -> int | None:
        """Where a hop starts; None for other steps."""
        if not isinstance(self.cell.query, Project):
            return None
        return int(self.cell.operands[0].entity_ids[self.cell.choices[self.candidate]])

    @property
    def score(self) -> float:
        """The model's logit."""
        return float(self.cell.scores[self.candidate])

    @property
    def holds(self) -> bool:
        """Whether the known graph says so."""
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
                else:  # first all that leads to where the hop starts
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

    Negations in `query` stand before projections and entities only; `adjacency` holds
    what counts as a fact.
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
        """The cheapest ways to the given entities; its candidates are in the order given."""
        with torch.inference_mode():
            return descend(self._cell(self._query, np.array(entity_ids, dtype=np.int64)))

    def _cell(self, query: Query, ids: LongArray) -> Descent[Cell]:
        nowhere = np.zeros(len(ids), dtype=np.int64)
        match query:
            case Universe():
                zero = np.zeros(len(ids))
                return Cell(query, ids, zero, zero, np.ones(len(ids), dtype=bool), nowhere)
            case Anchor() | Not():
                holds = np.isin(ids, self._known_answers(query))
                scores = self._scores(query, ids)
                costs = np.where(holds, 0.0, _CONTRADICTION + np.logaddexp(0, -scores))
                return Cell(query, ids, costs, scores, holds, nowhere)
            case And(operands):
                cells = yield self._cells(operands, ids)
                costs = np.sum([cell.costs for cell in cells], axis=0)
                return self._joined(query, ids, costs, nowhere, cells)
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
        return Cell(query, ids, costs, -costs, costs < _GUESS, choices, cells)

    def _hop(self, query: Query, ids: LongArray, relation_id: int, origins: Cell) -> Cell:
        """Each entity with its cheapest origin; among equals the one the model likes best."""
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
        """Entities from which one hop may have led to each of `ids`."""
        if isinstance(operand, Anchor):
            return np.array([operand.entity_id], dtype=np.int64)
        known = self._known_answers(operand)
        near = max(1, min(_NEAR, _SPREAD // len(ids)))
        proposed: list[LongArray] = []
        for entity_id in ids.tolist():
            around = self._adjacency.neighbors(entity_id, inverse_of(relation_id))
            sure = np.intersect1d(around, known, assume_unique=True)
            unsure = np.setdiff1d(around, known, assume_unique=True)
            proposed.extend(self._best_of(operand, part, near) for part in (sure, unsure))
        if isinstance(operand, Universe):
            proposed.append(self._likely_heads(relation_id, ids))
        else:
            proposed.extend(self._best_overall(operand, known))
        return np.unique(np.concatenate(proposed))

    def _best_of(self, query: Query, ids: IntArray, count: int) -> LongArray:
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
        """For each entity the one the model takes for the likeliest head of such an edge."""
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
    """The parts of a query that entities are scored by, each once.

    Of an intersection or union those are its operands, unless a projection starts from it.
    """
    found: dict[Query, None] = {}
    for node in subtrees(query):
        if isinstance(node, Anchor | Not):
            found[node] = None
        elif isinstance(node, Project) and not isinstance(node.operand, Universe):
            found[node.operand] = None
    return list(found)
