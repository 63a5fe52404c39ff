"""Compares many settings by short training runs in one process, on validation queries.

The `fast` recipe was found with this script. A trial is a recipe (`--recipe`) with some settings
changed, as by `conekg train --set`. Every trial is trained with the same seed and ranked on the
same validation queries, which are evenly spaced in the set. Test queries are never read. Each trial
prints a line and appends a line of JSON to `--out`.

    python benchmarks/search_recipe.py NELL --queries queries \
        --trials benchmarks/recipe_trials/second.toml --out results/recipe-search/second.jsonl
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from conekg.errors import ConeKGError, ConfigError
from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.report import Report
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import open_graph
from conekg.model.catalog import build_model
from conekg.model.config import check_keys
from conekg.sampling.query_set import QuerySet, load_query_set
from conekg.training.batches import load_training_data
from conekg.training.loop import pick_device
from conekg.training.loss import UNINFORMED_LOSS
from conekg.training.loss_watch import LossWatch
from conekg.training.recipe import Recipe
from conekg.training.recipe_change import change_recipe, read_config
from conekg.training.recipes import recipe_of
from conekg.training.schedule import forgets_moments_at, learning_rate_at
from conekg.training.updater import make_updater


@dataclass(frozen=True)
class Trial:
    """Settings to try, with a name."""

    name: str
    settings: tuple[str, ...]
    """`key=value` each, those that all trials share first."""
    training_queries: str = "train"
    """The file of training queries in the folder of queries, without its suffix."""


@dataclass(frozen=True)
class Trained:
    """The measurements of a trial."""

    report: Report
    ms_per_step: float
    seconds: float
    """Time of building the model, capturing the step and training."""
    losses: tuple[dict[str, float], ...]
    """The mean loss of each pool in each eighth of the run, without its first 20 steps."""


def read_trials(path: Path) -> list[Trial]:
    """The trials of a TOML file, which has `shared = [...]` and then `[[trial]]` tables.

    Raises `ConfigError` for any other content.
    """
    table = read_config(path)
    check_keys(table, ("shared", "trial"), "", f"a file of trials such as {path}")
    rows = table.get("trial", [])
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{path} has no [[trial]] to run", key="trial")
    shared = table.get("shared", [])
    for row in rows:
        if not isinstance(row, dict):
            raise ConfigError(f"{path}: {row!r} is no [[trial]], a table of keys", key="trial")
        check_keys(row, ("name", "set", "queries"), "trial", "a trial")
        if "name" not in row:
            raise ConfigError(f"{path}: a trial has no name", key="trial.name")
        for settings in (shared, row.get("set", [])):
            if not isinstance(settings, list) or not all(isinstance(s, str) for s in settings):
                raise ConfigError(
                    f'{path}: {settings!r} is no list of settings such as ["training.steps=9"]',
                    key="trial.set",
                )
    return [
        Trial(row["name"], (*shared, *row.get("set", [])), row.get("queries", "train"))
        for row in rows
    ]


def part(text: str) -> slice:
    """The slice of the trials that `i/n` stands for: the i-th and every n-th after it."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not i/n with i from 1 to n, such as 2/3")
    return slice(int(number) - 1, None, int(count))


