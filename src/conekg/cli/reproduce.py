"""`conekg reproduce`: a table or figure of the paper, from run folders, ours beside theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from conekg.cli.console import print_fitting, progress, say
from conekg.cli.output_file import check_files, write_file
from conekg.cli.paper_tables import print_tables
from conekg.errors import ConfigError
from conekg.version import VERSION

if TYPE_CHECKING:
    from conekg.experiments.experiment import Experiment


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="Which experiment; `--list` shows all.", show_default=False)
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders of `conekg fit` or `train`.", show_default=False),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the experiments and what each takes.")
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
            help="Also draw them, as curves or bars, into this file (.png, .svg or .pdf)."
        ),
    ] = None,
    split: Annotated[
        Literal["train", "valid", "test"] | None,
        typer.Option(help="Which queries of the runs; test when left out.", show_default=False),
    ] = None,
    checkpoint: Annotated[
        Literal["best", "last"] | None,
        typer.Option(help="Which checkpoint; best when left out.", show_default=False),
    ] = None,
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="Use at most so many queries a structure.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many random pairs or queries are drawn; the paper's number when left out.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, help="Of everything that is drawn; 0 when left out."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="How many training steps are timed at once; 5 when left out."),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Other queries than the runs' own: a file or a folder of `conekg sample`, or a "
            "BetaE or Query2Box folder."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder that files are written to.")] = None,
) -> None:
    """Repeat an experiment of the paper on any run and print ours beside the paper's numbers.

    An option that an experiment does not look at is refused. `conekg reproduce --list` shows
    which experiment repeats which table, and with which options.
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
    if show_list:
        beside = [] if name is None else [f"NAME, as {name!r} is one"]
        beside += [_flag(key) for key in (*given, *(key for key, file in files.items() if file))]
        if beside:
            raise ConfigError(f"--list shows all experiments and takes no {beside[0]}")
        _print_list()
        return
    if name is None:
        raise ConfigError("give the NAME of an experiment, or --list to see all")
    from conekg.experiments.catalog import find_experiment
    from conekg.experiments.experiment import run_facts, told_apart
    from conekg.experiments.options import Options
    from conekg.experiments.picture import check_picture, draw_tables
    from conekg.experiments.table import tables_markdown
    from conekg.sampling.source import open_queries
    from conekg.training.run import open_run

    experiment = find_experiment(name)
    _refuse_without_effect(experiment, given)
    check_files(list(files.values()), [] if queries is None else [queries])
    if picture is not None:
        check_picture(picture)
    opened = [open_run(folder) for folder in runs or []]
    if opened and queries is not None and queries.is_file():
        # A file is of one split, and says of which: another --split is refused.
        given["split"] = open_queries(queries, split, opened[0].graph).split
    with progress(name, unit=experiment.counted) as bar:
        options = Options(**given, progress=bar.update)
        tables = experiment.measure(opened, options)
    print_tables(tables)
    if json_file is not None:
        content = {
            "experiment": name,
            "conekg": VERSION,
            "options": {key: _plain(getattr(options, key)) for key in experiment.options},
            "runs": [
                run_facts(run, options.checkpoint if "checkpoint" in experiment.options else None)
                for run in told_apart(opened)
            ],
            "tables": [table.to_json() for table in tables],
        }
        write_file(json_file, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
    if markdown is not None:
        write_file(markdown, tables_markdown(f"conekg reproduce {name}", tables))
    if picture is not None:
        draw_tables(tables, picture)
        say(f"drew {picture}")


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


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
