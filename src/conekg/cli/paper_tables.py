"""Tables with our numbers beside the paper's: measured for `train --tables`, printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conekg.cli.console import print_text, print_whole, progress

if TYPE_CHECKING:
    from conekg.experiments.experiment import Tables
    from conekg.experiments.table import Table
    from conekg.training.run import Run


def measure_main_tables(run: Run) -> list[Tables]:
    """The paper's Table 1 for a run's test queries, and Table 2 if the run's model can negate."""
    from conekg.experiments.main_results import MAIN_EPFO, MAIN_NEGATION
    from conekg.experiments.options import Options
    from conekg.model.catalog import find_model

    can_negate = find_model(run.recipe.model).model.can_negate
    measured = []
    experiments = (MAIN_EPFO, MAIN_NEGATION) if can_negate else (MAIN_EPFO,)
    for experiment in experiments:
        with progress(experiment.name, unit=experiment.counted) as bar:
            measured.append(experiment.measure([run], Options(progress=bar.update)))
    return measured


def print_tables(tables: Sequence[Table]) -> None:
    """Print tables in full width with their notes; notes that all have are printed once, last."""
    from conekg.experiments.table import common_heading, common_notes

    common = common_notes(tables)
    for table in tables:
        print_whole(table.to_rich())
        for note in table.notes:
            if note not in common:
                print_text(f"- {note}")
    if common:
        print_text(common_heading(tables))
    for note in common:
        print_text(f"- {note}")
