"""`conekg train`: train a model on a graph and queries by a recipe, into a run folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conekg.cli.console import print_json, say
from conekg.cli.options import (
    ConfigOption,
    JsonOption,
    MaxMinutesOption,
    ModelOption,
    SetOption,
)
from conekg.cli.paper_tables import measure_main_tables, print_tables
from conekg.cli.run_json import training_facts
from conekg.cli.training_report import (
    exit_if_interrupted,
    in_shell,
    interruption_reported,
    printed_events,
    report_outcome,
)
from conekg.errors import ConfigError, DataError

if TYPE_CHECKING:
    from conekg.answering.stages import FitEvents
    from conekg.experiments.experiment import Tables
    from conekg.graph.knowledge_graph import KnowledgeGraph, Split
    from conekg.sampling.query_set import QuerySet
    from conekg.training.recipe import TrainingRecipe
    from conekg.training.run import Run


def train(
    graph: Annotated[
        str | None,
        typer.Argument(
            help="geography, a benchmark's name, a graph folder, or a file of triples. "
            "Not needed with --resume."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The run folder to write. Not needed with --show-recipe."),
    ] = None,
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
    queries: Annotated[
        Path | None,
        typer.Option(
            help="A folder of query sets: from `conekg sample`, BetaE or Query2Box. "
            "By default sampled from the graph."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out from its last checkpoint.")
    ] = False,
    max_minutes: MaxMinutesOption = None,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="After training, rank the test queries and print Tables 1 and 2 of the paper, "
            "with our numbers beside the paper's.",
        ),
    ] = False,
    show_recipe: Annotated[
        bool,
        typer.Option(
            "--show-recipe",
            help="Print the resolved recipe as TOML, or with --json as JSON, and exit.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model and keep everything about it in one run folder.

    Ctrl-C saves and stops; --resume continues. On a CPU the result is bit for bit that of an
    uninterrupted run. --set and --config change any hyper-parameter; --show-recipe lists
    them.
    """
    from conekg.answering.stages import (
        check_choices,
        choose_recipe,
        read_graph,
        start_run,
        train_run,
    )
    from conekg.training.loop import pick_device
    from conekg.training.recipe_change import read_config
    from conekg.training.run import check_vacant, open_run

    if show_recipe and graph is not None and not resume:
        _show_recipe(graph, model, recipe, config, settings or [], as_json)
        return
    if out is None:
        raise ConfigError("give --out FOLDER, the run folder to write or to continue", key="out")
    continue_with = f"conekg train --resume --out {in_shell(out)}"
    continue_with += f"{' --tables' if tables else ''}{' --json' if as_json else ''}"
    stops = partial(
        interruption_reported, out, continue_with, {"tables": None} if as_json else None
    )
    with stops(), printed_events() as events:
        if resume:
            given = (graph, settings, config, queries, recipe, model, show_recipe)
            if given != (None, None, None, None, None, None, False):
                raise ConfigError(
                    "--resume continues a run as it was started: it takes no GRAPH, --model, "
                    "--recipe, --set, --config, --queries or --show-recipe"
                )
            run = open_run(out)
            if tables and not run.num_queries("test"):
                raise ConfigError(
                    f"{out} has no test queries, which --tables ranks; leave --tables out",
                    key="tables",
                )
        else:
            if graph is None:
                raise ConfigError("give a GRAPH to train on, or --resume to continue a run")
            check_vacant(out)
            changes = read_config(config) if config is not None else {}
            check_choices(model, recipe, changes)
            if queries is not None:
                held = _splits_of(queries)
                if tables and "test" not in held:
                    raise _no_test_queries(graph, queries)
            facts = read_graph(graph, events)
            chosen = choose_recipe(
                facts, model, recipe, changes, settings or [], pick_device(), events
            )
            if tables and queries is None and not len(facts.edges("test")):
                raise _no_test_queries(graph, queries)
            sets = _query_sets(queries, facts, chosen.training, events)
            if tables and not len(sets.get("test", ())):
                raise _no_test_queries(graph, queries)
            run = start_run(out, facts, chosen, sets, events)
    # A second block, as the progress bars of the first one have to be closed before training.
    with stops(), printed_events() as events:
        say(f"training {run.recipe.model} on {run.graph.name} ({run.recipe.name}), {pick_device()}")
        outcome = train_run(run, max_minutes=max_minutes, events=events)
    report_outcome(outcome, continue_with)
    measured: list[Tables] = []
    if outcome.finished:
        _say_next_steps(run)
        if tables:
            with stops():
                measured = measure_main_tables(open_run(out))
    if as_json:
        each = [table.to_json() for of_one in measured for table in of_one]
        told = training_facts(out, outcome, continue_with)
        print_json(told | {"tables": each if measured else None})
    else:
        for of_one in measured:
            print_tables(of_one)
    exit_if_interrupted(outcome)


