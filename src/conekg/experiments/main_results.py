"""Tables 1 and 2: MRR of every structure, with and without negation, ours beside the paper's.

Also what other tables of MRR share: the table itself, a run's row, the paper's rows, and
how far apart they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.metrics import AVERAGES
from conekg.evaluation.report import Report
from conekg.experiments.embedded import counts_note, only_structures, other_queries_note
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    missing_note,
    notes_of_each,
    title_of,
)
from conekg.experiments.options import Options
from conekg.experiments.published import MODEL_TITLES, Published, published
from conekg.experiments.table import Cell, Row, Table, difference
from conekg.query.rewrite import UnionForm
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.sampling.query_set import QuerySet
from conekg.sampling.source import open_queries
from conekg.training.recipes import data_set_of
from conekg.training.run import Run

AVERAGE = "AVG"
"""What the paper calls the mean over a table's structures."""

ROUNDING = 0.05
"""The paper prints one decimal of a percentage, so its means are known to within so much."""

ERROR_BAR_NOTE = (
    "Within the error bar: the difference is at most the paper's standard deviation over five "
    f"seeds, plus {ROUNDING} for the rounding of its mean."
)


def main_epfo(runs: Sequence[Run], options: Options) -> Tables:
    """The MRR of the nine structures without negation (Table 1)."""
    labels = ("table:epfo_results", "table:errorbar_epfo")
    return (_main_table(runs, options, "Queries without negation", POSITIVE_STRUCTURES, *labels),)


def main_negation(runs: Sequence[Run], options: Options) -> Tables:
    """The MRR of the five structures with negation (Table 2)."""
    labels = ("table:negation_results", "table:errorbar_neg")
    return (_main_table(runs, options, "Queries with negation", NEGATION_STRUCTURES, *labels),)


def _main_table(
    runs: Sequence[Run],
    options: Options,
    title: str,
    structures: Sequence[str],
    label: str,
    error_label: str,
) -> Table:
    data_set = common_data_set(runs)
    all_queries = queries_of_each(runs, options)
    paper = of_release(published(label, data_set), all_queries)
    deviation = published(error_label, data_set).row("deviation")
    measured = [
        _beside_error_bar(rank_row(run, queries, options, structures, paper), paper, deviation)
        for run, queries in zip(runs, all_queries, strict=True)
    ]
    return mrr_table(title, measured, options, structures, paper)


def _beside_error_bar(measured: RunRow, paper: Published, deviation: dict[str, float]) -> RunRow:
    """The row, and whether it is within the paper's error bar, which is ConE's alone."""
    if measured.run.recipe.model != "cone" or not deviation:
        return measured
    within = is_within(measured.row.values, paper.row("cone"), deviation)
    if not within:
        return measured
    bar = Row(f"{measured.row.label} within the error bar", within, "comparison")
    return replace(
        measured,
        comparisons=(*measured.comparisons, bar),
        notes=(ERROR_BAR_NOTE, *measured.notes),
    )


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
        absence = absence_note(paper, runs[0].graph.name, all_queries)
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


GIVEN_HERE = "--queries"
"""What takes other queries, where an experiment has that option."""

GIVEN_IN_TRAINING = "`conekg train --queries`"
"""What gives a run other queries, where an experiment takes the runs' own alone."""


def of_release(paper: Published, all_queries: Sequence[QuerySet]) -> Published:
    """The paper's table, without rows where some of the queries are of another release.

    The releases of one graph have other queries: how far apart their numbers are says nothing.
    """
    return paper if _other_release(paper, all_queries) is None else replace(paper, rows={})


def _other_release(paper: Published, all_queries: Sequence[QuerySet]) -> str | None:
    """Whose release some of the queries are, where it is not the paper's; sampled ones are none."""
    others = (queries.release for queries in all_queries)
    return next((other for other in others if other not in (None, paper.release)), None)


def absence_note(
    paper: Published, graph_name: str, all_queries: Sequence[QuerySet], taken_by: str = GIVEN_HERE
) -> tuple[str, ...]:
    """Why nothing of the paper stands beside the numbers, where that is so."""
    other = _other_release(paper, all_queries)
    if other is None or data_set_of(graph_name) not in paper.data_sets:
        return missing_note(paper, graph_name)
    these = "These are" if all(each.release == other for each in all_queries) else "Some are"
    return (
        f"{these} queries in the form of the {other} release. The numbers of the paper's "
        f"{paper.place} are of the {paper.release} release, which has other queries, and are left "
        f"out: give its folder to {taken_by} to compare with them.",
    )