def run_trial(
    recipe: Recipe,
    graph: KnowledgeGraph,
    queries: QuerySet,
    valid: QuerySet,
    max_queries: int,
    device: torch.device,
) -> Trained:
    """Train to the recipe's end and rank the validation queries."""
    started, training = time.monotonic(), recipe.training
    if device.type == "cuda":
        torch.compiler.reset()  # the compiler gives up on a function compiled in eight ways
        gc.collect()  # frees the updater of the trial before, with its captured graph
    data = load_training_data(graph, queries, training, device)
    model = build_model(
        recipe.model,
        graph.num_entities,
        graph.num_relations,
        recipe.config,
        training.seed,
        facts=graph.edges("train"),
    ).to(device)
    updater = make_updater(model, data, training, device)
    watch = LossWatch(None if model.has_own_loss else UNINFORMED_LOSS)
    losses, settled = list[dict[str, float]](), started
    settling = min(20, training.steps // 2)
    for step in range(training.steps):
        if forgets_moments_at(training, step):
            updater.reset_moments()
        rate = learning_rate_at(training, step)
        updater.step(rate)
        if step + 1 == settling:
            updater.take_loss()  # waits for the device, so that the capture is not timed
            settled = time.monotonic()
        elif (step + 1) % max(1, training.steps // 8) == 0:
            losses.append(updater.take_loss())
            watch.check(losses[-1], step + 1, rate)
    updater.take_loss()
    finished = time.monotonic()
    report = evaluate(model, valid, num_entities=graph.num_entities, max_queries=max_queries)
    per_step = (finished - settled) / max(1, training.steps - settling)
    return Trained(report, 1e3 * per_step, finished - started, tuple(losses))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph")
    parser.add_argument("--queries", type=Path, required=True, help="folder of Arrow files")
    parser.add_argument("--trials", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="cone")
    parser.add_argument("--recipe", default="paper", help="the recipe that the trials change")
    parser.add_argument(
        "--max-queries", type=int, default=300, help="validation queries per structure"
    )
    parser.add_argument(
        "--part",
        type=part,
        default="1/1",
        help="i/n: trial i and every n-th after it, to share the trials among n processes",
    )
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="start no more trials after this time"
    )
    arguments = parser.parse_args()
    if arguments.max_queries < 1:
        parser.error(f"--max-queries is {arguments.max_queries}; it must be 1 or more")
    if not arguments.out.absolute().parent.is_dir():  # say so now, not after the first trial
        parser.error(f"--out {arguments.out}: there is no folder {arguments.out.parent}")
    try:
        search(arguments)
    except ConeKGError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def search(arguments: argparse.Namespace) -> None:
    """Run the trials; mistakes in the files or the settings are reported before the first one."""
    started, device = time.monotonic(), pick_device()
    trials = read_trials(arguments.trials)[arguments.part]
    graph = open_graph(arguments.graph)
    valid = load_query_set(arguments.queries / "valid.arrow", graph)
    base, _ = recipe_of(graph, arguments.recipe, arguments.model)
    recipes = [change_recipe(base, {}, trial.settings) for trial in trials]
    for name in {trial.training_queries for trial in trials}:
        if not (arguments.queries / f"{name}.arrow").is_file():
            raise ConfigError(f"{arguments.queries} has no {name}.arrow to train on", key="queries")
    loaded = dict[str, QuerySet]()
    for trial, recipe in zip(trials, recipes, strict=True):
        if time.monotonic() - started > arguments.seconds:
            print(f"{trial.name}: no time left")
            continue
        name = trial.training_queries
        if name not in loaded:
            loaded = {name: load_query_set(arguments.queries / f"{name}.arrow", graph)}
        row: dict[str, object] = {
            "trial": trial.name,
            "settings": trial.settings,
            "training_queries": trial.training_queries,
            "steps": recipe.training.steps,
        }
        try:
            result = run_trial(recipe, graph, loaded[name], valid, arguments.max_queries, device)
        except ConeKGError as error:
            row["error"] = str(error)
        else:
            report = result.report
            row |= {
                **{name: round(100 * m.mrr, 2) for name, m in report.averages.items()},
                "mrr": {name: round(100 * m.mrr, 1) for name, m in report.measured.items()},
                "ms_per_step": round(result.ms_per_step, 3),
                "seconds": round(result.seconds, 1),
                "losses": [{k: float(f"{v:.3g}") for k, v in row.items()} for row in result.losses],
            }
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        left_out = ("losses", "settings")
        print("  ".join(f"{k}={v}" for k, v in row.items() if k not in left_out), flush=True)


if __name__ == "__main__":
    sys.exit(main())
