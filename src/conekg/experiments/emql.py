"""Appendix C.4: EmQL and the others on queries without negation, by their average MRR.

The paper compares on the Query2Box release of FB15k; give its folder as `queries`.
Without it the runs' own queries are used. The paper's numbers stand beside those of given
queries and of runs that were trained on that release, and never beside the BetaE release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.training.run import Run


def emql(runs: Sequence[Run], options: Options) -> Tables:
    """Average MRR of the nine structures without negation (Table 14)."""
    data_set = common_data_set(runs)
    graph = runs[0].graph
    given, all_queries = options.queries, queries_of_each(runs, options)
    paper = of_release(published("table:cmp_results", data_set), all_queries)
    releases = {queries.release for queries in all_queries}
    if given is None and releases != {paper.release}:
        paper = replace(paper, rows={})
    rows, comparisons, notes = list[Row](), list[Row](), list[str]()
    reports = dict[str, Report]()
    for run, queries in zip(runs, all_queries, strict=True):
        report = reports[title_of(run)] = rank(run, queries, options, POSITIVE_STRUCTURES)
        ours = mrr_row(report, POSITIVE_STRUCTURES)
        rows.append(Row(title_of(run), ours))
        comparisons += compare(title_of(run), ours, paper.row(run.recipe.model))
        notes += [describe(run, options.checkpoint), *origin_note(run, queries, paper)]
        if given and paper.rows and queries.protocol is None and queries.release is None:
            notes.append(
                f"{given.resolve().name} does not say of which release its queries are; the "
                f"paper's numbers are of the {paper.release} release."
            )
    notes += report_notes(reports, POSITIVE_STRUCTURES)
    notes += same_queries_note(runs, options, POSITIVE_STRUCTURES)
    sampled = given is None and None in releases and releases <= {None, paper.release}
    if sampled and data_set in paper.data_sets:
        notes.append(
            "These are the runs' own queries. The paper's numbers are for the Query2Box release of "
            "FB15k: give its folder as --queries to compare with them."
        )
    else:
        notes += absence_note(paper, graph.name, all_queries)
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