def origin_note(
    run: Run, queries: QuerySet, paper: Published, taken_by: str = GIVEN_HERE
) -> tuple[str, ...]:
    """That a run's queries are not the paper's, where its numbers stand beside."""
    notes = list[str]()
    if paper.rows and queries.split != "test":
        notes.append(
            f"The paper's numbers are of test queries, these of {queries.split} queries: the "
            "differences are not those of the models alone."
        )
    if paper.rows and queries.protocol is not None:
        notes.append(
            f"{title_of(run)}: these queries were sampled here (protocol {queries.protocol}, seed "
            f"{queries.seed}); the paper's are those of the {paper.release} release, which "
            f"{taken_by} takes."
        )
    return tuple(notes)


def same_queries_note(
    runs: Sequence[Run], options: Options, structures: Sequence[str]
) -> tuple[str, ...]:
    """That runs of one table are ranked on different queries, where they are."""
    if options.queries is not None:
        return ()
    remedy = " --queries ranks all runs on the same ones."
    return other_queries_note(runs, structures, options.split, remedy)


def run_notes(run: Run, queries: QuerySet, options: Options, paper: Published) -> tuple[str, ...]:
    """What a run is, and where the queries it is ranked on are from."""
    return describe(run, options.checkpoint), *origin_note(run, queries, paper)


def ranking_notes(measured: Sequence[RunRow]) -> list[str]:
    """How the ranks of runs came about: what is so of all once, the rest by whose it is."""
    return notes_of_each({title_of(each.run): each.ranking for each in measured})


def report_notes(reports: Mapping[str, Report], structures: Sequence[str]) -> list[str]:
    """How the ranks of runs came about, by the runs' titles."""
    return notes_of_each(
        {title: ranking_of(report, structures) for title, report in reports.items()}
    )


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


def mrr_row(report: Report, structures: Sequence[str]) -> dict[str, float]:
    """MRR in percent by structure, and their mean when none of them is missing."""
    row = {
        name: 100.0 * report.measured[name].mrr for name in structures if name in report.measured
    }
    if len(row) == len(structures):
        row[AVERAGE] = sum(row.values()) / len(row)
    return row


def paper_rows(paper: Published, titles: dict[str, str] | None = None) -> tuple[Row, ...]:
    """The paper's rows, as they stand there."""
    titles = MODEL_TITLES if titles is None else titles
    return tuple(
        Row(f"{titles.get(name, name)}, {paper.place}", values, "paper")
        for name, values in paper.rows.items()
    )


def compare(title: str, ours: dict[str, float], theirs: dict[str, float]) -> list[Row]:
    """Ours minus theirs, as one row; none when the paper has nothing to compare with."""
    apart = difference(ours, theirs)
    return [Row(f"{title} − paper", apart, "comparison")] if apart else []


def is_within(
    ours: Mapping[str, Cell], theirs: Mapping[str, float], deviation: Mapping[str, float]
) -> dict[str, bool]:
    """By column, whether ours is as near to theirs as another seed of theirs would be."""
    return {
        column: abs(apart) <= deviation[column] + ROUNDING
        for column, apart in difference(ours, theirs).items()
    }


def average_note(rows: Sequence[Row]) -> tuple[str, ...]:
    """A sentence about averages that are missing, where some are."""
    if all(AVERAGE in row.values for row in rows):
        return ()
    return (f"{AVERAGE} is left out where a structure is missing.",)


MAIN_EPFO = Experiment(
    name="main-epfo",
    paper=("table:epfo_results", "table:errorbar_epfo"),
    summary="MRR of the nine structures without negation",
    run=main_epfo,
    options=("split", "checkpoint", "max_queries", "queries"),
)

MAIN_NEGATION = Experiment(
    name="main-negation",
    paper=("table:negation_results", "table:errorbar_neg"),
    summary="MRR of the five structures with negation",
    run=main_negation,
    options=("split", "checkpoint", "max_queries", "queries"),
)
