"""Table 3 and Appendix C.3 (Tables 9 to 13): the correlation of region sizes with answer counts.

Size is the model's own measure: the sum of apertures of a cone, the side lengths of a box,
the differential entropy of Beta distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

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
    has_one_branch,
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
from conekg.experiments.plot import Plot, Series
from conekg.experiments.published import Published, model_title, published
from conekg.experiments.statistics import Floats, correlations
from conekg.experiments.table import Row, Table
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.model.interface import QueryModel
from conekg.model.support import missing_operators
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES, STRUCTURES
from conekg.sampling.query_set import QueryBlock
from conekg.training.run import Run

SINGLE_REGION_STRUCTURES = tuple(
    name
    for name in (*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES)
    if has_one_branch(STRUCTURES[name])
)
"""Structures whose queries are single regions. The paper leaves out unions, which have several."""

_SPEARMAN = {
    "fb15k": "table:spearman",
    "fb15k-237": "table:spearman_fb237",
    "nell995": "table:spearman_nell",
}
_PEARSON = {
    "fb15k": "table:pearson_fb",
    "fb15k-237": "table:pearson_fb237",
    "nell995": "table:pearson_nell",
}

_MEASURES = {
    "cone": "sum of apertures, radians",
    "box": "sum of side lengths",
    "beta": "differential entropy",
}
"""The definition of each model's size, for a note and for an axis of a picture."""

_COUNTED = (
    "The number of answers counts every answer of the query on the split's graph (for test "
    "queries the training, validation and test edges), easy and hard ones alike, by exact search; "
    "of easy answers that negation makes false there, none."
)


def cardinality(runs: Sequence[Run], options: Options) -> Tables:
    """Spearman's and Pearson's correlation of region size and number of answers, per structure."""
    data_set = common_data_set(runs)
    check_sizes(runs)
    rows = dict[str, list[Row]](spearman=[], pearson=[])
    plots, notes = list[Plot](), [_sizes_note(runs), _COUNTED]
    all_queries = [run.queries(options.split) for run in runs]
    papers = [of_release(paper_of(of, data_set), all_queries) for of in (_SPEARMAN, _PEARSON)]
    measured = dict[str, tuple[str, ...]]()
    for run, queries in zip(runs, all_queries, strict=True):
        model = run.load_model(options.checkpoint, options.device)
        columns, lacking = dict[str, tuple[Floats, Floats]](), dict[str, list[str]]()
        for block in chosen_blocks(run, options, SINGLE_REGION_STRUCTURES):
            missing = missing_operators(model, block.shape)
            if missing:
                lacking.setdefault(" and no ".join(missing), []).append(block.shape.name)
            else:
                columns[block.shape.name] = sizes_and_counts(model, run.graph, options.split, block)
        for kind, values in correlations(columns).items():
            rows[kind].append(Row(title_of(run), values))
            for name in columns:
                if name not in values:
                    notes.append(f"{title_of(run)}: sizes or counts of {name} are all equal.")
        for missing_one, names in lacking.items():
            notes.append(f"{title_of(run)} has no {missing_one}: not {', '.join(names)}.")
        measured[title_of(run)] = counts_note({name: len(of[0]) for name, of in columns.items()})
        notes += no_queries_note(run, options.split, SINGLE_REGION_STRUCTURES)
        plots.append(_plot(title_of(run), model, columns))
        notes.append(describe(run, options.checkpoint))
        notes += origin_note(run, queries, papers[0], GIVEN_IN_TRAINING)
    notes += notes_of_each(measured)
    notes += other_queries_note(runs, SINGLE_REGION_STRUCTURES, options.split)
    where = f"{runs[0].graph.name}, {options.split} queries"
    by_rank, by_value = (
        _table(
            f"{kind.capitalize()}, {where}",
            paper,
            rows[kind],
            runs,
            [*notes, *release_note(paper, runs[0].graph, all_queries, GIVEN_IN_TRAINING)],
        )
        for kind, paper in zip(rows, papers, strict=True)
    )
    return by_rank, replace(by_value, plots=tuple(plots))


def _sizes_note(runs: Sequence[Run]) -> str:
    """The note that says what is correlated, with the definition of size of each model."""
    models = dict.fromkeys(run.recipe.model for run in runs)
    sizes = "; ".join(f"{model_title(m)}: {_MEASURES.get(m, 'its own measure')}" for m in models)
    return f"Each query's size of its region ({sizes}) is correlated with its number of answers."


def check_sizes(runs: Sequence[Run]) -> None:
    """Raise `UnsupportedOperatorError` if a run's model has no size of regions."""
    check_models(
        runs,
        lambda model: model.size is not QueryModel.size,
        "does not model the number of answers",
        "models that do are cone, box and beta",
    )


@torch.inference_mode()
def sizes_and_counts(
    model: QueryModel, graph: KnowledgeGraph, split: Split, block: QueryBlock
) -> tuple[Floats, Floats]:
    """The size of each query's region and its number of answers, each [queries]."""
    sizes, counts = [np.zeros(0)], [np.zeros(0)]
    for batch in embedded_batches(model, graph, split, block):
        sizes.append(model.size(batch.region).double().cpu().numpy())
        counts.append(batch.answers.lengths.astype(np.float64))
    return np.concatenate(sizes), np.concatenate(counts)


def size_by_count(sizes: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """The mean number of answers and the mean size, each [bins], of queries binned by answers.

    The bins double: 1, 2-3, 4-7 and so on. Empty bins and queries without answers are left out.
    """
    answered = counts > 0
    sizes, counts = sizes[answered], counts[answered]
    bins = np.floor(np.log2(counts)).astype(np.int64)
    filled = np.unique(bins)
    means = [
        [float(values[bins == place].mean()) for place in filled] for values in (counts, sizes)
    ]
    return np.array(means[0]), np.array(means[1])


def _plot(title: str, model: QueryModel, columns: Mapping[str, tuple[Floats, Floats]]) -> Plot:
    """The mean size of regions over the number of answers, one line per structure."""
    series = tuple(
        Series.of(name, *size_by_count(*of), "marked line") for name, of in columns.items()
    )
    size = f"mean {_MEASURES.get(model.name, 'size')}"
    return Plot(title, "number of answers", size, series, log_x=True)


def paper_of(labels: dict[str, str], data_set: str | None) -> Published:
    """The paper's correlations for a data set; `labels` has the table of each data set."""
    table = published(labels[data_set or "fb15k"], data_set)
    return replace(table, data_sets=tuple(labels))


def _table(
    title: str, paper: Published, rows: Sequence[Row], runs: Sequence[Run], notes: Sequence[str]
) -> Table:
    """The table of one kind of correlation: ours, the paper's and the differences."""
    comparisons = [
        comparison
        for row, run in zip(rows, runs, strict=True)
        for comparison in compare(row.label, dict(row.values), paper.row(run.recipe.model))
    ]
    return Table(
        title=title,
        columns=SINGLE_REGION_STRUCTURES,
        rows=(*rows, *paper_rows(paper), *comparisons),
        paper=paper.label,
        unit=paper.unit,
        notes=tuple(dict.fromkeys(notes)),
        digits=2,
    )


CARDINALITY = Experiment(
    name="cardinality",
    paper=(
        "table:spearman",
        "table:spearman_fb237",
        "table:spearman_nell",
        "table:pearson_fb",
        "table:pearson_fb237",
        "table:pearson_nell",
    ),
    summary="correlation of a region's size with the number of answers",
    run=cardinality,
    options=("split", "checkpoint", "max_queries"),
)
