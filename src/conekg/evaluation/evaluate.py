"""Evaluation: ranks the hard answers of a query set and reports the metrics per structure.

Anything that can score all entities for a block of queries can be evaluated: a model on
any device, or a baseline without parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from conekg.errors import ConfigError, QueryTooLargeError
from conekg.evaluation.metrics import metrics_of
from conekg.evaluation.ranks import Ties, filtered_ranks
from conekg.evaluation.report import Report, StructureResult
from conekg.graph.ragged import Ragged
from conekg.model.embed import best_over_branches, embed_shape
from conekg.model.interface import QueryModel
from conekg.model.scoring import scoring_table
from conekg.model.support import missing_operators
from conekg.query.plan import branches_of
from conekg.query.rewrite import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.shape import Shape
from conekg.sampling.query_set import QueryBlock, QuerySet

_SCORES_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 26}
"""How many scores, branches counted, are in memory at a time."""


class Scorer(Protocol):
    """What can be evaluated."""

    @property
    def name(self) -> str:
        """What the report calls it."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the scores are."""
        ...

    @property
    def union(self) -> UnionForm:
        """How it answers unions."""
        ...

    def why_not(self, shape: Shape) -> str | None:
        """Why queries of this shape cannot be answered; None when they can."""
        ...

    def tables_of(self, shape: Shape) -> int:
        """How many scores of each entity are in memory while a query of this shape is scored."""
        ...

    def scores(self, block: QueryBlock) -> Tensor:
        """[queries, num_entities] larger for likelier answers."""
        ...


class ModelScorer:
    """Scores of a model under the weights it has when this is made."""

    def __init__(self, model: QueryModel, union: UnionForm = "dnf") -> None:
        self._model = model
        self._union: UnionForm = union
        self._table = scoring_table(model)

    @property
    def name(self) -> str:
        """The model's name in the catalog."""
        return self._model.name

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._model.device

    @property
    def union(self) -> UnionForm:
        """As the best of their branches, or by De Morgan's law."""
        return self._union

    def why_not(self, shape: Shape) -> str | None:
        """Which operators the model lacks for this shape, or that it has too many branches."""
        try:
            missing = missing_operators(self._model, shape, self._union)
        except QueryTooLargeError as error:
            return f"{error.message}, unless unions are taken by De Morgan's law"
        return f"{self.name} has no {' and no '.join(missing)}" if missing else None

    def tables_of(self, shape: Shape) -> int:
        """One a branch that is embedded: by De Morgan's law a union is a single one."""
        return len(branches_of(shape, self._union, DEFAULT_BRANCH_CAP))

    def scores(self, block: QueryBlock) -> Tensor:
        """[queries, num_entities] the logits, without dropout; of a union, its best branch's."""
        with _in_eval_mode(self._model):
            plan, region = embed_shape(
                self._model, block.shape, block.anchors, block.relations, self._union
            )
            return best_over_branches(plan, self._table.logits(region))


def evaluate(
    model: QueryModel | Scorer,
    query_set: QuerySet,
    *,
    num_entities: int,
    ties: Ties = "mean",
    union: UnionForm | None = None,
    max_queries: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    ranked: Callable[[QueryBlock, NDArray[np.float64]], None] = lambda block, ranks: None,
) -> Report:
    """The metrics of every structure of a query set, and their averages.

    Structures that the model cannot answer are reported as such, not skipped. At most
    `max_queries` queries of each structure are ranked, evenly spaced ones. `union` says how a
    model is to take unions, by default as `dnf`; a scorer has its own way, and another one is
    refused. `progress` hears how many queries are done, of how many; `ranked` is given the queries
    of each structure that were ranked, and the ranks of their hard answers, query after query.
    """
    if max_queries is not None and max_queries < 1:
        raise ConfigError(f"max_queries is {max_queries}; it must be 1 or more", key="max_queries")
    scorer = _scorer_of(model, union)
    blocks = [_with_hard_answers(block, max_queries) for block in query_set]
    total, done = sum(map(len, blocks)), 0
    results, started = [], time.monotonic()
    with torch.inference_mode():
        for block in blocks:
            reason = scorer.why_not(block.shape)
            if reason is None and len(block):
                at = done  # bound now: the block's progress adds to what was done before it

                def advance(rows: int, at: int = at) -> None:
                    progress(at + rows, total)

                ranks = _ranks_of(scorer, block, num_entities, ties, advance)
                ranked(block, ranks)
                lengths = block.hard.lengths
                metrics = metrics_of(ranks, lengths)
                results.append(
                    StructureResult(block.shape.name, len(block), int(lengths.sum()), metrics)
                )
            else:
                why = reason or "the query set has no query of this structure with a hard answer"
                results.append(StructureResult(block.shape.name, len(block), 0, None, why))
                progress(done + len(block), total)
            done += len(block)
    return Report(
        model=scorer.name,
        split=query_set.split,
        ties=ties,
        union=scorer.union,
        seconds=time.monotonic() - started,
        structures=tuple(results),
    )


def _scorer_of(model: QueryModel | Scorer, union: UnionForm | None) -> Scorer:
    if isinstance(model, QueryModel):
        return ModelScorer(model, union or "dnf")
    if union not in (None, model.union):
        raise ConfigError(
            f"union is {union!r}, but the scorer {model.name!r} answers unions as {model.union!r}; "
            "leave it out, or make the scorer with it",
            key="union",
        )
    return model


@contextmanager
def _in_eval_mode(model: QueryModel) -> Iterator[None]:
    """Switch dropout off inside the block; restore the model's mode afterwards, even on error."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _ranks_of(
    scorer: Scorer,
    block: QueryBlock,
    num_entities: int,
    ties: Ties,
    progress: Callable[[int], None],
) -> NDArray[np.float64]:
    """The ranks of one structure's hard answers, in batches whose scores fit their memory."""
    budget = _SCORES_AT_ONCE.get(scorer.device.type, _SCORES_AT_ONCE["cpu"])
    batch_size = max(1, budget // (scorer.tables_of(block.shape) * max(1, num_entities)))
    ranks: list[NDArray[np.float64]] = []
    for start in range(0, len(block), batch_size):
        rows = np.arange(start, min(start + batch_size, len(block)))
        batch = block.take(rows)
        hard, easy = _to_device(batch.hard, scorer.device), _to_device(batch.easy, scorer.device)
        ranks.append(filtered_ranks(scorer.scores(batch), *hard, *easy, ties).cpu().numpy())
        progress(int(rows[-1]) + 1)
    return np.concatenate(ranks)


def _with_hard_answers(block: QueryBlock, max_queries: int | None) -> QueryBlock:
    """The queries that ask for a prediction at all; of too many, evenly spaced ones."""
    rows = np.flatnonzero(block.hard.lengths)
    asked = block if len(rows) == len(block) else block.take(rows)
    return asked.evenly_spaced(max_queries)


def _to_device(answers: Ragged, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.from_numpy(answers.offsets.astype(np.int64)).to(device),
        torch.from_numpy(answers.values.astype(np.int64)).to(device),
    )
