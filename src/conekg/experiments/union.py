"""Appendix C.2: unions as the best of their branches (DNF) against De Morgan's law."""

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
    absence_note,
    compare,
    origin_note,
    paper_rows,
    paper_table,
    queries_of_each,
    queries_title,
    rank,
    same_queries_note,
)
from conekg.experiments.options import Options
from conekg.experiments.table import Row, Table
from conekg.query.rewrite import UnionForm
from conekg.training.run import Run

_STRUCTURES = ("2u", "up")
_FORMS: tuple[tuple[str, UnionForm], ...] = (("N", "dnf"), ("M", "demorgan"))
"""The paper's letters for the two forms."""


def union(runs: Sequence[Run], options: Options) -> Tables:
    """MRR of 2u and up under both forms (Table 8)."""
    data_set = common_data_set(runs)
    paper = paper_table("table:dis", data_set, options)
    rows, comparisons, notes = list[Row](), list[Row](), list[str]()
    for run, queries in zip(runs, queries_of_each(runs, options), strict=True):
        ours = dict[str, float]()
        for letter, form in _FORMS:
            report = rank(run, queries, options, _STRUCTURES, union=form)
            ours |= {f"{name}-{letter}": 100.0 * m.mrr for name, m in report.measured.items()}
            notes.append(f"MRR is filtered; equal scores: {report.ties} rank.")
            for name, reason in report.unanswered.items():
                notes.append(f"{title_of(run)}, {form}: {reason} ({name}).")
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
            *dict.fromkeys(notes),
            *same_queries_note(runs, options, _STRUCTURES),
            *absence_note(paper, runs[0].graph.name, options),
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
