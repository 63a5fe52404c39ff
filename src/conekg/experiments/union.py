"""Appendix C.2: unions as the best of their branches (DNF) against De Morgan's law."""

from __future__ import annotations

from collections.abc import Sequence

from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    notes_of_each,
    title_of,
)
from conekg.experiments.main_results import (
    absence_note,
    asked_notes,
    compare,
    of_release,
    origin_note,
    paper_rows,
    queries_of_each,
    queries_title,
    rank,
    same_queries_note,
)
from conekg.experiments.options import Options
from conekg.experiments.published import published
from conekg.experiments.table import Row, Table
from conekg.query.rewrite import UnionForm
from conekg.training.run import Run

_STRUCTURES = ("2u", "up")
_FORMS: dict[str, tuple[UnionForm, str]] = {
    "N": ("dnf", "by DNF"),
    "M": ("demorgan", "by De Morgan's law"),
}
"""The paper's letters for the two forms, and what they are called in a sentence."""


def union(runs: Sequence[Run], options: Options) -> Tables:
    """MRR of 2u and up under both forms (Table 8)."""
    data_set = common_data_set(runs)
    all_queries = queries_of_each(runs, options)
    paper = of_release(published("table:dis", data_set), all_queries)
    rows, comparisons, notes = list[Row](), list[Row](), list[str]()
    by_run = dict[str, list[str]]()
    for run, queries in zip(runs, all_queries, strict=True):
        ours, own = dict[str, float](), list[str]()
        for letter, (form, told) in _FORMS.items():
            report = rank(run, queries, options, _STRUCTURES, union=form)
            ours |= {f"{name}-{letter}": 100.0 * m.mrr for name, m in report.measured.items()}
            own.append(f"MRR is filtered; equal scores: {report.ties} rank.")
            if form == "dnf":
                own += asked_notes(report, _STRUCTURES)
            for reason, names in report.by_reason.items():
                own.append(f"Not answered {told}: {', '.join(names)} ({reason}).")
        by_run[title_of(run)] = own
        rows.append(Row(title_of(run), ours))
        comparisons += compare(title_of(run), ours, paper.row(run.recipe.model))
        notes += [describe(run, options.checkpoint), *origin_note(run, queries, paper)]
    table = Table(
        title=f"Unions, {runs[0].graph.name}, {queries_title(options)}",
        columns=paper.columns,
        rows=(*rows, *paper_rows(paper), *comparisons),
        paper="table:dis",
        unit=paper.unit,
        notes=(
            "-N: by DNF, the best branch counts. -M: by De Morgan's law, through the operators.",
            *dict.fromkeys((*notes_of_each(by_run), *notes)),
            *same_queries_note(runs, options, _STRUCTURES),
            *absence_note(paper, runs[0].graph.name, all_queries),
        ),
    )
    return (table,)


UNION = Experiment(
    name="union",
    paper=("table:dis",),
    summary="unions by DNF against De Morgan's law, on 2u and up",
    run=union,
    options=("split", "checkpoint", "max_queries", "queries"),
)
