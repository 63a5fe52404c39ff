"""Appendix E (Tables 18 and 19): precision and recall of telling answers by the regions alone.

An entity is taken for an answer if most of its dimensions are inside the query's region. The paper
demands 500 of 800 dimensions; here it is five eighths of any number and, if there are validation
queries, also the share that is best for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conekg.errors import DataError
from conekg.experiments.beside_paper import (
    GIVEN_IN_TRAINING,
    compare,
    of_release,
    origin_note,
    paper_rows,
    release_note,
)
from conekg.experiments.embedded import (
    chosen_blocks,
    counts_note,
    embedded_batches,
    no_queries_note,
    only_structures,
    other_queries_note,
)
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    check_models,
    common_data_set,
    describe,
    notes_of_each,
    title_of,
)
from conekg.experiments.options import Options
from conekg.experiments.plot import Plot, Series
from conekg.experiments.published import Published, model_title, published
from conekg.experiments.statistics import Floats
from conekg.experiments.table import Row, Table
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.model.embed import best_over_branches
from conekg.model.interface import MAJORITY, QueryModel
from conekg.model.support import missing_operators
from conekg.query.branches import union_free_branches
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES, STRUCTURES
from conekg.sampling.query_set import QueryBlock
from conekg.training.run import Run

_CELLS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 26}
"""How many pairs of a query's branch and an entity are in memory at a time, by device."""

_SPLITS: tuple[Split, ...] = ("valid", "test")
_COLUMNS = (
    "share",
    "precision",
    "recall",
    "precision where any is taken",
    "pooled precision",
    "pooled recall",
)

NOTES = (
    "An entity is taken for an answer when at least the given share of its dimensions is inside "
    "the query's region, borders included; of a union, inside that of one branch. The paper's "
    "share is 500 of 800. Answers are all answers on the split's graph, easy and hard; all others "
    "are negatives.",
    "Fitted: the share that has the greatest harmonic mean of precision and recall on the "
    "validation queries of the table.",
    "Precision and recall: of each query, then the mean over queries, then over structures; a "
    "query for which nothing is taken has precision 0, and is left out where any is taken. Pooled: "
    "of all pairs of query and entity together. The paper does not say which of these it reports.",
)


@dataclass(frozen=True)
class Tally:
    """The results on one structure for every threshold k of dimensions inside; arrays [dim + 1].

    At index k, entities with k dimensions or more inside the region are taken for answers.
    """

    precision: Floats
    """Mean over queries; 0 for a query for which nothing is taken."""
    recall: Floats
    """Mean over queries."""
    takers: Floats
    """The share of queries for which any entity is taken."""
    taken: Floats
    """The number of entities taken, over all queries."""
    both: Floats
    """The number of answers among them."""
    true: float
    """The number of answers, over all queries."""


@dataclass(frozen=True)
class Curve:
    """Precision and recall over all structures for every threshold, as in `Tally`."""

    precision: Floats
    recall: Floats
    precision_where_taken: Floats
    """Over the queries for which any entity is taken."""
    pooled_precision: Floats
    """Over all pairs of query and entity together."""
    pooled_recall: Floats

    @classmethod
    def of(cls, tallies: Sequence[Tally]) -> Curve:
        """The means over structures, and the values with all structures pooled.

        `precision_where_taken` leaves out structures for which nothing is taken.
        """
        takers = np.array([tally.takers for tally in tallies])
        precision = np.array([tally.precision for tally in tallies])
        where_taken = np.divide(precision, takers, out=np.zeros_like(takers), where=takers > 0)
        taken, both = (sum(getattr(t, name) for t in tallies) for name in ("taken", "both"))
        true = sum(tally.true for tally in tallies)
        return cls(
            precision.mean(axis=0),
            np.mean([tally.recall for tally in tallies], axis=0),
            where_taken.sum(axis=0) / np.maximum((takers > 0).sum(axis=0), 1),
            both / np.maximum(taken, 1.0),
            both / max(true, 1.0),
        )

    @property
    def dim(self) -> int:
        """The number of dimensions of the model."""
        return len(self.precision) - 1

    def at(self, least: int) -> dict[str, float]:
        """The table's values for a threshold of `least` dimensions."""
        arrays = (
            self.precision,
            self.recall,
            self.precision_where_taken,
            self.pooled_precision,
            self.pooled_recall,
        )
        values = (least / self.dim, *(float(array[least]) for array in arrays))
        return dict(zip(_COLUMNS, values, strict=True))

    def fittest(self) -> int:
        """The threshold with the greatest harmonic mean of precision and recall; on ties the
        highest."""
        product, total = self.precision * self.recall, self.precision + self.recall
        harmonic = product / np.maximum(total, np.finfo(np.float64).tiny)
        return int(self.dim - np.argmax(harmonic[::-1]))


