"""The stages of a fit as separate functions, from reading a graph to calibrating its model.

Settings that the caller leaves open are chosen by the size of the graph and the machine, and each
choice is reported to `FitEvents` with its reason. `fit` runs all stages in one call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from conekg.answering.calibrate import fit_calibration
from conekg.answering.calibration import FILE_NAMES, Calibration, save_calibration
from conekg.errors import ConfigError
from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.frequency import FrequencyScorer
from conekg.evaluation.report import Report
from conekg.evaluation.validate import make_validator
from conekg.graph.benchmarks import release_of
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.place import check_place
from conekg.graph.source import read_source
from conekg.model.catalog import MODELS, find_model
from conekg.model.interface import QueryModel
from conekg.model.support import check_supported
from conekg.query.parse import parse_shape
from conekg.query.shape import Shape
from conekg.sampling.protocol import PRESETS, SamplingProtocol, preset_of
from conekg.sampling.query_set import QuerySet
from conekg.sampling.sample import sample_query_set
from conekg.training.batches import check_trainable, usable_shapes
from conekg.training.loop import Outcome, Progress, pick_device, train
from conekg.training.recipe import Recipe
from conekg.training.recipe_change import change_recipe
from conekg.training.recipes import data_set_of, find_recipe, recipe_of
from conekg.training.run import Run, Which, create_run

logger = logging.getLogger(__name__)

SMALL_GRAPH_EDGES = 30_000
"""The largest number of training edges for which `small` is the default recipe."""
MEDIUM_GRAPH_EDGES = 100_000
"""The largest number for which `medium` is; beyond it, `fast` is if there is a GPU."""

REPORTED_QUERIES = 1_000
"""The most test queries of each shape that a fit ranks on a CPU."""

LOG_INTERVAL_S = 10.0
"""Seconds between two lines of the log on how far a stage is."""

EVALUATION_FILE = "evaluation.json"
DEFAULT_MODEL = "cone"


class FitEvents:
    """Callbacks of a fit, to be overridden. By default they log.

    Notes on the facts are warnings. Choices and progress have the level INFO. The progress of a
    stage is logged at its start and then every `LOG_INTERVAL_S` seconds, training also at its end.
    """

    _logged: tuple[str, float] = ("", 0.0)
    """The stage whose progress was logged last, and when."""

    def fetching(self, what: str, done: float, total: float | None) -> None:
        """Called while a benchmark is downloaded: bytes fetched, and in all (None: unknown)."""
        of = "" if total is None else f" of {total:,.0f}"
        self._log_progress(f"fetching {what}", f"{done:,.0f}{of} bytes")

    def noted(self, what: str) -> None:
        """Called if facts were merged, left out or not held out while they were read."""
        logger.warning("%s", what)

    def chose(self, what: str, why: str) -> None:
        """Called for each choice that the caller had left open."""
        logger.info("chose %s: %s", what, why)

    def sampling(self, split: Split, shape: Shape, found: int, wanted: int | None) -> None:
        """Called while queries of a shape are sampled; `wanted` is None for all there are."""
        self._log_progress(f"sampling {split} queries", f"{found:,} of {shape.name}")

    def training(self, progress: Progress) -> None:
        """Called regularly during training."""
        done = f"{progress.step:,} of {progress.steps:,} steps"
        is_last = progress.step == progress.steps
        parts = (done, progress.note) if progress.note else (done,)
        self._log_progress("training", ", ".join(parts), at_once=is_last)

    def evaluating(self, done: int, total: int) -> None:
        """Called with the number of test queries ranked."""
        self._log_progress("evaluating", f"{done:,} of {total:,} queries")

    def calibrating(self, done: int, total: int) -> None:
        """Called with the number of validation queries used for the calibration."""
        self._log_progress("calibrating", f"{done:,} of {total:,} queries")

    def _log_progress(self, stage: str, how_far: str, *, at_once: bool = False) -> None:
        """Log a stage's progress at its start, every `LOG_INTERVAL_S` seconds, and if `at_once`."""
        last, when = self._logged
        if at_once or stage != last or time.monotonic() - when >= LOG_INTERVAL_S:
            self._logged = stage, time.monotonic()
            logger.info("%s: %s", stage, how_far)


def read_graph(source: str | Path, events: FitEvents) -> KnowledgeGraph:
    """The graph that `source` names or holds; notes on its facts go to `events`."""
    read = read_source(source, progress=events.fetching)
    for note in read.notes:
        events.noted(note)
    return read.graph


