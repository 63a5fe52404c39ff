"""The stages of a fit, each to be had alone, from reading a graph to calibrating its model.

What was not asked for is chosen by the size of the graph and the machine, and every
choice is told with its reason. `fit` goes through them all in one call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from conekg.training.recipe_file import change_recipe
from conekg.training.recipes import data_set_of, find_recipe, recipe_of
from conekg.training.run import Run, Which, create_run

logger = logging.getLogger(__name__)

SMALL_GRAPH_EDGES = 30_000
"""Up to so many training edges the `small` recipe is enough, GPU or not."""
MEDIUM_GRAPH_EDGES = 100_000
"""Up to so many the `medium` one is, GPU or not; beyond, a GPU is worth the `fast` one."""

REPORTED_QUERIES = 1_000
"""So many test queries of each shape say how good a model is, where a CPU has to rank them."""

LOG_INTERVAL_S = 10.0
"""Seconds between two lines of the log on how far a stage is."""

EVALUATION_FILE = "evaluation.json"
DEFAULT_MODEL = "cone"


class FitEvents:
    """What happens during a fit; override what is of interest, the rest is logged.

    Notes on the facts are warnings. Choices and progress have the level INFO, progress of a stage
    at most every `LOG_INTERVAL_S` seconds.
    """

    _logged: tuple[str, float] = ("", 0.0)
    """The stage whose progress was logged last, and when."""

    def fetching(self, what: str, done: float, total: float | None) -> None:
        """So many bytes of a benchmark are fetched, of so many (None: unknown)."""
        of = "" if total is None else f" of {total:,.0f}"
        self._log_progress(f"fetching {what}", f"{done:,.0f}{of} bytes")

    def noted(self, what: str) -> None:
        """Facts were merged, left out or not held out while they were read."""
        logger.warning("%s", what)

    def chose(self, what: str, why: str) -> None:
        """A choice was made that the caller had left open."""
        logger.info("chose %s: %s", what, why)

    def sampling(self, split: Split, shape: Shape, found: int, wanted: int | None) -> None:
        """So many queries of a shape are found, of so many wanted (None: all there are)."""
        self._log_progress(f"sampling {split} queries", f"{found:,} of {shape.name}")

    def training(self, progress: Progress) -> None:
        """Training has come this far."""
        done = f"{progress.step:,} of {progress.steps:,} steps"
        is_last = progress.step == progress.steps
        parts = (done, progress.note) if progress.note else (done,)
        self._log_progress("training", ", ".join(parts), at_once=is_last)

    def evaluating(self, done: int, total: int) -> None:
        """So many test queries are ranked."""
        self._log_progress("evaluating", f"{done:,} of {total:,} queries")

    def calibrating(self, done: int, total: int) -> None:
        """So many validation queries are compared with what the model says of them."""
        self._log_progress("calibrating", f"{done:,} of {total:,} queries")

    def _log_progress(self, stage: str, how_far: str, *, at_once: bool = False) -> None:
        """Log how far a stage is: when it begins, and then now and then."""
        last, when = self._logged
        if at_once or stage != last or time.monotonic() - when >= LOG_INTERVAL_S:
            self._logged = stage, time.monotonic()
            logger.info("%s: %s", stage, how_far)


def read_graph(source: str | Path, events: FitEvents) -> KnowledgeGraph:
    """The graph that `source` names or holds; what happened to its facts is told."""
    read = read_source(source, progress=events.fetching)
    for note in read.notes:
        events.noted(note)
    return read.graph


def choose_recipe(
    graph: KnowledgeGraph,
    model: str | None,
    recipe: str | None,
    config: Mapping[str, Any],
    settings: Sequence[str],
    device: torch.device,
    events: FitEvents,
) -> Recipe:
    """The recipe that was asked for, or the one that fits graph and machine, with all changes.

    ConE's by default. A configuration that names its recipe, as that of a run does, is all of it.
    """
    if "recipe" not in config:
        base = _recipe_to_change(graph, model or DEFAULT_MODEL, recipe, device, events)
        return change_recipe(base, config, settings)
    if recipe not in (None, config["recipe"]):
        raise ConfigError(
            f"the recipe {recipe!r} was chosen, but the configuration is a whole recipe "
            f"{config['recipe']!r}; leave one of them out, or `recipe` out of the configuration",
            key="recipe",
        )
    options = config.get("model")
    named = options.get("name") if isinstance(options, Mapping) else None
    if model is None:  # a name of no model is refused with the rest of the configuration
        model = named if isinstance(named, str) and named in MODELS else DEFAULT_MODEL
    return change_recipe(find_recipe("small", model), config, settings)


def _recipe_to_change(
    graph: KnowledgeGraph,
    model: str,
    recipe: str | None,
    device: torch.device,
    events: FitEvents,
) -> Recipe:
    """The recipe of that name; without one, that of a size which graph and machine allow."""
    if recipe is not None:
        return _told_recipe(graph, model, recipe, events)
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
    return _told_recipe(graph, model, name, events)


def _told_recipe(graph: KnowledgeGraph, model: str, name: str, events: FitEvents) -> Recipe:
    """The recipe of that name for a graph; it is told where the paper has none for it."""
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

    `times` is the recipe's `query_times`, `trained` the shapes it trains on, of which queries are
    sampled beside those of the protocol. A protocol that is given is taken as it is.
    """
    if protocol is None:
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
    elif times is not None:
        events.chose(
            f"the numbers of training queries of the protocol {protocol.name!r}",
            "it was given; training.query_times is for runs that choose their own",
        )
    queries: dict[Split, QuerySet] = {}
    for split in SPLITS:

        def tell(shape: Shape, found: int, wanted: int | None, split: Split = split) -> None:
            events.sampling(split, shape, found, wanted)

        sampled = sample_query_set(graph, split, protocol, seed, progress=tell)
        short = [
            f"{report.shape.name} ({report.found:,} of {report.wanted:,})"
            for report in sampled.reports
            if report.shortfall
        ]
        if not len(graph.edges(split)):
            events.chose(f"no {split} queries", f"the graph has no {split} facts")
        elif short:
            events.chose(
                f"fewer {split} queries than wanted of {', '.join(short)}",
                "the graph has no more",
            )
        queries[split] = sampled.query_set
    return queries