def membership(runs: Sequence[Run], options: Options) -> Tables:
    """Precision and recall of the majority rule (Tables 18 and 19)."""
    data_set = common_data_set(runs)
    where, notes = runs[0].graph.name, list(NOTES)
    check_models(
        runs,
        lambda model: model.has_extent,
        "has no inside, so that a region of it holds no entities",
        "models whose regions do are cone and box",
    )
    _check_queries(runs)
    all_queries = [
        run.queries(split) for run in runs for split in _SPLITS if run.has_queries(split)
    ]
    titled = (
        ("without negation", POSITIVE_STRUCTURES, "tab:answer_epfo"),
        ("with negation", NEGATION_STRUCTURES, "tab:answer_neg"),
    )
    halves = [
        _Half(
            f"Membership, queries {kind}, {where}",
            structures,
            of_release(published(label, data_set), all_queries),
        )
        for kind, structures, label in titled
    ]
    for run in runs:
        model = run.load_model(options.checkpoint, options.device)
        for half in halves:
            half.add(run, measure(model, run, options, half.structures))
            half.add_notes(run, model, options)
        notes += [*_shortcomings(run, model), describe(run, options.checkpoint)]
        if run.num_queries("test"):
            notes += origin_note(run, run.queries("test"), halves[0].paper, GIVEN_IN_TRAINING)
    for split in _SPLITS:
        having = [run for run in runs if run.has_queries(split)]
        if having:
            every = (*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES)
            notes += other_queries_note(having, every, split)
    filled = [half for half in halves if half.has_rows] or halves[:1]
    return tuple(
        half.table(
            [*notes, *release_note(half.paper, runs[0].graph, all_queries, GIVEN_IN_TRAINING)]
        )
        for half in filled
    )


def _check_queries(runs: Sequence[Run]) -> None:
    """Raise `DataError` if a run has no queries of either split."""
    for run in runs:
        if not any(run.num_queries(split) for split in _SPLITS):
            raise DataError(
                "the run has neither valid nor test queries to measure",
                path=str(run.folder),
                hint="`conekg sample` makes some; `conekg train --queries FOLDER` takes them",
            )


def _shortcomings(run: Run, model: QueryModel) -> list[str]:
    """Notes on what a run lacks, for which rows are missing in the tables."""
    notes = []
    if not run.num_queries("valid"):
        notes.append(f"{title_of(run)} has no valid queries, so no share was fitted.")
    if not run.num_queries("test"):
        notes.append(f"{title_of(run)} has no test queries.")
    if not model.can_negate:
        notes.append(f"{title_of(run)} has no negation: it is in the first table only.")
    return notes


def measure(
    model: QueryModel, run: Run, options: Options, structures: Sequence[str]
) -> dict[Split, Curve]:
    """The curve of each split, over the structures that it has and the model can answer.

    Splits without such queries are left out.
    """
    curves = dict[Split, Curve]()
    for split in _SPLITS:
        if not run.has_queries(split):
            continue
        tallies = [
            tally_block(model, run.graph, split, block)
            for block in chosen_blocks(run, options, structures, split)
            if not missing_operators(model, block.shape)
        ]
        if tallies:
            curves[split] = Curve.of(tallies)
    return curves


