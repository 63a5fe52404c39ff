"""Appendix C.4: EmQL and the others on queries without negation, by their average MRR.

The paper compares on the Query2Box release of FB15k; give its folder as `queries`.
Without it the runs' own queries are used.
"""

from __future__ import annotations

from collections.abc import Sequence

from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    missing_note,
    title_of,
)
from conekg.experiments.main_results import (
    AVERAGE,
    average_note,
    compare,
    mrr_row,
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
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.training.run import Run


def emql(runs: Sequence[Run], options: Options) -> Tables:
    """Average MRR of the nine structures without negation (Table 14)."""
    data_set = common_data_set(runs)
    graph = runs[0].graph
    given = options.queries is not None
    paper = published("table:cmp_results", data_set if given else None)
    rows, comparisons, notes = list[Row](), list[Row](), list[str]()
    for run, queries in zip(runs, queries_of_each(runs, options), strict=True):
        report = rank(run, queries, options, POSITIVE_STRUCTURES)
        ours = mrr_row(report, POSITIVE_STRUCTURES)
        rows.append(Row(title_of(run), ours))
        comparisons += compare(title_of(run), ours, paper.row(run.recipe.model))
        notes += [describe(run, options.checkpoint), *report_notes(report)]
        notes += origin_note(run, queries, paper)
    notes += same_queries_note(runs, options, POSITIVE_STRUCTURES)
    if not given:
        notes.append(
            "These are the runs' own queries. The paper's numbers are for the Query2Box release of "
            "FB15k: give its folder as --queries to compare with them."
        )
    else:
        notes += missing_note(paper, graph.name)
    table = Table(
        title=f"Comparison with EmQL, {graph.name}, {queries_title(options)}",
        columns=(*POSITIVE_STRUCTURES, AVERAGE),
        rows=(*rows, *paper_rows(paper), *comparisons),
        paper="table:cmp_results",
        unit=paper.unit,
        notes=tuple(dict.fromkeys([*notes, *average_note(rows)])),
    )
    return (table,)


EMQL = Experiment(
    name="emql",
    paper=("table:cmp_results",),
    summary="EmQL, ConE and the baselines by average MRR, on the Query2Box release",
    run=emql,
    options=("split", "checkpoint", "max_queries", "queries"),
)
