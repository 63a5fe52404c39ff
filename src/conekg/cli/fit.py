"""`conekg fit`: from a file of triples to a model that answers questions, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conekg.cli.console import print_json, print_whole, say, warn
from conekg.cli.options import (
    ConfigOption,
    JsonOption,
    MaxMinutesOption,
    ModelOption,
    OutOption,
    SetOption,
)
from conekg.cli.run_json import calibration_facts, training_facts
from conekg.cli.training_report import (
    exit_if_interrupted,
    in_shell,
    interruption_reported,
    printed_events,
    report_calibration,
    report_outcome,
)
from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.lines import counted

if TYPE_CHECKING:
    from conekg.answering.fit import FitResult


def fit(
    triples: Annotated[
        str,
        typer.Argument(help="A file of triples, a graph folder, a benchmark's name or geography."),
    ],
    out: OutOption,
    model: ModelOption = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            "-r",
            help="paper (the published schedule), fast (for a GPU), medium or small (for a CPU or "
            "a small graph); by default chosen for the graph and the machine.",
        ),
    ] = None,
    settings: SetOption = None,
    config: ConfigOption = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue the fit in --out where it stopped; give the same TRIPLES."
        ),
    ] = False,
    max_minutes: MaxMinutesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a run from triples: read, split, sample, train, evaluate and calibrate.

    Prints which settings it chose and why. Afterwards `conekg ask RUN "..."` answers questions,
    `conekg evaluate RUN` prints the table of metrics again, `conekg serve RUN` starts the page.
    """
    from conekg.answering.fit import fit as fit_run
    from conekg.training.recipe_change import read_config

    continue_with = f"conekg fit {in_shell(triples)} --resume --out {in_shell(out)}"
    continue_with += " --json" if as_json else ""
    unmeasured = dict.fromkeys(("test", "baseline", "below_baseline", "calibration"))
    with (
        interruption_reported(out, continue_with, unmeasured if as_json else None),
        printed_events() as events,
    ):
        if resume:
            check_same_graph(out, triples)
        result = fit_run(
            triples,
            out,
            model=model,
            recipe=recipe,
            config=read_config(config) if config is not None else None,
            settings=settings or [],
            max_minutes=max_minutes,
            resume=resume,
            events=events,
        )
    report_outcome(result.outcome, continue_with)
    if result.report is not None and not result.report.measured:
        say("not evaluated: there are no test queries, which need held-out test facts")
    elif result.report is not None and result.baseline is not None and not as_json:
        print_whole(result.report.to_table({"frequency": result.baseline.row()}))
    if result.warning is not None:
        warn(result.warning)
    if result.calibration is not None:
        report_calibration(result.calibration)
    if result.outcome.finished:
        report_split(result.run.graph)
        say(f'the run is in {out}; ask it: `conekg ask {in_shell(out)} "..."`')
    if as_json:
        print_json(training_facts(out, result.outcome, continue_with) | _measured(result))
    exit_if_interrupted(result.outcome)


def _measured(result: FitResult) -> dict[str, Any]:
    """The reports and the calibration of a fit as plain data; None for what was not measured."""
    report, baseline, calibration = result.report, result.baseline, result.calibration
    return {
        "test": None if report is None else report.to_json(),
        "baseline": None if baseline is None else baseline.to_json(),
        "below_baseline": None if report is None else result.below_baseline,
        "calibration": None if calibration is None else calibration_facts(calibration),
    }


def report_split(graph: KnowledgeGraph) -> None:
    """Say how many facts the model learnt from and how many were held out."""
    from conekg.answering.fit import FEW_FACTS

    learnt, valid, test = (len(graph.edges(split)) // 2 for split in SPLITS)
    if valid or test:
        say(
            f"learnt from {counted(learnt, 'fact')}; {valid:,} validation and "
            f"{counted(test, 'test fact')} were held out; `conekg ask --known test` counts these "
            "as known too"
        )
    if any(0 < held_out < FEW_FACTS for held_out in (valid, test)):
        say("with so few held-out facts, neither the metrics nor the probabilities are reliable")


def check_same_graph(out: Path, triples: str) -> None:
    """Raise an error if `out` is not a run, or was started on a graph other than `triples`."""
    from conekg.graph.source import read_source
    from conekg.training.run import open_run

    run = open_run(out)  # refused first if it is none, as reading the graph may take long
    if read_source(triples).graph.fingerprint != run.graph.fingerprint:
        raise ConfigError(
            f"{out} was started on another graph than {triples}, or that has changed since; give "
            "the graph that the run was started with, or start a new run",
            key="resume",
        )