@torch.inference_mode()
def tally_block(model: QueryModel, graph: KnowledgeGraph, split: Split, block: QueryBlock) -> Tally:
    """The results for every threshold on the queries of one structure."""
    branches = len(union_free_branches(block.shape.template))
    budget = _CELLS_AT_ONCE.get(model.device.type, _CELLS_AT_ONCE["cpu"])
    rows_at_once = max(1, budget // (branches * graph.num_entities))
    precision, recall, takers, taken, both = np.zeros((5, model.dim + 1))
    true = 0.0
    for batch in embedded_batches(model, graph, split, block, rows_at_once):
        share = best_over_branches(batch.plan, model.inside_fraction_of_all(batch.region))
        inside = (share * model.dim).round().long()  # a share is a whole number divided by d
        rows = np.repeat(np.arange(len(batch.answers)), batch.answers.lengths)
        ids = torch.from_numpy(batch.answers.values.astype(np.int64)).to(inside.device)
        row_of_answer = torch.from_numpy(rows).to(inside.device)
        row_taken = _at_least(inside.flatten(), _row_of_cell(inside), len(inside), model.dim)
        row_both = _at_least(inside[row_of_answer, ids], row_of_answer, len(inside), model.dim)
        answers = batch.answers.lengths.astype(np.float64)
        precision += (row_both / np.maximum(row_taken, 1.0)).sum(axis=0)
        recall += (row_both / np.maximum(answers, 1.0)[:, None]).sum(axis=0)
        takers += (row_taken > 0).sum(axis=0)
        taken += row_taken.sum(axis=0)
        both += row_both.sum(axis=0)
        true += float(answers.sum())
    queries = len(block)
    return Tally(precision / queries, recall / queries, takers / queries, taken, both, true)


def _row_of_cell(cells: Tensor) -> Tensor:
    """[rows × columns] the row of each cell of a matrix, in the order of `flatten`."""
    return torch.arange(len(cells), device=cells.device).repeat_interleave(cells.shape[1])


def _at_least(inside: Tensor, row: Tensor, rows: int, dim: int) -> Floats:
    """[rows, dim + 1] at [i, k] how many values of `inside` in row i are k or more.

    `row` is the row of each value.
    """
    counts = torch.bincount(row * (dim + 1) + inside, minlength=rows * (dim + 1))
    found: Floats = counts.view(rows, dim + 1).flip(1).cumsum(1).flip(1).double().cpu().numpy()
    return found


class _Half:
    """One of the two tables, without or with negation, filled run by run."""

    def __init__(self, title: str, structures: Sequence[str], paper: Published) -> None:
        self.title, self.structures, self.paper = title, structures, paper
        self._rows, self._comparisons = list[Row](), list[Row]()
        self._plots = list[Plot]()
        self._measured = dict[str, list[str]]()
        self._absent = list[str]()

    @property
    def has_rows(self) -> bool:
        """Whether any run has rows: queries of these structures that its model can answer."""
        return bool(self._rows)

    def add(self, run: Run, curves: dict[Split, Curve]) -> None:
        """Add a run's rows: with the paper's share on each split, and with the fitted on test."""
        name, model = title_of(run), run.recipe.model
        for split, curve in curves.items():
            label = f"{name}, {split}"
            values = curve.at(math.ceil(MAJORITY * curve.dim))
            self._rows.append(Row(label, values))
            self._comparisons += compare(label, values, self.paper.row(f"{model}-{split}"))
        if len(curves) == len(_SPLITS):
            fitted = curves["test"].at(curves["valid"].fittest())
            self._rows.append(Row(f"{name}, test, fitted", fitted))
        if "test" in curves:
            self._plots.append(self._plot(name, curves["test"], f"{model}-test"))

    def add_notes(self, run: Run, model: QueryModel, options: Options) -> None:
        """Note how many queries a run's rows are of, and the structures that their mean lacks."""
        answered = [
            name for name in self.structures if not missing_operators(model, STRUCTURES[name])
        ]
        if not answered:
            return
        own = self._measured.setdefault(title_of(run), [])
        for split in _SPLITS:
            if not run.num_queries(split):
                continue
            counts = {
                block.shape.name: len(block.evenly_spaced(options.max_queries))
                for block in only_structures(run.queries(split), answered)
                if len(block)
            }
            own += counts_note(counts, f"{split.capitalize()} queries measured")
            self._absent += no_queries_note(run, split, answered)

    def _plot(self, name: str, curve: Curve, paper_row: str) -> Plot:
        """Precision and recall over the share demanded, with the paper's values as points."""
        shares = np.arange(curve.dim + 1) / curve.dim
        series = [
            Series.of("precision", shares, curve.precision),
            Series.of("recall", shares, curve.recall),
        ]
        series += [
            Series.of(f"{what}, {self.paper.place}", [MAJORITY], [value], "points", "paper")
            for what, value in self.paper.row(paper_row).items()
        ]
        return Plot(
            title=f"{self.title}: {name}, test",
            x_label="share of dimensions demanded",
            y_label=self.paper.unit,
            series=tuple(series),
            marks=(MAJORITY,),
        )

    def table(self, notes: Sequence[str]) -> Table:
        """The table with the paper's rows beside ours."""
        named = [(name, *name.split("-")) for name in self.paper.rows]
        titles = {name: f"{model_title(model)}, {split}" for name, model, split in named}
        return Table(
            title=self.title,
            columns=_COLUMNS,
            rows=(*self._rows, *paper_rows(self.paper, titles), *self._comparisons),
            paper=self.paper.label,
            unit=self.paper.unit,
            notes=tuple(dict.fromkeys((*notes_of_each(self._measured), *self._absent, *notes))),
            digits=3,
            plots=tuple(self._plots),
        )


MEMBERSHIP = Experiment(
    name="membership",
    paper=("tab:answer_epfo", "tab:answer_neg"),
    summary="precision and recall when most dimensions inside make an answer",
    run=membership,
    options=("checkpoint", "max_queries"),
)
