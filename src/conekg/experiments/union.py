"""Appendix C.2 (Table 8): MRR of unions by DNF, as the best branch, and by De Morgan's law."""

from __future__ import annotations

from collections.abc import Sequence

from conekg.experiments.beside_paper import compare, of_release, release_note
from conekg.experiments.experiment import Experiment, Tables, common_data_set, title_of
from conekg.experiments.mrr_table import (
    RunRow,
    asked_notes,
    mrr_table,
    queries_of_each,
    rank,
    ranking_notes,
    run_notes,
)
from conekg.experiments.options import Options
from conekg.experiments.published import Published, published
from conekg.experiments.table import Row
from conekg.query.branches import UnionForm
from conekg.sampling.query_set import QuerySet
from conekg.training.run import Run

_STRUCTURES = ("2u", "up")
_FORMS: dict[str, tuple[UnionForm, str]] = {
    "N": ("dnf", "by DNF"),
    "M": ("demorgan", "by De Morgan's law"),
}
"""The paper's letters for the two forms, and what they are called in a sentence."""
_FORMS_NOTE = "-N: by DNF, the best branch counts. -M: by De Morgan's law, through the operators."


def union(runs: Sequence[Run], options: Options) -> Tables:
    """MRR of 2u and up under both forms (Table 8)."""
    data_set = common_data_set(runs)
    all_queries = queries_of_each(runs, options)
    paper = of_release(published("table:dis", data_set), all_queries)
    measured = [
        _measure(run, queries, options, paper)
        for run, queries in zip(runs, all_queries, strict=True)
    ]
    table = mrr_table(
        "Unions",
        measured,
        options,
        _STRUCTURES,
        paper,
        columns=paper.columns,
        opening=(_FORMS_NOTE, *ranking_notes(measured)),
        closing=release_note(paper, runs[0].graph, all_queries),
    )
    return (table,)


def _measure(run: Run, queries: QuerySet, options: Options, paper: Published) -> RunRow:
    """A run's MRR of both structures under both forms."""
    ours, ranking = dict[str, float](), list[str]()
    for letter, (form, words) in _FORMS.items():
        report = rank(run, queries, options, _STRUCTURES, union=form)
        ours |= {f"{name}-{letter}": 100.0 * m.mrr for name, m in report.measured.items()}
        ranking.append(f"MRR is filtered; equal scores: {report.ties} rank.")
        if form == "dnf":
            ranking += asked_notes(report, _STRUCTURES)
        for reason, names in report.by_reason.items():
            ranking.append(f"Not answered {words}: {', '.join(names)} ({reason}).")
    label = title_of(run)
    return RunRow(
        run=run,
        queries=queries,
        row=Row(label, ours),
        comparisons=tuple(compare(label, ours, paper.row(run.recipe.model))),
        ranking=tuple(ranking),
        notes=run_notes(run, queries, options, paper),
    )


UNION = Experiment(
    name="union",
    paper=("table:dis",),
    summary="unions by DNF against De Morgan's law, on 2u and up",
    run=union,
    options=("split", "checkpoint", "max_queries", "queries"),
)
