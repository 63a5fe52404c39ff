"""Appendix C.7 (Table 17): do a query's apertures grow with the variability of its answers?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from conekg.experiments.beside_paper import (
    GIVEN_IN_TRAINING,
    compare,
    of_release,
    origin_note,
    paper_rows,
    release_note,
)
from conekg.experiments.cardinality import SINGLE_REGION_STRUCTURES
from conekg.experiments.embedded import (
    chosen_blocks,
    counts_note,
    embedded_batches,
    no_queries_note,
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
from conekg.experiments.published import published
from conekg.experiments.statistics import Floats, correlations
from conekg.experiments.table import Row, Table
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.model.cone import Cone, angle, wrap
from conekg.sampling.query_set import QueryBlock
from conekg.training.run import Run

_ANGLES_AT_ONCE = 1 << 22
"""Angles (one per answer and dimension) in memory at a time."""

_QUERIES_AT_ONCE = 256
"""Queries embedded at a time, which bounds the memory of their answers' averages."""

_NOTE = (
    "The variability δ of a query: of all its answers on the split's graph, the largest squared "
    "distance to their semantic average with equal weights; a squared distance is the sum over "
    "dimensions of the squared angle between the two axes, taken the short way round. Correlated "
    "with the sum of the query's apertures. Queries without answers there are left out."
)


def variability(runs: Sequence[Run], options: Options) -> Tables:
    """Spearman's and Pearson's correlation of apertures and δ, per structure (Table 17)."""
    data_set = common_data_set(runs)
    check_models(
        runs,
        lambda model: issubclass(model, Cone),
        "has no cones, whose average defines δ",
        "give runs of the model cone",
    )
    all_queries = [run.queries(options.split) for run in runs]
    paper = of_release(published("table:variety", data_set), all_queries)
    rows, comparisons, notes = list[Row](), list[Row](), [_NOTE]
    measured = dict[str, tuple[str, ...]]()
    for run, queries in zip(runs, all_queries, strict=True):
        model = run.load_model(options.checkpoint, options.device)
        assert isinstance(model, Cone)
        columns = {
            block.shape.name: apertures_and_spreads(model, run.graph, options.split, block)
            for block in chosen_blocks(run, options, SINGLE_REGION_STRUCTURES)
        }
        for name, values in correlations(columns).items():
            rows.append(Row(f"{title_of(run)}, {name}", values))
            comparisons += compare(rows[-1].label, values, paper.row(name))
            for structure in columns:
                if structure not in values:
                    notes.append(f"{title_of(run)}: apertures or δ are constant on {structure}.")
        notes += no_queries_note(run, options.split, SINGLE_REGION_STRUCTURES)
        measured[title_of(run)] = counts_note({name: len(of[0]) for name, of in columns.items()})
        notes.append(describe(run, options.checkpoint))
        notes += origin_note(run, queries, paper, GIVEN_IN_TRAINING)
    notes += notes_of_each(measured)
    notes += release_note(paper, runs[0].graph, all_queries, GIVEN_IN_TRAINING)
    notes += other_queries_note(runs, SINGLE_REGION_STRUCTURES, options.split)
    papers = paper_rows(paper, {name: f"ConE, {name}" for name in paper.rows})
    table = Table(
        title=f"Variability of answers, {runs[0].graph.name}, {options.split} queries",
        columns=SINGLE_REGION_STRUCTURES,
        rows=(*rows, *papers, *comparisons),
        paper=paper.label,
        unit=paper.unit,
        notes=tuple(dict.fromkeys(notes)),
        digits=2,
    )
    return (table,)


@torch.inference_mode()
def apertures_and_spreads(
    model: Cone, graph: KnowledgeGraph, split: Split, block: QueryBlock
) -> tuple[Floats, Floats]:
    """The sum of apertures and δ, each [queries], of the queries that have answers."""
    sizes, spreads = [np.zeros(0)], [np.zeros(0)]
    for batch in embedded_batches(model, graph, split, block, _QUERIES_AT_ONCE):
        answered = batch.answers.lengths > 0
        sizes.append(model.size(batch.region).double().cpu().numpy()[answered])
        delta = spread(model, batch.answers).double().cpu().numpy()
        # A single answer equals its average; rounding errors would give such queries random ranks.
        delta[batch.answers.lengths == 1] = 0.0
        spreads.append(delta[answered])
    return np.concatenate(sizes), np.concatenate(spreads)


def spread(model: Cone, answers: Ragged) -> Tensor:
    """[rows] the largest squared distance of a row's entities to their semantic average."""
    device = model.device
    x = torch.zeros(len(answers), model.dim, device=device)
    y = torch.zeros_like(x)
    for rows, axis in _pieces(model, answers):
        x.index_add_(0, rows, torch.cos(axis))
        y.index_add_(0, rows, torch.sin(axis))
    average = angle(x, y)  # the direction of the sums is that of the means
    largest = torch.zeros(len(answers), device=device)
    for rows, axis in _pieces(model, answers):
        squared = wrap(axis - average[rows]).square().sum(dim=-1)
        largest.scatter_reduce_(0, rows, squared, reduce="amax")
    return largest


def _pieces(model: Cone, answers: Ragged) -> Iterator[tuple[Tensor, Tensor]]:
    """The row and the axes [dim] of each answer, in pieces of about `_ANGLES_AT_ONCE` angles."""
    device, size = model.device, max(1, _ANGLES_AT_ONCE // model.dim)
    rows = np.repeat(np.arange(len(answers)), answers.lengths)
    for start in range(0, len(rows), size):
        ids = torch.from_numpy(answers.values[start : start + size].astype(np.int64)).to(device)
        yield torch.from_numpy(rows[start : start + size]).to(device), model.points(ids)


VARIABILITY = Experiment(
    name="variability",
    paper=("table:variety",),
    summary="correlation of apertures with the spread of a query's answers",
    run=variability,
    options=("split", "checkpoint", "max_queries"),
)
