"""`conekg reproduce`: a table or figure of the paper, made from run folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from conekg.cli.console import print_fitting, print_text
from conekg.cli.measured import measure
from conekg.cli.output_file import check_files
from conekg.cli.reproduce_all import ALL, reproduce_all
from conekg.errors import ConfigError

if TYPE_CHECKING:
    from conekg.experiments.experiment import Experiment


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The experiment (see `--list`), or `all`: every one that the runs allow.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders from `conekg fit` or `train`.", show_default=False),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the experiments and their options.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the tables to this JSON file.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables to this Markdown file.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Also draw the tables as curves or bars into this file (.png, .svg or .pdf)."
        ),
    ] = None,
    split: Annotated[
        Literal["train", "valid", "test"] | None,
        typer.Option(help="Which queries of the runs; by default test.", show_default=False),
    ] = None,
    checkpoint: Annotated[
        Literal["best", "last"] | None,
        typer.Option(help="Which checkpoint to use; by default best.", show_default=False),
    ] = None,
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="Use at most this many queries per structure.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many random pairs or queries to draw; by default as many as in the paper.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, help="Seed of all random choices; by default 0."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="How many training steps to time together; by default 5."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Use these queries instead of the runs' own: a file or a folder from `conekg "
            "sample`, or a BetaE or Query2Box folder."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write files to.")] = None,
) -> None:
    """Repeat an experiment of the paper on any run and print our numbers beside the paper's.

    `conekg reproduce --list` shows which experiment repeats which table or figure, and its
    options; an option that an experiment does not use is refused. `conekg reproduce all RUN --out
    FOLDER` makes every experiment that the runs allow and writes tables, data and pictures.
    """
    given: dict[str, Any] = {
        "split": split,
        "checkpoint": checkpoint,
        "max_queries": max_queries,
        "pairs": pairs,
        "seed": seed,
        "steps": steps,
        "queries": queries,
        "out": out,
    }
    given = {key: value for key, value in given.items() if value is not None}
    files = {"json": json_file, "markdown": markdown, "picture": picture}
    file_flags = [_flag(key) for key, file in files.items() if file is not None]
    if show_list:
        beside = [] if name is None else [f"NAME, as {name!r} is one"]
        beside += [*map(_flag, given), *file_flags]
        if beside:
            raise ConfigError(f"--list shows all experiments and takes no {beside[0]}")
        _print_list()
        return
    if name is None:
        raise ConfigError("give the NAME of an experiment, or --list to see all")
    from conekg.experiments.catalog import find_experiment
    from conekg.experiments.picture import check_picture
    from conekg.sampling.source import open_queries
    from conekg.training.run import open_run

    experiment = None if name == ALL else find_experiment(name)
    if experiment is not None:
        _refuse_without_effect(experiment, given)
    elif file_flags:
        raise ConfigError(
            f"{file_flags[0]} is for one experiment; {ALL} writes into the folder of --out"
        )
    check_files(list(files.values()), [] if queries is None else [queries])
    if picture is not None:
        check_picture(picture)
    opened = [open_run(folder) for folder in runs or []]
    if opened and queries is not None and (queries.is_file() or experiment is None):
        # A file has the queries of one split and knows which; a different --split is refused.
        given["split"] = open_queries(queries, split, opened[0].graph).split
    if experiment is None:
        reproduce_all(opened, given)
        return
    measured = measure(experiment, opened, given)
    measured.print()
    if json_file is not None:
        measured.write_json(json_file)
    if markdown is not None:
        measured.write_markdown(markdown)
    if picture is not None:
        measured.draw(picture)


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _refuse_without_effect(experiment: Experiment, given: dict[str, Any]) -> None:
    for key in given:
        if key not in experiment.options:
            flags = ", ".join(map(_flag, experiment.options))
            raise ConfigError(
                f"{_flag(key)} has no effect on {experiment.name}, "
                f"which takes {flags or 'no options of this kind'}",
                key=key,
            )


def _print_list() -> None:
    from conekg.experiments.catalog import EXPERIMENTS
    from conekg.experiments.published import place_of

    table = Table(title="experiments")
    table.add_column("name", no_wrap=True)
    for column in ("what it measures", "in the paper", "options"):
        table.add_column(column, overflow="fold")
    for experiment in EXPERIMENTS.values():
        places = ", ".join(map(place_of, experiment.paper))
        flags = " ".join(map(_flag, experiment.options))
        table.add_row(experiment.name, experiment.summary, places, flags)
    print_fitting(table)
    print_text(f"`conekg reproduce {ALL} RUN --out FOLDER` makes all that the runs allow.")
