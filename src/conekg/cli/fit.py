"""`conekg fit`: from a file of triples to a model that answers questions, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conekg.cli.console import print_whole, say, warn
from conekg.cli.options import ConfigOption, MaxMinutesOption, ModelOption, OutOption, SetOption
from conekg.cli.training_report import (
    in_shell,
    interruption_reported,
    printed_events,
    report_calibration,
    report_outcome,
)
from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph

_FEW_FACTS = 20
"""With fewer held-out facts than this, metrics and probabilities may well be 10 points off."""


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
) -> None:
    """Make a run from triples: read, split, sample, train, evaluate and calibrate.

    Prints which settings it chose and why. Afterwards `conekg ask RUN "..."` answers questions,
    `conekg evaluate RUN` prints the table of metrics again, `conekg serve RUN` starts the page.
    """
    from conekg.answering.fit import fit as fit_run
    from conekg.training.recipe_change import read_config

    if resume:
        check_same_graph(out, triples)
    continue_with = f"conekg fit {in_shell(triples)} --resume --out {in_shell(out)}"
    with interruption_reported(out, continue_with), printed_events() as events:
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
    elif result.report is not None and result.baseline is not None:
        print_whole(result.report.to_table({"frequency": result.baseline.row()}))
    if result.warning is not None:
        warn(result.warning)
    if result.calibration is not None:
        report_calibration(result.calibration)
    if result.outcome.finished:
        report_split(result.run.graph)
        say(f'the run is in {out}; ask it: `conekg ask {in_shell(out)} "..."`')


def report_split(graph: KnowledgeGraph) -> None:
    """Say how many facts the model learnt from and how many were held out."""
    learnt, valid, test = (len(graph.edges(split)) // 2 for split in SPLITS)
    if valid or test:
        say(
            f"learnt from {learnt:,} facts; {valid:,} validation and {test:,} test facts were held "
            "out; `conekg ask --known test` counts these as known too"
        )
    if any(0 < held_out < _FEW_FACTS for held_out in (valid, test)):
        say("with so few held-out facts, neither the metrics nor the probabilities are reliable")


def check_same_graph(out: Path, triples: str) -> None:
    """Raise an error if `out` is not a run, or was started on a graph other than `triples`."""
    from conekg.graph.source import read_source
    from conekg.training.run import open_run

    if read_source(triples).graph.fingerprint != open_run(out).graph.fingerprint:
        raise ConfigError(
            f"{out} was started on another graph than {triples}, or that has changed since; give "
            "the graph that the run was started with, or start a new run",
            key="resume",
        )
