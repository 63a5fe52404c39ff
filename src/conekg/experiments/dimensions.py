"""Appendix C.1 (Tables 6 and 7): MRR of runs of several dimensions, as BetaE at 400 and 800."""

from __future__ import annotations

from collections.abc import Sequence

from conekg.experiments.beside_paper import of_release
from conekg.experiments.experiment import Experiment, Tables, common_data_set, title_of
from conekg.experiments.mrr_table import RunRow, mrr_table, queries_of_each, rank_row
from conekg.experiments.options import Options
from conekg.experiments.published import Published, published
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.sampling.query_set import QuerySet
from conekg.training.run import Run

_TABLES = (
    ("Dimensions, without negation", POSITIVE_STRUCTURES, "table:epfo_results_800"),
    ("Dimensions, with negation", NEGATION_STRUCTURES, "table:negation_results_800"),
)
_TITLES = {"beta-400": "BetaE, d = 400", "beta-800": "BetaE, d = 800", "cone": "ConE"}


def dimensions(runs: Sequence[Run], options: Options) -> Tables:
    """MRR of runs of several dimensions, all structures (Tables 6 and 7)."""
    data_set = common_data_set(runs)
    all_queries = queries_of_each(runs, options)
    tables = []
    for title, structures, label in _TABLES:
        paper = of_release(published(label, data_set), all_queries)
        measured = [
            _measure(run, queries, options, structures, paper)
            for run, queries in zip(runs, all_queries, strict=True)
        ]
        tables.append(mrr_table(title, measured, options, structures, paper, paper_titles=_TITLES))
    return tuple(tables)


def _measure(
    run: Run, queries: QuerySet, options: Options, structures: Sequence[str], paper: Published
) -> RunRow:
    """A run's row, beside the paper's row of its model and dimension; for ConE that is 800."""
    dim = run.recipe.config.dim
    name = f"{run.recipe.model}-{dim}"
    theirs = paper.row("cone" if name == "cone-800" else name)
    label = f"{title_of(run)}, d = {dim}"
    return rank_row(run, queries, options, structures, paper, label=label, theirs=theirs)


DIMENSIONS = Experiment(
    name="dimensions",
    paper=("table:epfo_results_800", "table:negation_results_800"),
    summary="MRR at several dimensions, such as BetaE at 400 and 800",
    run=dimensions,
    options=("split", "checkpoint", "max_queries", "queries"),
    compares=True,
)
