"""Tables of MRR: ranks runs on their own queries or on given ones, and collects rows and notes.

The experiments that report MRR share it. Which of the paper's numbers stand beside a row is left
to `beside_paper.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conekg.errors import DataError
from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.metrics import AVERAGES
from conekg.evaluation.report import Report
from conekg.experiments.beside_paper import compare, origin_note, paper_rows, release_note
from conekg.experiments.embedded import counts_note, only_structures, other_queries_note
from conekg.experiments.experiment import describe, notes_of_each, title_of
from conekg.experiments.options import Options
from conekg.experiments.published import Published
from conekg.experiments.table import Row, Table
from conekg.query.branches import UnionForm
from conekg.sampling.query_set import QuerySet
from conekg.sampling.source import open_queries
from conekg.training.run import Run

AVERAGE = "AVG"
"""What the paper calls the mean over a table's structures."""


@dataclass(frozen=True)
class RunRow:
    """A run's row in a table of MRR, with its notes."""

    run: Run
    queries: QuerySet
    row: Row
    comparisons: tuple[Row, ...]
    """The differences from the paper's row, if the paper has one."""
    ranking: tuple[str, ...]
    """Notes on how its queries were ranked."""
    notes: tuple[str, ...]
    """Notes on how the run was trained and where its queries are from."""


def mrr_table(
    title: str,
    measured: Sequence[RunRow],
    options: Options,
    structures: Sequence[str],
    paper: Published,
    *,
    columns: tuple[str, ...] | None = None,
    paper_titles: dict[str, str] | None = None,
    opening: Sequence[str] = (),
    closing: Sequence[str] | None = None,
) -> Table:
    """The table of runs of one graph: their rows, the paper's, and the differences.

    By default `columns` are the structures and their mean, and `closing`, the last notes, say what
    is missing. `opening` are the first notes. A note that occurs twice stands where it is first.
    """
    runs = [each.run for each in measured]
    if closing is None:
        all_queries = [each.queries for each in measured]
        absence = release_note(paper, runs[0].graph, all_queries)
        closing = (*average_note([each.row for each in measured]), *absence)
    notes = [
        *opening,
        *(note for each in measured for note in each.notes),
        *ranking_notes(measured),
        *same_queries_note(runs, options, structures),
        *closing,
    ]
    return Table(
        title=f"{title}, {runs[0].graph.name}, {queries_title(options)}",
        columns=(*structures, AVERAGE) if columns is None else columns,
        rows=(
            *(each.row for each in measured),
            *paper_rows(paper, paper_titles),
            *(row for each in measured for row in each.comparisons),
        ),
        paper=paper.label,
        unit=paper.unit,
        notes=tuple(dict.fromkeys(notes)),
    )


def rank_row(
    run: Run,
    queries: QuerySet,
    options: Options,
    structures: Sequence[str],
    paper: Published,
    *,
    label: str | None = None,
    theirs: dict[str, float] | None = None,
) -> RunRow:
    """A run's MRR of each structure and their mean, beside the paper's row of its model.

    `label` is the row's label, by default the run's title; `theirs` are the paper's values to
    compare with, by default those of the model.
    """
    report = rank(run, queries, options, structures)
    ours = mrr_row(report, structures)
    label = title_of(run) if label is None else label
    theirs = paper.row(run.recipe.model) if theirs is None else theirs
    return RunRow(
        run=run,
        queries=queries,
        row=Row(label, ours),
        comparisons=tuple(compare(label, ours, theirs)),
        ranking=tuple(ranking_of(report, structures)),
        notes=run_notes(run, queries, options, paper),
    )


def rank(
    run: Run,
    queries: QuerySet,
    options: Options,
    structures: Sequence[str],
    *,
    union: UnionForm = "dnf",
) -> Report:
    """The report of a run's model on the queries of those structures."""
    return evaluate(
        run.load_model(options.checkpoint, options.device),
        only_structures(queries, structures),
        num_entities=run.graph.num_entities,
        union=union,
        max_queries=options.max_queries,
        progress=options.progress,
    )


def queries_of_each(runs: Sequence[Run], options: Options) -> list[QuerySet]:
    """Each run's own queries of the split, or the queries given by the options, read once.

    The runs must be of one graph. Raises `DataError` where there are no queries.
    """
    if options.queries is None:
        found = [run.queries(options.split) for run in runs]
    else:
        # A file holds the queries of one split and names it; `options.split` chooses in a folder.
        split = None if options.queries.is_file() else options.split
        found = [open_queries(options.queries, split, runs[0].graph)] * len(runs)
    for run, queries in zip(runs, found, strict=True):
        if not len(queries):
            raise DataError(
                f"there are no {queries.split} queries to rank",
                path=str(options.queries or run.folder),
                hint="they need held-out facts, or other queries by --queries or --split",
            )
    return found


def queries_title(options: Options) -> str:
    """The queries' name in a table's title."""
    given = options.queries
    if given is None:
        return f"{options.split} queries"
    which = "queries" if given.is_file() else f"{options.split} queries"
    return f"{which} of {given.resolve().name}"


def run_notes(run: Run, queries: QuerySet, options: Options, paper: Published) -> tuple[str, ...]:
    """Notes on how a run was trained and where the queries that it is ranked on are from."""
    return describe(run, options.checkpoint), *origin_note(run, queries, paper)


def ranking_notes(measured: Sequence[RunRow]) -> list[str]:
    """The notes on ranking of all runs, shared ones once."""
    return notes_of_each({title_of(each.run): each.ranking for each in measured})


def ranking_of(report: Report, structures: Sequence[str]) -> list[str]:
    """Notes on how queries were ranked, how many, and which were not answered or not there.

    The notes on a report's own averages are left out, as those are not shown.
    """
    notes = [note for note in report.notes() if note.split()[0] not in AVERAGES]
    return [*notes, *asked_notes(report, structures)]


def asked_notes(report: Report, structures: Sequence[str]) -> list[str]:
    """Notes on how many queries of each structure were ranked, and on structures without any."""
    counts = {r.structure: r.num_queries for r in report.structures if r.metrics is not None}
    asked = {result.structure for result in report.structures}
    absent = ", ".join(name for name in structures if name not in asked)
    none = [f"There are no {report.split} queries of {absent}."] if absent else []
    return [*counts_note(counts), *none]


def same_queries_note(
    runs: Sequence[Run], options: Options, structures: Sequence[str]
) -> tuple[str, ...]:
    """A note if the runs of a table are ranked on different queries."""
    if options.queries is not None:
        return ()
    remedy = " --queries ranks all runs on the same ones."
    return other_queries_note(runs, structures, options.split, remedy)


def mrr_row(report: Report, structures: Sequence[str]) -> dict[str, float]:
    """MRR in percent by structure, and their mean if no structure is missing."""
    row = {
        name: 100.0 * report.measured[name].mrr for name in structures if name in report.measured
    }
    if len(row) == len(structures):
        row[AVERAGE] = sum(row.values()) / len(row)
    return row


def average_note(rows: Sequence[Row]) -> tuple[str, ...]:
    """A note on why averages are missing, if some are."""
    if all(AVERAGE in row.values for row in rows):
        return ()
    return (f"{AVERAGE} is left out where a structure is missing.",)
