"""Tables 1 and 2: MRR of every structure, without and with negation, ours beside the paper's.

ConE's rows are also compared with the paper's error bars (Tables 15 and 16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conekg.experiments.beside_paper import of_release
from conekg.experiments.experiment import Experiment, Tables, common_data_set
from conekg.experiments.mrr_table import RunRow, mrr_table, queries_of_each, rank_row
from conekg.experiments.options import Options
from conekg.experiments.published import Published, published
from conekg.experiments.table import Cell, Row, Table, difference
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.run import Run

ROUNDING = 0.05
"""The paper prints percentages to one decimal, so its means are exact to within this much."""

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
    """The row, for ConE with a second one: whether it is within the paper's error bar."""
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


def is_within(
    ours: Mapping[str, Cell], theirs: Mapping[str, float], deviation: Mapping[str, float]
) -> dict[str, bool]:
    """By column, whether ours differs from theirs by no more than the deviation and rounding."""
    return {
        column: abs(apart) <= deviation[column] + ROUNDING
        for column, apart in difference(ours, theirs).items()
    }


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
