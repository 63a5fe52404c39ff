"""Appendix G (Table 20): seconds per 100 training steps of every model, at equal size.

The models' entity tables have equally many parameters; they are nearly all parameters on a large
graph. Times include drawing the batches. They are of this machine, the paper's of an RTX 3090.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from conekg.errors import ConfigError
from conekg.experiments.beside_paper import paper_rows
from conekg.experiments.experiment import Experiment, Tables, describe
from conekg.experiments.options import Options
from conekg.experiments.published import ANY, MODEL_TITLES, model_title, published
from conekg.experiments.table import Row, Table
from conekg.lines import counted
from conekg.model.config import ModelConfig
from conekg.model.interface import QueryModel
from conekg.training.batches import load_training_data, usable_shapes
from conekg.training.recipe import Recipe
from conekg.training.recipes import recipe_of
from conekg.training.run import Run
from conekg.training.timing import REPEATS, WARM_UP_STEPS, seconds_per_step
from conekg.training.updater import Updater, make_updater

_UPDATERS = {
    "EagerUpdater": "PyTorch, operation by operation (EagerUpdater)",
    "FusedUpdater": "fused kernels in a captured graph (FusedUpdater)",
}
"""The description of each updater class, by name since `FusedUpdater` is imported on a GPU only."""


def speed(runs: Sequence[Run], options: Options) -> Tables:
    """Seconds per 100 steps of each model on the run's graph and queries (Table 20)."""
    if len(runs) > 1:
        raise ConfigError("speed takes one RUN: it times every model on that run's queries")
    run = runs[0]
    paper = published("tab:running_time", ANY)
    width = run.new_model().entity.shape[1]
    recipes = equal_recipes(run, width)
    rows, total = list[Row](), len(recipes)
    updaters = dict[str, list[str]]()
    for done, (name, recipe) in enumerate(recipes.items()):
        options.progress(done, total)
        model = run.new_model(recipe)
        updater = new_updater(run, recipe, model, options)
        updaters.setdefault(_UPDATERS[type(updater).__name__], []).append(model_title(name))
        seconds = seconds_per_step(updater, recipe.training.learning_rate, options.steps)
        values: dict[str, float | int] = {
            "seconds": 100.0 * seconds,
            "entity parameters": model.entity.numel(),
            "all parameters": sum(p.numel() for p in model.parameters()),
        }
        rows.append(Row(f"{model_title(name)}, d = {recipe.config.dim}", values))
    options.progress(total, total)
    training = run.recipe.training
    odd = f", so that its is {width - 1} wide" if width % 2 else ""
    table = Table(
        title=f"Time of 100 training steps, {run.graph.name}, {_machine(options.device)}",
        columns=("seconds", "entity parameters", "all parameters"),
        rows=(*rows, *paper_rows(paper)),
        paper=paper.label,
        unit="seconds per 100 steps",
        notes=(
            f"All entity tables are {width} wide (BetaE has two numbers a dimension{odd}). A step "
            f"is one round of the model's update cycle, with {_batches(run, recipes['cone'])} and "
            f"{training.negatives} negatives, products in {training.precision}; EmQL has a loss of "
            "its own without negatives.",
            f"The median of {REPEATS} times {counted(options.steps, 'step')}, after "
            f"{WARM_UP_STEPS} untimed.",
            _updaters_note(updaters, options.device),
            *_lacking_note(run, recipes["cone"]),
            f"The paper's column is {paper.unit}, of models with equal numbers of embedding "
            "parameters; of which graph, batch size and dimension it does not say.",
            describe(run),
        ),
        digits=2,
        drawn=("seconds",),
    )
    return (table,)