def start_run(
    folder: Path,
    graph: KnowledgeGraph,
    recipe: Recipe,
    queries: Mapping[Split, QuerySet],
    events: FitEvents,
) -> Run:
    """A new run, its recipe restricted to the shapes that have queries to learn from.

    Shapes that the model has no operators for are refused, before there is a run, and so are
    those that no model is trained on.
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
    """Train a run to its end, validating on its own queries where it has some."""
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
    """The run's model on its test queries, and the frequency baseline; kept in the folder.

    The file also says on which structures the model is below the baseline. On a CPU at most
    `REPORTED_QUERIES` of a shape are ranked.
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
    """The structures on which a model's MRR is below the baseline's, to the digits of the table."""
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
    """The calibration of a run's checkpoint by its validation queries; kept in the folder."""
    if not run.has_queries("valid"):
        raise ConfigError(
            f"{run.folder} has no validation queries to calibrate on; train it with a folder of "
            "queries that has some"
        )
    events = events or FitEvents()
    model, weights = _named_model(run, which, device or pick_device())
    check_place(run.folder / FILE_NAMES[which])
    fitted = fit_calibration(model, run.graph, run.queries("valid"), progress=events.calibrating)
    calibration = replace(fitted, weights=weights)
    save_calibration(calibration, run.folder / FILE_NAMES[which])
    return calibration


def _named_model(run: Run, which: Which, device: torch.device) -> tuple[QueryModel, str]:
    """A checkpoint's model, and the name of its weights.

    A training that goes on may replace the checkpoint meanwhile: then the newer is loaded.
    """
    while True:
        name = run.weights_name(which)
        model = run.load_model(which, device)
        if run.weights_name(which) == name:
            return model, name
