"""Tables 1 and 2: MRR of every structure, with and without negation, ours beside the paper's.

Also the measuring that other tables of MRR share: a run's row, the paper's rows, and how
far apart they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.metrics import AVERAGES
from conekg.evaluation.report import Report
from conekg.experiments.embedded import only_structures, other_queries_note
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    missing_note,
    title_of,
)
from conekg.experiments.options import Options
from conekg.experiments.published import MODEL_TITLES, Published, published
from conekg.experiments.table import Row, Table, difference
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
    paper = paper_table(label, data_set, options)
    deviation = published(error_label, data_set).row("deviation")
    rows, comparisons, notes = list[Row](), list[Row](), list[str]()
    for run, queries in zip(runs, queries_of_each(runs, options), strict=True):
        report = rank(run, queries, options, structures)
        ours = mrr_row(report, structures)
        rows.append(Row(title_of(run), ours))
        theirs = paper.row(run.recipe.model)
        comparisons += compare(title_of(run), ours, theirs)
        if theirs and deviation and run.recipe.model == "cone":
            within = is_within(ours, theirs, deviation)
            if within:
                name = f"{title_of(run)} within the error bar"
                comparisons.append(Row(name, within, "comparison"))
                notes.append(ERROR_BAR_NOTE)
        notes += [
            describe(run, options.checkpoint),
            *report_notes(report),
            *origin_note(run, queries, paper),
        ]
    notes += same_queries_note(runs, options, structures)
    notes += [*average_note(rows), *absence_note(paper, runs[0].graph.name, options)]
    return Table(
        title=f"{title}, {runs[0].graph.name}, {queries_title(options)}",
        columns=(*structures, AVERAGE),
        rows=(*rows, *paper_rows(paper), *comparisons),
        paper=label,
        unit=paper.unit,
        notes=tuple(dict.fromkeys(notes)),
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


def release_of(options: Options) -> str | None:
    """Whose release the given queries are, by the files they are in.

    None where they are the runs' own, or in a file of ours, which does not say.
    """
    given = options.queries
    if given is None or given.is_file() or (given / f"{options.split}.arrow").is_file():
        return None
    return "BetaE" if (given / f"{options.split}-queries.pkl").is_file() else "Query2Box"


def paper_table(label: str, data_set: str | None, options: Options) -> Published:
    """The paper's table of that label, without rows where the given queries are of another release.

    The releases of one graph have other queries: how far apart their numbers are says nothing.
    """
    paper = published(label, data_set)
    return paper if release_of(options) in (None, paper.release) else replace(paper, rows={})


def absence_note(paper: Published, graph_name: str, options: Options) -> tuple[str, ...]:
    """Why nothing of the paper stands beside the numbers, where that is so."""
    given = release_of(options)
    if given in (None, paper.release) or data_set_of(graph_name) not in paper.data_sets:
        return missing_note(paper, graph_name)
    return (
        f"These are queries in the form of the {given} release. The numbers of the paper's "
        f"{paper.place} are of the {paper.release} release, which has other queries, and are left "
        "out: give its folder as --queries to compare with them.",
    )


def origin_note(run: Run, queries: QuerySet, paper: Published) -> tuple[str, ...]:
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
            "--queries takes."
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


def report_notes(report: Report) -> list[str]:
    """How the ranks came about and what was not answered; a report's own averages are not shown."""
    return [note for note in report.notes() if note.split()[0] not in AVERAGES]


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
    ours: dict[str, float], theirs: dict[str, float], deviation: dict[str, float]
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