def equal_recipes(run: Run, width: int) -> dict[str, Recipe]:
    """The recipe of each model, with entity tables `width` wide and batches of the same size.

    Batches are as large as the run's, or larger if a model's pool has more shapes than that.
    """
    present = usable_shapes(run.queries("train"), run.graph.num_entities)
    recipes = {name: recipe_of(run.graph, "paper", name)[0] for name in MODEL_TITLES}
    for recipe in recipes.values():
        timed = recipe.training.trained_shapes()
        if present.isdisjoint(timed):
            raise ConfigError(
                f"speed times batches of {', '.join(timed)}; {run.folder} has training queries of "
                f"{', '.join(sorted(present))} only; give a run that has some of these"
            )
    pooled = {name: recipe.training.restricted_to(present) for name, recipe in recipes.items()}
    ours = run.recipe.training
    pool_sizes = [len(pool.shares) for training in pooled.values() for pool in training.pools]
    return {
        name: replace(
            recipe,
            config=_config_of_width(
                recipe.config, name, width, getattr(run.recipe.config, "hidden", None)
            ),
            training=replace(
                pooled[name],
                batch_size=max(ours.batch_size, *pool_sizes),
                negatives=ours.negatives,
                precision=ours.precision,
                compile_operators=ours.compile_operators,
                seed=ours.seed,
            ),
        )
        for name, recipe in recipes.items()
    }


def new_updater(run: Run, recipe: Recipe, model: QueryModel, options: Options) -> Updater:
    """The updater that training the model on the run's queries would use on the device."""
    data = load_training_data(run.graph, run.queries("train"), recipe.training, options.device)
    return make_updater(model, data, recipe.training, options.device)


def _config_of_width(config: ModelConfig, name: str, width: int, hidden: int | None) -> ModelConfig:
    """The configuration for entity tables `width` wide, with the run's hidden width.

    Models without a hidden width keep their own settings. BetaE has two numbers per dimension.
    """
    dim = width // 2 if name == "beta" else width
    if dim < 1:
        raise ConfigError(
            f"an entity table {width} wide is too narrow for {name}, which has two numbers per "
            "dimension; give a run with wider embeddings",
            key="dim",
        )
    changes = {"dim": dim}
    if hidden is not None and hasattr(config, "hidden"):
        changes["hidden"] = hidden
    changed: ModelConfig = replace(config, **changes)
    return changed


def _updaters_note(updaters: dict[str, list[str]], device: torch.device) -> str:
    """A note on which models were timed with which updater."""
    parts = [f"{', '.join(models)} by {means}" for means, models in updaters.items()]
    place = "a GPU" if device.type == "cuda" else f"a {device.type.upper()}"
    # On a CPU `Cone.distance` and its gradient are compiled loops.
    compiled = "" if device.type == "cuda" else ", ConE's distance as a compiled loop"
    return f"What is timed is what `conekg train` does on {place}: {'; '.join(parts)}{compiled}."


def _batches(run: Run, timed: Recipe) -> str:
    """How many queries a batch has and, if that is not the run's number, why."""
    own, common = run.recipe.training.batch_size, timed.training.batch_size
    if common == own:
        return f"the run's batch size of {own} queries"
    return f"batches of {common} queries, as the run's of {own} cannot hold every shape of a pool,"


def _lacking_note(run: Run, timed: Recipe) -> tuple[str, ...]:
    """A note on the shapes that the timed batches lack; none if they have all."""
    whole, ours = recipe_of(run.graph, "paper", timed.model)[0].training, timed.training
    lacking = [name for name in whole.trained_shapes() if name not in ours.trained_shapes()]
    if not lacking:
        return ()
    updates = ""
    if len(ours.cycle) < len(whole.cycle):
        updates = f", and a step has {len(ours.cycle)} updates instead of {len(whole.cycle)}"
    names = ", ".join(lacking)
    return (f"The run has no training queries of {names}: batches are without them{updates}.",)


def _machine(device: torch.device) -> str:
    """The name of the GPU, or the number of the CPU's threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU, {counted(torch.get_num_threads(), 'thread')}"


SPEED = Experiment(
    name="speed",
    paper=("tab:running_time",),
    counted="models",
    summary="seconds per 100 training steps of every model, at equal numbers of parameters",
    run=speed,
    options=("steps",),
)
