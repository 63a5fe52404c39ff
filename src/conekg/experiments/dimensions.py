"""Appendix C.1: the main tables over runs of several dimensions, such as BetaE at 400 and 800."""

from __future__ import annotations

from collections.abc import Sequence

from conekg.evaluation.report import Report
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    title_of,
)
from conekg.experiments.main_results import (
    AVERAGE,
    absence_note,
    average_note,
    compare,
    mrr_row,
    of_release,
    origin_note,
    paper_rows,
    queries_of_each,
    queries_title,
    rank,
    report_notes,
    same_queries_note,
)
from conekg.experiments.options import Options
from conekg.experiments.published import published
from conekg.experiments.table import Row, Table
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.run import Run

_TABLES = (
    ("without negation", POSITIVE_STRUCTURES, "table:epfo_results_800"),
    ("with negation", NEGATION_STRUCTURES, "table:negation_results_800"),
)
_TITLES = {"beta-400": "BetaE, d = 400", "beta-800": "BetaE, d = 800", "cone": "ConE"}


def dimensions(runs: Sequence[Run], options: Options) -> Tables:
    """MRR of runs of several dimensions, all structures (Tables 6 and 7)."""
    data_set = common_data_set(runs)
    all_queries = queries_of_each(runs, options)
    tables = []
    for title, structures, label in _TABLES:
        paper = of_release(published(label, data_set), all_queries)
        rows, comparisons, notes = list[Row](), list[Row](), list[str]()
        reports = dict[str, Report]()
        for run, queries in zip(runs, all_queries, strict=True):
            report = reports[title_of(run)] = rank(run, queries, options, structures)
            ours, name = mrr_row(report, structures), f"{run.recipe.model}-{run.recipe.config.dim}"
            rows.append(Row(f"{title_of(run)}, d = {run.recipe.config.dim}", ours))
            theirs = paper.row(name) or (paper.row("cone") if name == "cone-800" else {})
            comparisons += compare(rows[-1].label, ours, theirs)
            notes += [describe(run, options.checkpoint), *origin_note(run, queries, paper)]
        notes += report_notes(reports, structures)
        notes += same_queries_note(runs, options, structures)
        notes += [*average_note(rows), *absence_note(paper, runs[0].graph.name, all_queries)]
        tables.append(
            Table(
                title=f"Dimensions, {title}, {runs[0].graph.name}, {queries_title(options)}",
                columns=(*structures, AVERAGE),
                rows=(*rows, *paper_rows(paper, _TITLES), *comparisons),
                paper=label,
                unit=paper.unit,
                notes=tuple(dict.fromkeys(notes)),
            )
        )
    return tuple(tables)


DIMENSIONS = Experiment(
    name="dimensions",
    paper=("table:epfo_results_800", "table:negation_results_800"),
    summary="MRR at several dimensions, such as BetaE at 400 and 800",
    run=dimensions,
    options=("split", "checkpoint", "max_queries", "queries"),
)
