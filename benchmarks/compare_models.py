"""Held-out MRR of every model and of the frequency baseline on the built-in graph.

Trains each model with its `small` recipe on the same queries and evaluates it on the same test
queries: ConE with every seed, the others with the first one (`--all-seeds`: with every one). Writes
the tables to docs/models-on-geography.md and fails unless ConE is ahead of the baseline on every
structure with every seed. `--out` keeps the runs in a folder; finished runs in it are not trained
again, and runs with another recipe, graph or seed of the queries are refused. If only some of the
models are chosen, `--page` must name another file.

    python benchmarks/compare_models.py [--out FOLDER] [--seeds 0 1 2]
    python benchmarks/compare_models.py --models cone gqe --page FILE
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from conekg.answering.stages import FitEvents, evaluate_run, sample_queries, start_run, train_run
from conekg.errors import ConeKGError, ConfigError
from conekg.evaluation.report import Report, comparison_markdown
from conekg.graph.geography import load_geography
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.sampling.query_set import QuerySet
from conekg.training.recipe_change import change_recipe
from conekg.training.recipe_file import dump_recipe
from conekg.training.recipes import find_recipe
from conekg.training.run import Run, is_run, open_run

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models-on-geography.md"


@dataclass(frozen=True)
class Entrant:
    """A model of the comparison and its settings."""

    title: str
    model: str
    tried: int | None
    """How many settings were compared on validation queries for its recipe; None if unknown."""
    settings: tuple[str, ...] = ()
    """Changes to the model's `small` recipe, as `key=value`."""


ENTRANTS = {
    "cone": Entrant("ConE", "cone", 34),
    "cone-published": Entrant(
        "ConE, published projection",
        "cone",
        None,
        (
            "model.projection=published",
            "model.initial_scale=3.0",
            "model.dim=64",
            "training.learning_rate=0.002",
        ),
    ),
    "gqe": Entrant("GQE", "gqe", 3),
    "box": Entrant("Query2Box", "box", 3),
    "beta": Entrant("BetaE", "beta", 5),
    "emql": Entrant("EmQL", "emql", 2),
}
QUERY_SEED = 7
"""Seed of the queries; the recipes were chosen on validation queries of seed 0."""

Row = dict[str, float]


@dataclass
class Result:
    """The reports of one model, one per seed."""

    recipe: str
    reports: list[Report] = field(default_factory=list)
    minutes: list[float] = field(default_factory=list)

    def row(self, metric: str, over_seeds: Callable[[Sequence[float]], float]) -> Row:
        """`over_seeds` of a metric's values, by structure and average."""
        rows = [report.row(metric) for report in self.reports]
        return {name: over_seeds([row[name] for row in rows]) for name in rows[0]}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--models", nargs="+", default=list(ENTRANTS), choices=list(ENTRANTS))
    options.add_argument("--out", type=Path, help="keep the runs in this folder")
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="training seeds")
    options.add_argument(
        "--all-seeds", action="store_true", help="train every model, not only ConE, with each seed"
    )
    options.add_argument("--query-seed", type=int, default=QUERY_SEED, help="seed of the queries")
    options.add_argument("--page", type=Path, default=PAGE, help="the Markdown file to write")
    chosen = options.parse_args()
    if set(chosen.models) != set(ENTRANTS) and chosen.page.resolve() == PAGE:
        options.error(f"--models: {PAGE.name} compares all models; give another file by --page")
    if not chosen.page.absolute().parent.is_dir():  # say so now, not after an hour of training
        options.error(f"--page {chosen.page}: there is no folder {chosen.page.parent}")
    graph = load_geography()
    queries = sample_queries(graph, None, chosen.query_seed, FitEvents())
    seeds = {
        name: chosen.seeds if name == "cone" or chosen.all_seeds else chosen.seeds[:1]
        for name in chosen.models
    }
    try:
        with tempfile.TemporaryDirectory() as temporary:
            results, baseline = compare(graph, queries, seeds, chosen.out or Path(temporary))
    except ConeKGError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    page = describe(results, baseline, seeds, chosen.query_seed)
    chosen.page.write_text(page, encoding="utf-8")
    print(f"wrote {chosen.page}")
    behind = behind_baseline(results["cone"], baseline) if "cone" in results else []
    print(f"ConE is behind the baseline on: {', '.join(behind) or 'nothing'}")
    return 1 if behind else 0


def compare(
    graph: KnowledgeGraph,
    queries: Mapping[Split, QuerySet],
    seeds: Mapping[str, Sequence[int]],
    folder: Path,
) -> tuple[dict[str, Result], Report]:
    """The result of each entrant, and the baseline's report on the same test queries."""
    results: dict[str, Result] = {}
    baseline: Report | None = None
    for name, own_seeds in seeds.items():
        for seed in own_seeds:
            run = open_or_start(folder / f"{name}-{seed}", graph, queries, ENTRANTS[name], seed)
            outcome = train_run(run)
            report, baseline = evaluate_run(run)
            result = results.setdefault(name, Result(dump_recipe(run.recipe)))
            result.reports.append(report)
            result.minutes.append(outcome.seconds / 60)
            row = json.dumps({column: round(mrr, 1) for column, mrr in report.row().items()})
            print(f"{name}, seed {seed}: {result.minutes[-1]:.1f} min, {row}", flush=True)
    assert baseline is not None, "there is at least one model and one seed"
    return results, baseline


