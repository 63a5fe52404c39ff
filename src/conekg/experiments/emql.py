"""Appendix C.4: EmQL and the others on queries without negation, by their average MRR.

The paper compares on the Query2Box release of FB15k; give its folder as `queries`.
Without it the runs' own queries are used. The paper's numbers stand beside those of given
queries alone, and not beside those of the BetaE release.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    origin_note,
    paper_rows,
    paper_table,
    queries_of_each,
    queries_title,
    rank,
    release_of,
    report_notes,
    same_queries_note,
)
from conekg.experiments.options import Options
from conekg.experiments.table import Row, Table
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.training.run import Run


def emql(runs: Sequence[Run], options: Options) -> Tables:
    """Average MRR of the nine structures without negation (Table 14)."""
    data_set = common_data_set(runs)
    graph = runs[0].graph
    given = options.queries
    paper = paper_table("table:cmp_results", None if given is None else data_set, options)
    rows, comparisons, notes = list[Row](), list[Row](), list[str]()
    for run, queries in zip(runs, queries_of_each(runs, options), strict=True):
        report = rank(run, queries, options, POSITIVE_STRUCTURES)
        ours = mrr_row(report, POSITIVE_STRUCTURES)
        rows.append(Row(title_of(run), ours))
        comparisons += compare(title_of(run), ours, paper.row(run.recipe.model))
        notes += [describe(run, options.checkpoint), *report_notes(report)]
        notes += origin_note(run, queries, paper)
        if given and paper.rows and queries.protocol is None and release_of(options) is None:
            notes.append(
                f"{given.resolve().name} does not say of which release its queries are; the "
                f"paper's numbers are of the {paper.release} release."
            )
    notes += same_queries_note(runs, options, POSITIVE_STRUCTURES)
    if given is None:
        notes.append(
            "These are the runs' own queries. The paper's numbers are for the Query2Box release of "
            "FB15k: give its folder as --queries to compare with them."
        )
    else:
        notes += absence_note(paper, graph.name, options)
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
