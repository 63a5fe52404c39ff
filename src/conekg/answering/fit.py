"""From a graph to a model that answers questions in one call: sample, train, evaluate, calibrate.

The result is one run folder. The stages themselves are in `stages`; this file puts them together
and checks that a fit which is continued is asked for the same settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from conekg.answering.calibration import Calibration
from conekg.answering.stages import (
    FitEvents,
    below_baseline,
    calibrate_run,
    check_choices,
    choose_recipe,
    evaluate_run,
    read_graph,
    sample_queries,
    start_run,
    train_run,
)
from conekg.errors import ConfigError, QueryError
from conekg.evaluation.report import Report
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.place import as_path
from conekg.lines import counted
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.query_set import QuerySet
from conekg.training.batches import usable_shapes
from conekg.training.loop import Outcome, check_max_minutes, pick_device
from conekg.training.recipe import Recipe
from conekg.training.recipe_change import change_recipe
from conekg.training.run import Run, check_vacant, is_run, open_run

FEW_FACTS = 20
"""With fewer held-out facts than this, metrics and probabilities may well be 10 points off."""
LARGER_RECIPE = {"small": "medium", "medium": "fast"}
"""For each recipe, the next larger one to try; `fast` is for a GPU."""


@dataclass(frozen=True)
class FitResult:
    """The result of a fit; if training was interrupted, only the run and the outcome are set."""

    run: Run
    outcome: Outcome
    report: Report | None = None
    baseline: Report | None = None
    """The frequency baseline on the same queries."""
    calibration: Calibration | None = None
    """None also if the model supports none of the validation queries."""

    def __repr__(self) -> str:
        scores = ""
        if self.report is not None and (average := self.report.row().get("avg_p")) is not None:
            scores = f", test MRR {average:.1f} on average without negation"
        return (
            f"<FitResult in {str(self.run.folder)!r}: {self.outcome.step:,} steps, "
            f"{self.outcome.reason}{scores}>"
        )

    @property
    def below_baseline(self) -> list[str]:
        """The structures on which the model's MRR is below the baseline's."""
        if self.report is None or self.baseline is None:
            return []
        return below_baseline(self.report, self.baseline)

    @property
    def warning(self) -> str | None:
        """On which structures the model is below the baseline, and a remedy; None if on none."""
        below = self.below_baseline
        if self.report is None or self.baseline is None or not below:
            return None
        model, frequency = self.report.row(), self.baseline.row()
        num_facts = len(self.run.graph.triples("test"))
        is_few = num_facts < FEW_FACTS
        chance = f"; with only {counted(num_facts, 'test fact')} it may be chance" if is_few else ""
        numbers = [f"{name} ({model[name]:.1f} against {frequency[name]:.1f})" for name in below]
        return (
            f"the model ranks worse than frequency alone on {len(below)} of "
            f"{len(self.report.measured)} structures, by MRR: {', '.join(numbers)}; "
            f"{_remedy(self.run.recipe)}{chance}"
        )


def _remedy(recipe: Recipe) -> str:
    """What to do about a model that has learnt too little."""
    longer = (
        f"start a new run with more training, `--set training.steps={2 * recipe.training.steps}`"
    )
    larger = LARGER_RECIPE.get(recipe.name)
    if larger == "fast" and pick_device().type == "cpu":
        larger = None
    return longer if larger is None else f"{longer} or `--recipe {larger}`"


def fit(
    source: str | Path | KnowledgeGraph,
    out: str | Path,
    *,
    model: str | None = None,
    recipe: str | None = None,
    config: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
    protocol: SamplingProtocol | None = None,
    device: torch.device | str | None = None,
    max_minutes: float | None = None,
    resume: bool = False,
    events: FitEvents | None = None,
) -> FitResult:
    """A trained, evaluated and calibrated run in the folder `out`.

    `source` is a graph or anything `open_graph` takes. `config` and `settings` change the
    recipe: `settings=["training.steps=1000"]`. The default model is ConE. With `resume`, a run
    that is already in `out` is continued with its own graph, and another model, recipe or sampling
    protocol is refused. Choices and progress go to `events`, or by default to the log, at the
    level INFO.
    """
    for key, value, kind in (
        ("model", model, str),
        ("recipe", recipe, str),
        ("config", config, Mapping),
        ("protocol", protocol, SamplingProtocol),
        ("events", events, FitEvents),
    ):
        _check_kind(key, value, kind)
    is_list = isinstance(settings, Sequence) and not isinstance(settings, str)
    if not is_list or not all(isinstance(each, str) for each in settings):
        raise ConfigError(
            f"settings is {settings!r}; it must be a list of texts, as ['training.steps=1000']",
            key="settings",
        )
    check_max_minutes(max_minutes)
    events = events or FitEvents()
    folder = as_path(out, "out")
    device = device if isinstance(device, torch.device) else pick_device(device or "auto")
    if resume and is_run(folder):
        run = open_run(folder)
        _refuse_another_recipe(run, model, recipe, config or {}, settings)
        if protocol is not None:
            _refuse_another_protocol(run, protocol)
            events.chose(
                "the queries that the run has",
                f"it is continued as it was started; no more are sampled by the protocol "
                f"{protocol.name!r}",
            )
    else:
        check_vacant(folder)
        check_choices(model, recipe, config or {})
        graph = source if isinstance(source, KnowledgeGraph) else read_graph(source, events)
        chosen = choose_recipe(graph, model, recipe, config or {}, settings, device, events)
        training = chosen.training
        queries = sample_queries(
            graph,
            protocol,
            training.seed,
            events,
            training.query_times,
            training.trained_shapes(),
        )
        run = start_run(folder, graph, chosen, queries, events)
    outcome = train_run(run, device=device, max_minutes=max_minutes, events=events)
    if not outcome.finished:
        return FitResult(run, outcome)
    report, baseline = evaluate_run(run, device=device, events=events)
    try:
        calibration = calibrate_run(run, device=device, events=events)
    except QueryError as error:
        events.chose("to answer without probabilities", error.message)
        calibration = None
    return FitResult(run, outcome, report, baseline, calibration)


def _check_kind(key: str, value: object, kind: type) -> None:
    """Refuse an argument of another type before any work is done."""
    if value is not None and not isinstance(value, kind):
        raise ConfigError(f"{key} is {value!r}; it must be a {kind.__name__}, or left out", key=key)


def _refuse_another_recipe(
    run: Run,
    model: str | None,
    name: str | None,
    config: Mapping[str, Any],
    settings: Sequence[str],
) -> None:
    """Raise `ConfigError` if a run is to be continued with another recipe than its own."""
    if model not in (None, run.recipe.model):
        raise ConfigError(
            f"{run.folder} was started with the model {run.recipe.model!r} and cannot continue "
            f"with {model!r}; start a new run for it",
            key="model",
        )
    if name not in (None, run.recipe.name):
        raise ConfigError(
            f"{run.folder} was started with the recipe {run.recipe.name!r} and cannot continue "
            f"with {name!r}; start a new run for it",
            key="recipe",
        )
    changed = change_recipe(run.recipe, config, settings)
    if changed != run.recipe:  # `start_run` has restricted the run's own to its queries' shapes
        present = usable_shapes(run.queries("train"), run.graph.num_entities)
        changed = replace(changed, training=changed.training.restricted_to(present))
    if changed != run.recipe:
        raise ConfigError(
            f"{run.folder} was started with another recipe than these settings make; leave them "
            "out to continue it, or start a new run"
        )


def _refuse_another_protocol(run: Run, protocol: SamplingProtocol) -> None:
    """Raise `ConfigError` if a run's queries cannot have been sampled by the given protocol."""
    wanted = protocol.for_graph(run.graph)
    for split in SPLITS:
        if not run.has_queries(split) or not _may_come_from(run.queries(split), wanted):
            raise ConfigError(
                f"{run.folder} was started with other {split} queries than the protocol "
                f"{protocol.name!r} makes; leave it out to continue the run, or start a new one",
                key="protocol",
            )


def _may_come_from(queries: QuerySet, protocol: SamplingProtocol) -> bool:
    """Whether these queries can be from a protocol with resolved counts, which may find fewer."""
    split, shapes = queries.split, tuple(block.shape for block in queries)
    if (queries.protocol, shapes) != (protocol.name, protocol.shapes(split)):
        return False
    if queries.paths_from not in (None, protocol.train_paths_from):
        return False
    counts = [(len(block), protocol.count(split, block.shape)) for block in queries]
    return all(wanted is None or found <= wanted for found, wanted in counts)
