"""What an experiment is: a name, a place in the paper, and a function from runs to tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conekg.errors import ConfigError, UnsupportedOperatorError
from conekg.experiments.options import Options
from conekg.experiments.published import model_title
from conekg.experiments.table import Table
from conekg.model.catalog import find_model
from conekg.model.interface import QueryModel
from conekg.training.recipe import Recipe
from conekg.training.recipe_file import recipe_to_table
from conekg.training.recipes import RECIPES, data_set_of, recipe_of
from conekg.training.run import Run, Which

Tables = tuple[Table, ...]

_NAMED = 4
"""The most changed settings that a sentence about a run names."""

_NOT_NAMED = {
    "model.dim",
    "training.steps",
    "training.seed",
    "training.log_every",
    "training.validate_every",
    "training.validate_queries",
    "training.checkpoint_every",
    "training.compile_operators",
}
"""Settings that the sentence gives anyway, and settings that do not affect what is learnt."""


@dataclass(frozen=True)
class Experiment:
    """A table, figure or claim of the paper that can be repeated on any run."""

    name: str
    paper: tuple[str, ...]
    """The labels of the tables, figures or numbers of the paper that it repeats."""
    summary: str
    """One line for a list of experiments."""
    run: Callable[[Sequence[Run], Options], Tables]
    options: tuple[str, ...] = ()
    """The fields of `Options` that it uses."""
    counted: str = "queries"
    """What its progress counts."""
    needs_runs: bool = True
    """Whether it takes trained runs; otherwise it takes none."""
    compares: bool = False
    """Whether it compares several runs: of a single run it says no more than the main tables."""

    def measure(self, runs: Sequence[Run], options: Options) -> Tables:
        """The tables of this experiment for the given runs; `max_queries` is noted below them."""
        if self.needs_runs and not runs:
            raise ConfigError(f"{self.name} needs at least one RUN: a folder from `conekg fit`")
        if not self.needs_runs and runs:
            raise ConfigError(f"{self.name} takes no RUN: it measures no trained model")
        tables = self.run(told_apart(runs), options)
        if options.max_queries is None:
            return tables
        note = f"Of each structure at most {options.max_queries:,} of its queries, evenly spaced."
        return tuple(replace(table, notes=(*table.notes, note)) for table in tables)


@dataclass(frozen=True)
class _CalledRun(Run):
    """A run whose name in tables is more than its folder's name, which another run also has."""

    called: str


def told_apart(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs, named by the shortest ends of their folders' paths that are all different.

    Raises `ConfigError` if the same folder is given twice.
    """
    paths = [run.folder.resolve().parts for run in runs]
    repeated = next(
        (run for run, path in zip(runs, paths, strict=True) if paths.count(path) > 1), None
    )
    if repeated is not None:
        raise ConfigError(f"the run {repeated.folder} is given twice; give each run once")
    depth = 1
    while len({path[-depth:] for path in paths}) < len(paths):
        depth += 1
    if depth == 1:
        return runs
    return [
        _CalledRun(run.folder, "/".join(path[-depth:]))
        for run, path in zip(runs, paths, strict=True)
    ]


def title_of(run: Run) -> str:
    """A run's name in tables: its model, and its folder's name in brackets."""
    called = run.called if isinstance(run, _CalledRun) else run.folder.resolve().name
    return f"{model_title(run.recipe.model)} ({called})"


def describe(run: Run, checkpoint: Which | None = None) -> str:
    """A sentence for the notes of a table on how a run was trained.

    With a `checkpoint` that is not of the recipe's last step, it names the checkpoint's step.
    """
    recipe = run.recipe
    length = f"{recipe.training.steps:,} steps"
    step = recipe.training.steps if checkpoint is None else run.weights_step(checkpoint)
    if step != recipe.training.steps:
        length = f"weights of step {step:,} of {recipe.training.steps:,}"
    changed = _changed_settings(run)
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    changes = f" (changed: {', '.join(changed[:_NAMED])}{more})" if changed else ""
    return (
        f"{title_of(run)}: {recipe.model} with d = {recipe.config.dim} on {run.graph.name}, recipe "
        f"'{recipe.name}'{changes}, {length}, seed {recipe.training.seed}."
    )


def _changed_settings(run: Run) -> list[str]:
    """The settings in which a run differs from the recipe of that name, less `_NOT_NAMED`."""
    recipe = run.recipe
    if recipe.name not in RECIPES:
        return []
    original, _ = recipe_of(run.graph, recipe.name, recipe.model)
    return [key for key in differences(recipe, original) if key not in _NOT_NAMED]


def differences(recipe: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """Where two recipes differ, as `{"training.steps": (60, 700)}`; – for a key that one lacks."""
    ours, theirs = (_flattened(recipe_to_table(each)) for each in (recipe, other))
    pairs = {key: (ours.get(key, "–"), theirs.get(key, "–")) for key in (*ours, *theirs)}
    return {key: (own, others) for key, (own, others) in pairs.items() if own != others}


def _flattened(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested document as one level: keys joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        flat |= _flattened(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return flat


def run_facts(run: Run, checkpoint: Which | None) -> dict[str, Any]:
    """A run's model, graph and recipe with every setting, as plain data.

    With a checkpoint also its name and the step of its weights.
    """
    recipe, table = run.recipe, recipe_to_table(run.recipe)
    facts: dict[str, Any] = {
        "label": title_of(run),
        "model": recipe.model,
        "dim": recipe.config.dim,
        "graph": dict(run.info["graph"]),
        "recipe": recipe.name,
        "steps": recipe.training.steps,
        "seed": recipe.training.seed,
        "settings": {key: table[key] for key in ("model", "training")},
    }
    if checkpoint is not None:
        facts |= {"checkpoint": checkpoint, "weights_of_step": run.weights_step(checkpoint)}
    return facts


def notes_of_each(notes: Mapping[str, Sequence[str]]) -> list[str]:
    """The notes of several runs by their titles; a note that all of them share is given once.

    >>> notes_of_each({"a": ["x", "y"], "b": ["x"]})
    ['x', 'a: y']
    """
    merged = [
        note if all(note in other for other in notes.values()) else f"{title}: {note}"
        for title, own in notes.items()
        for note in own
    ]
    return list(dict.fromkeys(merged))


def common_data_set(runs: Sequence[Run]) -> str | None:
    """The paper's data set that all runs are of; None if their graph is not in the paper.

    Raises `ConfigError` if the runs are of different graphs: they cannot share a table.
    """
    fingerprints = {run.graph.fingerprint for run in runs}
    if len(fingerprints) > 1:
        names = ", ".join(f"{run.folder} ({run.graph.name})" for run in runs)
        raise ConfigError(f"the runs are of different graphs: {names}; compare runs of one graph")
    return data_set_of(runs[0].graph.name)


def check_models(
    runs: Sequence[Run], suits: Callable[[type[QueryModel]], bool], lack: str, hint: str
) -> None:
    """Raise `UnsupportedOperatorError` if a run's model does not suit an experiment.

    Called before any run is measured. `lack` follows the model's name in the message and says
    what the model does not have.
    """
    for run in runs:
        model = find_model(run.recipe.model).model
        if not suits(model):
            raise UnsupportedOperatorError(f"{run.folder}: {model.name} {lack}", hint=hint)