def check_choices(model: str | None, recipe: str | None, config: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for choices that no graph makes right; to be called before one is read.

    These are an unknown model, an unknown recipe, and another recipe than a `config` that is a
    whole one.
    """
    name = "small" if recipe is None or "recipe" in config else recipe
    find_recipe(name, DEFAULT_MODEL if model is None else model)
    if "recipe" in config and recipe not in (None, config["recipe"]):
        raise ConfigError(
            f"the recipe {recipe!r} was chosen, but the configuration is a whole recipe "
            f"{config['recipe']!r}; leave one of them out, or `recipe` out of the configuration",
            key="recipe",
        )


def choose_recipe(
    graph: KnowledgeGraph,
    model: str | None,
    recipe: str | None,
    config: Mapping[str, Any],
    settings: Sequence[str],
    device: torch.device,
    events: FitEvents,
) -> Recipe:
    """The recipe asked for, or by default one that suits graph and machine, with all changes.

    The default model is ConE. A `config` that names its recipe, as the one in a run folder does, is
    taken as a whole recipe rather than as changes to one.
    """
    check_choices(model, recipe, config)
    if "recipe" not in config:
        name = DEFAULT_MODEL if model is None else model
        base = _recipe_to_change(graph, name, recipe, device, events)
        return change_recipe(base, config, settings)
    options = config.get("model")
    named = options.get("name") if isinstance(options, Mapping) else None
    if model is None:  # `change_recipe` below refuses an unknown name
        model = named if isinstance(named, str) and named in MODELS else DEFAULT_MODEL
    return change_recipe(find_recipe("small", model), config, settings)


def _recipe_to_change(
    graph: KnowledgeGraph,
    model: str,
    recipe: str | None,
    device: torch.device,
    events: FitEvents,
) -> Recipe:
    """The recipe of that name, or by default one that suits the graph's size and the device."""
    if recipe is not None:
        return _named_recipe(graph, model, recipe, events)
    num_edges = len(graph.edges("train"))
    edges = f"{num_edges:,} training edges"
    if num_edges <= SMALL_GRAPH_EDGES:
        name, why = "small", f"the graph has only {edges}"
    elif num_edges <= MEDIUM_GRAPH_EDGES:
        name, why = "medium", f"the graph has {edges}"
    elif device.type == "cpu":
        name, why = "medium", f"there is no GPU and {edges}"
    else:
        name, why = "fast", f"there is a GPU and {edges}"
    events.chose(f"the recipe {name!r}", why)
    return _named_recipe(graph, model, name, events)


def _named_recipe(graph: KnowledgeGraph, model: str, name: str, events: FitEvents) -> Recipe:
    """The recipe of that name; reports if it has no hyper-parameters for this very graph."""
    recipe, not_by_name = recipe_of(graph, name, model)
    if name == "paper" and data_set_of(release_of(graph) or "") is None:
        events.chose(
            "the paper's hyper-parameters for FB15k-237",
            not_by_name or f"the paper has none for a graph called {graph.name!r}",
        )
    elif not_by_name is not None:
        events.chose(f"{name!r} as for any other graph", not_by_name)
    return recipe


def sample_queries(
    graph: KnowledgeGraph,
    protocol: SamplingProtocol | None,
    seed: int,
    events: FitEvents,
    times: int | None = None,
    trained: Sequence[str] = (),
) -> dict[Split, QuerySet]:
    """Training, validation and test queries of the graph.

    `times` is the recipe's `query_times`. `trained` are the shapes the recipe trains on; those that
    the protocol lacks are added to it. A `protocol` that is given is used unchanged.
    """
    if protocol is None:
        protocol = _choose_protocol(graph, events, times, trained)
    elif times is not None:
        events.chose(
            f"the numbers of training queries of the protocol {protocol.name!r}",
            "it was given; training.query_times is for runs that choose their own",
        )
    return {split: _sample_split(graph, split, protocol, seed, events) for split in SPLITS}


def _choose_protocol(
    graph: KnowledgeGraph, events: FitEvents, times: int | None, trained: Sequence[str]
) -> SamplingProtocol:
    """The usual protocol of the graph, with what the recipe wants besides; reports the choices."""
    preset, not_by_name = preset_of(graph)
    protocol = preset.for_graph(graph)
    why = "these are the published counts"
    if preset is PRESETS["small"]:
        why = "in proportion to the graph's links"
    if not_by_name is not None:
        events.chose(f"the preset {preset.name!r}", not_by_name)
    if times is not None:
        protocol = protocol.with_more_training(times)
        why = f"the recipe wants up to {times} times the training queries"
    usual = [shape.name for shape in protocol.trained]
    if more := [name for name in trained if name not in usual]:
        own = tuple(parse_shape(name) for name in more)
        protocol = replace(protocol, trained=(*protocol.trained, *own))
        events.chose(f"to sample training queries of {', '.join(more)} too", "a pool has them")
    events.chose(
        f"{protocol.train_count:,} training queries per shape "
        f"({protocol.train_negation_count:,} with negation) and "
        f"{protocol.evaluation_count:,} for validation and test",
        why,
    )
    return protocol


def _sample_split(
    graph: KnowledgeGraph, split: Split, protocol: SamplingProtocol, seed: int, events: FitEvents
) -> QuerySet:
    """The queries of one split; reports the progress, and if there are fewer than wanted."""
    sampled = sample_query_set(
        graph, split, protocol, seed, progress=partial(events.sampling, split)
    )
    short = [
        f"{of_shape.shape.name} ({of_shape.found:,} of {of_shape.wanted:,})"
        for of_shape in sampled.reports
        if of_shape.shortfall
    ]
    if not len(graph.edges(split)):
        events.chose(f"no {split} queries", f"the graph has no {split} facts")
    elif short:
        events.chose(
            f"fewer {split} queries than wanted of {', '.join(short)}", "the graph has no more"
        )
    return sampled.query_set


def start_run(
    folder: Path,
    graph: KnowledgeGraph,
    recipe: Recipe,
    queries: Mapping[Split, QuerySet],
    events: FitEvents,
) -> Run:
    """A new run, its recipe restricted to the shapes that have usable training queries.

    Before the folder is made, shapes that the model has no operators for are refused, and so are
    shapes that cannot be trained on, such as unions.
    """
    present = usable_shapes(queries["train"], graph.num_entities)
    missing = [name for name in recipe.training.trained_shapes() if name not in present]
    held = {block.shape.name for block in queries["train"] if len(block)}
    for is_held, why in (
        (True, "no training query of that shape has both an answer and an entity that is none"),
        (False, "there are no training queries of that shape"),
    ):
        names = [name for name in missing if (name in held) is is_held]
        if names:
            events.chose(f"to train without {', '.join(names)}", why)
    if missing:
        recipe = replace(recipe, training=recipe.training.restricted_to(present))
    trained = recipe.training.trained_shapes()
    shapes = [block.shape for block in queries["train"] if block.shape.name in trained]
    check_supported(find_model(recipe.model).model, shapes)
    for shape in shapes:
        check_trainable(shape)
    return create_run(folder, graph, recipe, queries)


def train_run(
    run: Run,
    *,
    device: torch.device | None = None,
    max_minutes: float | None = None,
    events: FitEvents | None = None,
) -> Outcome:
    """Train a run to its end, validating on its own validation queries if it has some."""
    events = events or FitEvents()
    validate = None
    if run.has_queries("valid"):
        validate = make_validator(
            run.queries("valid"), run.graph.num_entities, run.recipe.training.validate_queries
        )
    return train(
        run, device=device, validate=validate, max_minutes=max_minutes, report=events.training
    )


def evaluate_run(
    run: Run, *, device: torch.device | None = None, events: FitEvents | None = None
) -> tuple[Report, Report]:
    """The reports of the run's model and of the frequency baseline on the run's test queries.

    Both are written to the run's folder, with the structures on which the model is below the
    baseline. On a CPU at most `REPORTED_QUERIES` of a shape are ranked.
    """
    events, device = events or FitEvents(), device or pick_device()
    queries, num_entities = run.queries("test"), run.graph.num_entities
    most = REPORTED_QUERIES if device.type == "cpu" else None
    if most is not None and any(len(block) > most for block in queries):
        events.chose(
            f"to rank at most {most:,} test queries per shape",
            "there is no GPU; `conekg evaluate` ranks all",
        )
    model = run.load_model("best", device)
    report = evaluate(
        model,
        queries,
        num_entities=num_entities,
        max_queries=most,
        progress=events.evaluating,
    )
    frequency = FrequencyScorer(run.graph.adjacency("train"))
    baseline = evaluate(frequency, queries, num_entities=num_entities, max_queries=most)
    content = {
        "model": report.to_json(),
        "baseline": baseline.to_json(),
        "below_baseline": below_baseline(report, baseline),
    }
    run.write_json(EVALUATION_FILE, content)
    return report, baseline


def below_baseline(report: Report, baseline: Report) -> list[str]:
    """The structures on which a model's MRR, rounded as in the tables, is below the baseline's."""
    model, frequency = report.row(), baseline.row()
    return [
        name
        for name in report.measured
        if name in frequency and round(model[name], 1) < round(frequency[name], 1)
    ]


def calibrate_run(
    run: Run,
    *,
    which: Which = "best",
    device: torch.device | None = None,
    events: FitEvents | None = None,
) -> Calibration:
    """The calibration of a run's checkpoint on its validation queries, written to its folder."""
    if not run.has_queries("valid"):
        raise ConfigError(
            f"{run.folder} has no validation queries to calibrate on; train it with a folder of "
            "queries that has some"
        )
    events = events or FitEvents()
    model, weights = _load_named_weights(run, which, device or pick_device())
    check_place(run.folder / FILE_NAMES[which])
    fitted = fit_calibration(model, run.graph, run.queries("valid"), progress=events.calibrating)
    calibration = replace(fitted, weights=weights)
    save_calibration(calibration, run.folder / FILE_NAMES[which])
    return calibration


def _load_named_weights(run: Run, which: Which, device: torch.device) -> tuple[QueryModel, str]:
    """A checkpoint's model, and the name of its weights.

    If a training process replaces the checkpoint while it is loaded, the newer one is loaded.
    """
    while True:
        name = run.weights_name(which)
        model = run.load_model(which, device)
        if run.weights_name(which) == name:
            return model, name
