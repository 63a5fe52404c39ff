"""Runs an experiment for `reproduce`, prints its tables and writes them to files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conekg.cli.console import progress, say
from conekg.cli.output_file import write_file
from conekg.cli.paper_tables import print_tables
from conekg.version import VERSION

if TYPE_CHECKING:
    from conekg.experiments.experiment import Experiment, Tables
    from conekg.experiments.options import Options
    from conekg.training.run import Run


@dataclass(frozen=True)
class Measured:
    """The tables of an experiment, with the runs and the options that it was made with."""

    experiment: Experiment
    runs: Sequence[Run]
    options: Options
    tables: Tables

    def print(self) -> None:
        """Print the tables on standard output."""
        print_tables(self.tables)

    def write_json(self, path: Path) -> None:
        """Write the tables unrounded, with the runs and all options that the experiment uses."""
        from conekg.experiments.experiment import run_facts, told_apart

        taken = self.experiment.options
        checkpoint = self.options.checkpoint if "checkpoint" in taken else None
        content = {
            "experiment": self.experiment.name,
            "conekg": VERSION,
            "options": {key: _plain(getattr(self.options, key)) for key in taken},
            "runs": [run_facts(run, checkpoint) for run in told_apart(self.runs)],
            "tables": [table.to_json() for table in self.tables],
        }
        write_file(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")

    def write_markdown(self, path: Path) -> None:
        """Write the tables as a Markdown page."""
        from conekg.experiments.table import tables_markdown

        write_file(path, tables_markdown(f"conekg reproduce {self.experiment.name}", self.tables))

    def draw(self, path: Path) -> None:
        """Draw the tables as curves or bars."""
        from conekg.experiments.picture import draw_tables

        draw_tables(self.tables, path)
        say(f"drew {path}")


def measure(experiment: Experiment, runs: Sequence[Run], given: Mapping[str, Any]) -> Measured:
    """The result of an experiment with the given options and defaults for the others."""
    from conekg.experiments.options import Options

    with progress(experiment.name, unit=experiment.counted) as bar:
        options = Options(**given, progress=bar.update)
        return Measured(experiment, runs, options, experiment.measure(runs, options))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
