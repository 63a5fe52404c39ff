"""Appendix C.5 (Tables 15 and 16): mean and standard deviation of MRR over several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from conekg.errors import ConfigError
from conekg.experiments.beside_paper import compare, of_release, paper_rows
from conekg.experiments.experiment import Experiment, Tables, common_data_set, differences
from conekg.experiments.mrr_table import mrr_table, queries_of_each, rank_row
from conekg.experiments.options import Options
from conekg.experiments.published import model_title, published
from conekg.experiments.table import Cell, Row
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.recipe import Recipe
from conekg.training.run import Run

PAPER_SEEDS = (0, 10, 100, 1000, 10000)
"""The seeds of the paper's error bars."""

_TABLES = (
    ("Seeds, without negation", POSITIVE_STRUCTURES, "table:errorbar_epfo"),
    ("Seeds, with negation", NEGATION_STRUCTURES, "table:errorbar_neg"),
)
_TITLES = {"mean": "ConE, mean", "deviation": "ConE, standard deviation"}
_NOTE = (
    "The standard deviation is that of a sample (n − 1); of one run there is none. The paper's "
    f"seeds are {', '.join(map(str, PAPER_SEEDS))}."
)


def seeds(runs: Sequence[Run], options: Options) -> Tables:
    """Mean and standard deviation of MRR over runs that differ in their seed (Tables 15, 16)."""
    data_set = common_data_set(runs)
    _refuse_other_differences(runs)
    all_queries = queries_of_each(runs, options)
    model = runs[0].recipe.model
    name, tables = model_title(model), []
    for title, structures, label in _TABLES:
        paper = of_release(published(label, data_set), all_queries)
        measured = [
            rank_row(run, queries, options, structures, paper)
            for run, queries in zip(runs, all_queries, strict=True)
        ]
        own = [each.row for each in measured]
        mean, deviation = mean_and_deviation([row.values for row in own])
        rows = (
            *own,
            Row(f"{name}, mean of {len(runs)}", mean),
            Row(f"{name}, standard deviation", deviation),
            *paper_rows(paper, _TITLES),
            *compare(f"{name}, mean", mean, paper.row("mean") if model == "cone" else {}),
        )
        table = mrr_table(title, measured, options, structures, paper, opening=(_NOTE,))
        tables.append(replace(table, rows=rows, digits=3))
    return tuple(tables)


def mean_and_deviation(
    rows: Sequence[Mapping[str, Cell]],
) -> tuple[dict[str, float], dict[str, float]]:
    """Mean and sample standard deviation of every column that all rows have."""
    columns = [column for column in rows[0] if all(column in row for row in rows)]
    values = {column: np.array([row[column] for row in rows]) for column in columns}
    mean = {column: float(of.mean()) for column, of in values.items()}
    if len(rows) < 2:
        return mean, {}
    return mean, {column: float(of.std(ddof=1)) for column, of in values.items()}


def _refuse_other_differences(runs: Sequence[Run]) -> None:
    """Raise `ConfigError` if runs differ in more than their seed, or have the same seed."""

    def without_seed(run: Run) -> Recipe:
        return replace(run.recipe, training=replace(run.recipe.training, seed=0))

    for run in runs[1:]:
        differing = _in_words(differences(without_seed(run), without_seed(runs[0])))
        if differing:
            raise ConfigError(
                f"{run.folder} and {runs[0].folder} differ in more than their seed: "
                f"{', '.join(differing[:5])}{', ...' if len(differing) > 5 else ''}; train them by "
                "one recipe, each with a --set training.seed=... of its own"
            )
    chosen = [run.recipe.training.seed for run in runs]
    if len(set(chosen)) < len(chosen):
        raise ConfigError(
            f"two runs have the same seed: {', '.join(map(str, chosen))}; give one run of each seed"
        )


def _in_words(differing: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """The differences as `training.steps (60, 700)`; settings that are lists by name alone."""
    return [
        key if isinstance(own, (list, tuple)) else f"{key} ({own}, {other})"
        for key, (own, other) in differing.items()
    ]


SEEDS = Experiment(
    name="seeds",
    paper=("table:errorbar_epfo", "table:errorbar_neg"),
    summary="mean and standard deviation of MRR over seeds",
    run=seeds,
    options=("split", "checkpoint", "max_queries", "queries"),
    compares=True,
)