def _show_recipe(
    graph: str,
    model: str | None,
    recipe: str | None,
    config: Path | None,
    settings: list[str],
    as_json: bool,
) -> None:
    """Print the recipe that a run with these options would have."""
    from conekg.answering.stages import check_choices, choose_recipe, read_graph
    from conekg.training.loop import pick_device
    from conekg.training.recipe_change import read_config
    from conekg.training.recipe_file import dump_recipe, recipe_to_table

    with printed_events() as events:
        changes = read_config(config) if config is not None else {}
        check_choices(model, recipe, changes)
        facts = read_graph(graph, events)
        chosen = choose_recipe(facts, model, recipe, changes, settings, pick_device(), events)
    if as_json:
        print_json(recipe_to_table(chosen))
    else:
        typer.echo(dump_recipe(chosen), nl=False)


def _splits_of(folder: Path) -> list[Split]:
    """The splits of which a folder holds queries, `train` among them; none are read yet."""
    from conekg.sampling.source import splits_of

    held = splits_of(folder)
    if "train" not in held:
        raise DataError(
            "holds no training queries",
            path=str(folder),
            hint=f"`conekg sample GRAPH --split train --out {in_shell(folder / 'train.arrow')}` "
            "writes some",
        )
    return held


def _no_test_queries(graph: str, queries: Path | None) -> ConfigError:
    """The error for --tables if the folder of queries has no test queries, or none were found."""
    if queries is not None:
        return ConfigError(
            f"{queries} holds no test queries, which --tables ranks; add some, or leave "
            "--tables out",
            key="queries",
        )
    return ConfigError(
        f"{graph} yields no test queries, which --tables ranks: they need held-out test facts; "
        "`conekg graph build --test-share` holds more out, or leave --tables out",
        key="tables",
    )


def _say_next_steps(run: Run) -> None:
    """Say where a finished run is, and which commands its queries allow."""
    place, next_steps = in_shell(run.folder), []
    if run.num_queries("test"):
        next_steps.append(f"`conekg evaluate {place}` ranks held-out answers")
    if run.num_queries("valid"):
        next_steps.append(f"`conekg calibrate {place}` gives answers probabilities")
    say(f"the run is in {run.folder}" + (f"; {', '.join(next_steps)}" if next_steps else ""))


def _query_sets(
    folder: Path | None, graph: KnowledgeGraph, training: TrainingRecipe, events: FitEvents
) -> dict[Split, QuerySet]:
    """The query sets of a folder; without a folder, queries sampled as the recipe says."""
    from conekg.answering.stages import sample_queries
    from conekg.sampling.source import open_all_queries

    times = training.query_times
    if folder is None:
        shapes = training.trained_shapes()
        return sample_queries(graph, None, training.seed, events, times, shapes)
    sets = open_all_queries(folder, graph)
    if times is not None:
        events.chose(
            f"the training queries in {folder} as they are",
            "training.query_times only changes how many queries are sampled",
        )
    if "valid" not in sets:
        events.chose(
            "the model of the last step, without validation",
            f"{folder} holds no validation queries",
        )
    return sets
