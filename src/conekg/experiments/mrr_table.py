"""Tables of MRR: runs ranked on their own queries or on given ones, and what is told of them.

What of the paper stands beside a row is left to `beside_paper.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.metrics import AVERAGES
from conekg.evaluation.report import Report
from conekg.experiments.beside_paper import compare, origin_note, paper_rows, release_note
from conekg.experiments.embedded import counts_note, only_structures, other_queries_note
from conekg.experiments.experiment import describe, notes_of_each, title_of
from conekg.experiments.options import Options
from conekg.experiments.published import Published
from conekg.experiments.table import Row, Table
from conekg.query.rewrite import UnionForm
from conekg.sampling.query_set import QuerySet
from conekg.sampling.source import open_queries
from conekg.training.run import Run

AVERAGE = "AVG"
"""What the paper calls the mean over a table's structures."""


@dataclass(frozen=True)
class RunRow:
    """A run's row of a table of MRR, and what there is to tell about it."""

    run: Run
    queries: QuerySet
    row: Row
    comparisons: tuple[Row, ...]
    """How far it is from the paper's row, where the paper has one."""
    ranking: tuple[str, ...]
    """How its ranks came about."""
    notes: tuple[str, ...]
    """What the run is, and where its queries are from."""


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
    """The table of runs of one graph: their rows, the paper's, and how far apart they are.

    Its columns are the structures and their mean unless given. Its notes end with what is missing,
    unless a `closing` is given; a note stands where it is first told, so that one of `opening` is
    not repeated further down.
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

    A row of another name than the run's has `label`; what the paper has to compare it with,
    where that is not the row of the model, is `theirs`.
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
    """The ranks of a run's model on those of the queries that are of those structures."""
    return evaluate(
        run.load_model(options.checkpoint, options.device),
        only_structures(queries, structures),
        num_entities=run.graph.num_entities,
        union=union,
        max_queries=options.max_queries,
        progress=options.progress,
    )


def queries_of_each(runs: Sequence[Run], options: Options) -> list[QuerySet]:
    """Each run's own queries of the split, or those that were given in their place, read once.

    The runs are of one graph.
    """
    if options.queries is None:
        return [run.queries(options.split) for run in runs]
    # A file is of one split, and says of which; the option is for folders.
    split = None if options.queries.is_file() else options.split
    return [open_queries(options.queries, split, runs[0].graph)] * len(runs)


def queries_title(options: Options) -> str:
    """What a table's title calls its queries."""
    given = options.queries
    if given is None:
        return f"{options.split} queries"
    which = "queries" if given.is_file() else f"{options.split} queries"
    return f"{which} of {given.resolve().name}"


def run_notes(run: Run, queries: QuerySet, options: Options, paper: Published) -> tuple[str, ...]:
    """What a run is, and where the queries it is ranked on are from."""
    return describe(run, options.checkpoint), *origin_note(run, queries, paper)


def ranking_notes(measured: Sequence[RunRow]) -> list[str]:
    """How the ranks of runs came about: what is so of all once, the rest by whose it is."""
    return notes_of_each({title_of(each.run): each.ranking for each in measured})


def ranking_of(report: Report, structures: Sequence[str]) -> list[str]:
    """How ranks came about, of how many queries, and what was not answered or asked.

    A report's own averages are not shown, so nothing is said of them.
    """
    told = [note for note in report.notes() if note.split()[0] not in AVERAGES]
    return [*told, *asked_notes(report, structures)]


def asked_notes(report: Report, structures: Sequence[str]) -> list[str]:
    """How many queries of each structure were ranked, and of which there are none at all."""
    counts = {r.structure: r.num_queries for r in report.structures if r.metrics is not None}
    asked = {result.structure for result in report.structures}
    absent = ", ".join(name for name in structures if name not in asked)
    none = [f"There are no {report.split} queries of {absent}."] if absent else []
    return [*counts_note(counts), *none]


def same_queries_note(
    runs: Sequence[Run], options: Options, structures: Sequence[str]
) -> tuple[str, ...]:
    """A note where runs of one table are ranked on different queries."""
    if options.queries is not None:
        return ()
    remedy = " --queries ranks all runs on the same ones."
    return other_queries_note(runs, structures, options.split, remedy)


def mrr_row(report: Report, structures: Sequence[str]) -> dict[str, float]:
    """MRR in percent by structure, and their mean when none of them is missing."""
    row = {
        name: 100.0 * report.measured[name].mrr for name in structures if name in report.measured
    }
    if len(row) == len(structures):
        row[AVERAGE] = sum(row.values()) / len(row)
    return row


def average_note(rows: Sequence[Row]) -> tuple[str, ...]:
    """A sentence about averages that are missing, where some are."""
    if all(AVERAGE in row.values for row in rows):
        return ()
    return (f"{AVERAGE} is left out where a structure is missing.",)
