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
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.plan import branches_of
from conekg.query.shape import Shape
from conekg.sampling.query_set import QueryBlock, QuerySet

_SCORES_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 26}
"""How many scores of (branch, entity) are in memory at a time, by kind of device."""


class Scorer(Protocol):
    """What can be evaluated."""

    @property
    def name(self) -> str:
        """The name in the report."""
        ...

    @property
    def device(self) -> torch.device:
        """The device of the scores."""
        ...

    @property
    def union(self) -> UnionForm:
        """How unions are answered: `dnf` or `demorgan`."""
        ...

    def why_not(self, shape: Shape) -> str | None:
        """Why queries of this shape cannot be answered; None if they can."""
        ...

    def tables_of(self, shape: Shape) -> int:
        """How many scores per entity are in memory while one query of this shape is scored."""
        ...

    def scores(self, block: QueryBlock) -> Tensor:
        """[queries, num_entities] scores, larger for likelier answers."""
        ...


class ModelScorer:
    """Scores of a model under the weights it has when the scorer is made."""

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
        """The device of the model's weights."""
        return self._model.device

    @property
    def union(self) -> UnionForm:
        """`dnf`, the best of a union's branches, or `demorgan`, De Morgan's law."""
        return self._union

    def why_not(self, shape: Shape) -> str | None:
        """The operators that the model lacks, or that the shape has too many branches; or None."""
        try:
            missing = missing_operators(self._model, shape, self._union)
        except QueryTooLargeError as error:
            return f"{error.message}, unless unions are taken by De Morgan's law"
        return f"{self.name} has no {' and no '.join(missing)}" if missing else None

    def tables_of(self, shape: Shape) -> int:
        """The number of branches that are embedded; by De Morgan's law, one."""
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

    Queries without a hard answer are left out. Structures that the model cannot answer are
    reported with the reason. Of each structure at most `max_queries` queries are ranked, evenly
    spaced. `union` says how a model answers unions, by default as `dnf`; a scorer has a form of its
    own, and any other is refused. `progress` is called with the numbers of finished and of all
    queries, `ranked` with the ranked queries of a structure and the ranks of their hard answers,
    query by query.
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

                def advance(rows: int, before: int = done) -> None:
                    progress(before + rows, total)

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
    """The ranks of one structure's hard answers, by batches of at most `_SCORES_AT_ONCE` scores."""
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
    """The queries with a hard answer, at most `max_queries` of them, evenly spaced."""
    rows = np.flatnonzero(block.hard.lengths)
    with_hard = block if len(rows) == len(block) else block.take(rows)
    return with_hard.evenly_spaced(max_queries)


def _to_device(answers: Ragged, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.from_numpy(answers.offsets.astype(np.int64)).to(device),
        torch.from_numpy(answers.values.astype(np.int64)).to(device),
    )
