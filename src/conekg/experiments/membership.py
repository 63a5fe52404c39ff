"""Appendix E: an entity is an answer when most of its dimensions are inside the region.

The paper takes 500 of 800 dimensions; here it is five eighths of however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conekg.errors import UnsupportedOperatorError
from conekg.experiments.embedded import chosen_blocks, embedded_batches
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    missing_note,
    title_of,
)
from conekg.experiments.options import Options
from conekg.experiments.published import MODEL_TITLES, Published, published
from conekg.experiments.statistics import Floats
from conekg.experiments.table import Row, Table, difference
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.model.embed import best_over_branches
from conekg.model.interface import QueryModel
from conekg.model.support import missing_operators
from conekg.query.rewrite import union_free_branches
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.sampling.query_set import QueryBlock
from conekg.training.run import Run

MAJORITY = 500 / 800
"""The least share of dimensions that an answer has inside the region."""

_CELLS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 26}
"""How many (branch of a query, entity) are in memory at a time."""

_SPLITS: tuple[Split, ...] = ("valid", "test")
_COLUMNS = ("precision", "recall", "pooled precision", "pooled recall")

NOTES = (
    "An entity is taken for an answer when at least 5/8 of its dimensions (the paper's 500 of 800) "
    "are inside the query's region, borders included; of a union, inside that of one branch. "
    "Answers are all answers on the split's graph, easy and hard; all others are negatives.",
    "Precision and recall: of each query, then the mean over queries, then over structures; a "
    "query for which nothing is taken has precision 0. Pooled: of all pairs of query and entity "
    "together. The paper does not say which of the two it reports.",
)


@dataclass(frozen=True)
class Hits:
    """Per query: entities taken for answers, true answers, and those that are both."""

    taken: Floats
    true: Floats
    both: Floats

    def precision(self) -> float:
        """The mean over queries of how much of what was taken is true."""
        return float(np.mean(self.both / np.maximum(self.taken, 1.0)))

    def recall(self) -> float:
        """The mean over queries of how much of what is true was taken."""
        return float(np.mean(self.both / np.maximum(self.true, 1.0)))


def membership(runs: Sequence[Run], options: Options) -> Tables:
    """Precision and recall of the majority rule (Tables 18 and 19)."""
    data_set = common_data_set(runs)
    positive = list[Row](), published("tab:answer_epfo", data_set)
    negative = list[Row](), published("tab:answer_neg", data_set)
    notes = list(NOTES)
    for run in runs:
        model = run.load_model(options.checkpoint, options.device)
        if not model.has_extent:
            raise UnsupportedOperatorError(
                f"a region of {model.name} has no inside, so it holds no entities",
                hint="models whose regions do are cone and box",
            )
        for split in _SPLITS:
            if not run.has_queries(split):
                notes.append(f"{title_of(run)} has no {split} queries.")
                continue
            for rows, structures in (
                (positive[0], POSITIVE_STRUCTURES),
                (negative[0], NEGATION_STRUCTURES),
            ):
                values = _measure(model, run, options, split, structures)
                if values:
                    rows.append(Row(f"{title_of(run)}, {split}", values))
        if not model.can_negate:
            notes.append(f"{title_of(run)} has no negation: it is in the first table only.")
        notes.append(describe(run))
    notes += missing_note(positive[1], runs[0].graph.name)
    where, models = runs[0].graph.name, {title_of(run): run.recipe.model for run in runs}
    return (
        _table(f"Membership, queries without negation, {where}", *positive, models, notes),
        _table(f"Membership, queries with negation, {where}", *negative, models, notes),
    )


def _measure(
    model: QueryModel, run: Run, options: Options, split: Split, structures: Sequence[str]
) -> dict[str, float]:
    """Precision and recall over the structures that the model can answer, if there are any."""
    found = [
        hits_of_block(model, run.graph, split, block)
        for block in chosen_blocks(run, options, structures, split)
        if not missing_operators(model, block.shape)
    ]
    if not found:
        return {}
    taken, true, both = (
        sum(float(getattr(hits, name).sum()) for hits in found)
        for name in ("taken", "true", "both")
    )
    values = (
        float(np.mean([hits.precision() for hits in found])),
        float(np.mean([hits.recall() for hits in found])),
        both / max(taken, 1.0),
        both / max(true, 1.0),
    )
    return dict(zip(_COLUMNS, values, strict=True))


@torch.inference_mode()
def hits_of_block(
    model: QueryModel, graph: KnowledgeGraph, split: Split, block: QueryBlock
) -> Hits:
    """What the rule takes for answers, query by query of one structure."""
    branches = len(union_free_branches(block.shape.template))
    budget = _CELLS_AT_ONCE.get(model.entity.device.type, _CELLS_AT_ONCE["cpu"])
    rows_at_once = max(1, budget // (branches * graph.num_entities))
    taken, true, both = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    for batch in embedded_batches(model, graph, split, block, rows_at_once):
        inside = best_over_branches(batch.plan, model.inside_fraction_of_all(batch.region))
        # A share is a sum of ones divided by d: 5/8 must not be missed by rounding.
        is_taken = inside >= MAJORITY - 1e-6
        taken.append(is_taken.sum(dim=1).double().cpu().numpy())
        true.append(batch.answers.lengths.astype(np.float64))
        both.append(_count_true(is_taken, batch.answers))
    return Hits(np.concatenate(taken), np.concatenate(true), np.concatenate(both))


def _count_true(is_taken: Tensor, answers: Ragged) -> Floats:
    """[rows] how many of each row's answers are taken."""
    rows = np.repeat(np.arange(len(answers)), answers.lengths)
    ids = torch.from_numpy(answers.values.astype(np.int64)).to(is_taken.device)
    taken = is_taken[torch.from_numpy(rows).to(is_taken.device), ids].cpu().numpy()
    return np.bincount(rows, weights=taken, minlength=len(answers)).astype(np.float64)


def _table(
    title: str, rows: list[Row], paper: Published, models: dict[str, str], notes: Sequence[str]
) -> Table:
    papers = [
        Row(f"{MODEL_TITLES[model]}, {split}, {paper.place}", values, "paper")
        for (model, split), values in ((name.split("-"), row) for name, row in paper.rows.items())
    ]
    comparisons = []
    for row in rows:
        run_title, split = row.label.rsplit(", ", 1)
        apart = difference(row.values, paper.row(f"{models[run_title]}-{split}"))
        if apart:
            comparisons.append(Row(f"{row.label} − paper", apart, "comparison"))
    return Table(
        title=title,
        columns=_COLUMNS,
        rows=(*rows, *papers, *comparisons),
        paper=paper.label,
        unit=paper.unit,
        notes=tuple(dict.fromkeys(notes)),
        digits=3,
    )


MEMBERSHIP = Experiment(
    name="membership",
    paper=("tab:answer_epfo", "tab:answer_neg"),
    summary="precision and recall when most dimensions inside make an answer",
    run=membership,
    options=("checkpoint", "max_queries"),
)