def open_or_start(
    folder: Path,
    graph: KnowledgeGraph,
    queries: Mapping[Split, QuerySet],
    entrant: Entrant,
    seed: int,
) -> Run:
    """The run in the folder, finished or not, or a new one if there is none.

    Raises `ConfigError` if the run has another recipe, graph or seed of the queries.
    """
    settings = [*entrant.settings, f"training.seed={seed}"]
    recipe = change_recipe(find_recipe("small", entrant.model), {}, settings)
    if not is_run(folder):
        return start_run(folder, graph, recipe, queries, FitEvents())
    run = open_run(folder)
    kept = (run.recipe, run.graph.fingerprint, run.queries("test").seed)
    if kept != (recipe, graph.fingerprint, queries["test"].seed):
        raise ConfigError(
            f"the run in {folder} has another recipe or graph, or queries of another seed; give "
            "--out another folder, or remove the run",
            key="out",
        )
    return run


def behind_baseline(result: Result, baseline: Report) -> list[str]:
    """The structures and averages on which the model is not ahead of the baseline with every seed.

    Structures that the model cannot answer are left out.
    """
    worst, baselines = result.row("mrr", min), baseline.row()
    return [name for name, value in worst.items() if value <= baselines[name]]


def describe(
    results: Mapping[str, Result],
    baseline: Report,
    seeds: Mapping[str, Sequence[int]],
    query_seed: int,
) -> str:
    """The page, in Markdown; its text says of the rows only what the results show."""

    def table(metric: str) -> str:
        rows = {
            ENTRANTS[name].title: each.row(metric, statistics.mean)
            for name, each in results.items()
        }
        return comparison_markdown(rows | {"frequency": baseline.row(metric)})

    deviations = {
        ENTRANTS[name].title: each.row("mrr", statistics.stdev)
        for name, each in results.items()
        if len(each.reports) > 1
    }
    counts = {
        "queries": {r.structure: float(r.num_queries) for r in baseline.structures},
        "hard answers": {r.structure: float(r.num_answers) for r in baseline.structures},
    }
    spent = ", ".join(
        f"{ENTRANTS[name].title} {statistics.mean(each.minutes):.1f}"
        for name, each in results.items()
    )
    tried = ", ".join(
        f"{ENTRANTS[name].title} {ENTRANTS[name].tried}"
        for name in results
        if ENTRANTS[name].tried is not None
    )
    trained_by = "; ".join(
        f"{ENTRANTS[name].title} {', '.join(map(str, own))}" for name, own in seeds.items()
    )
    behind = [
        ENTRANTS[name].title for name, each in results.items() if behind_baseline(each, baseline)
    ]
    projections = [
        'ConE\'s recipe has `projection = "rotation"`, our departure from the paper. The row below',
        "it is the published projection, trained for as many steps with the recipe shown below.",
    ]
    threads = torch.get_num_threads()
    device = "one GPU" if torch.cuda.is_available() else f"{threads} CPU thread{'s'[: threads - 1]}"
    lines = [
        "# The models on the geography graph",
        "",
        "Every model is trained with its `small` recipe on the same sampled queries of the",
        "built-in graph, and ranks the hard answers of the same test queries: those that need",
        "held-out facts. *frequency* ranks entities by how often they answer the query's last",
        "relation in training, whatever the anchors; a model that does not beat it has learnt",
        "nothing about the anchors. GQE, Query2Box and EmQL cannot negate. Ranks are filtered,",
        "ties get their mean rank, and unions are ranked by the best of their branches; values are",
        "in percent.",
        "",
        f"Training seeds: {trained_by}. With several seeds, means are shown.",
        f"The queries have seed {query_seed}. The recipes were chosen on *validation* queries of",
        "seed 0, for a few minutes of training at most. ConE's test results were seen once before",
        "the last of its trials; that trial was rejected for its validation results, so no choice",
        f"rests on test results. Settings tried: {tried};",
        "the effort was not equal.",
        *(projections if {"cone", "cone-published"} <= set(results) else []),
        f"Not ahead of *frequency* on every structure: {'; '.join(behind) or 'none'}.",
        "",
        "MRR:",
        "",
        table("mrr"),
        "",
        *(["Standard deviation of the MRR over the seeds:", ""] if deviations else []),
        *([comparison_markdown(deviations), ""] if deviations else []),
        "Hits@10:",
        "",
        table("hits_at_10"),
        "",
        "Numbers of test queries and hard answers:",
        "",
        comparison_markdown(counts, digits=0),
        "",
        f"Minutes of training, validation included, on {device} of a machine that may have done",
        f"other work, too: {spent}.",
        "",
        "Made by `python benchmarks/compare_models.py`. The recipes:",
        "",
    ]
    for name, each in results.items():
        lines += [f"{ENTRANTS[name].title}:", "", "```toml", each.recipe.rstrip(), "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
