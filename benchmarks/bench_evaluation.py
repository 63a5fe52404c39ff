"""Seconds to rank the official NELL995 test queries of fourteen structures, on a GPU or a CPU.

Compares the compiled scoring of all entities with the plain PyTorch path in the same run and
prints the figure of the published code beside them. The plain path scores only a few queries of
each structure. The model is ConE at the paper's size, untrained: time does not depend on its
weights. If the data folder has no test queries, they are sampled from its graph, or from a random
graph of the same size. The goal is 10 s for all 69,021 queries on one H200.

    python benchmarks/bench_evaluation.py [--data FOLDER] [--max-queries 500] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
from benchmark_graph import add_data_option, benchmark_graph

from conekg.errors import ConeKGError
from conekg.evaluation.evaluate import ModelScorer, evaluate
from conekg.evaluation.report import Report
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.model.catalog import build_model
from conekg.model.interface import QueryModel
from conekg.model.scoring import PlainTable
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES, STRUCTURES
from conekg.sampling.protocol import PRESETS
from conekg.sampling.query_set import QuerySet
from conekg.sampling.sample import sample_query_set
from conekg.sampling.source import has_queries, open_queries

PUBLISHED_MS = 2.6
"""Milliseconds per query of the published code on one H200."""
GOAL_S = 10.0
ALL_QUERIES = 69_021
FOURTEEN = (*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES)


class PlainScorer(ModelScorer):
    """Scores by the model's own arithmetic, without a prepared table."""

    def __init__(self, model: QueryModel) -> None:
        super().__init__(model)
        self._table = PlainTable(model)


def test_queries(folder: Path, graph: KnowledgeGraph, count: int | None) -> QuerySet:
    """The folder's test queries of the fourteen structures; if it has none, sampled ones.

    `count` is how many are sampled of each structure (None: as many as the preset has).
    """
    if has_queries(folder, "test"):
        has_answers = (folder / "test-easy-answers.pkl").is_file()
        found = open_queries(folder, "test", graph, recompute=not has_answers)
    else:
        print(f"{folder} has no test queries: sampling some")
        shapes, preset = [STRUCTURES[name] for name in FOURTEEN], PRESETS["nell995"]
        sampled = sample_query_set(graph, "test", preset, 0, shapes=shapes, count=count)
        found = sampled.query_set
    blocks = tuple(block for block in found if block.shape.name in FOURTEEN)
    return QuerySet("test", blocks)


def ms_per_query(report: Report) -> float:
    return 1e3 * report.seconds / sum(result.num_queries for result in report.structures)


def measure(
    graph: KnowledgeGraph,
    queries: QuerySet,
    options: argparse.Namespace,
    device: torch.device,
) -> dict[str, object]:
    """The times of both paths beside the published figure, by the name of each figure."""
    model = build_model(
        "cone", graph.num_entities, graph.num_relations, {"dim": options.dim, "hidden": 1600}
    )
    model = model.to(device).eval()
    sizes = {"num_entities": graph.num_entities}
    for scorer in (model, PlainScorer(model)):  # compile and allocate before the clock starts
        evaluate(scorer, queries, **sizes, max_queries=1)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    compiled = evaluate(model, queries, **sizes, max_queries=options.max_queries)
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None
    plain = evaluate(PlainScorer(model), queries, **sizes, max_queries=options.plain_queries)
    number = sum(result.num_queries for result in compiled.structures)
    ms, plain_ms = ms_per_query(compiled), ms_per_query(plain)
    row: dict[str, object] = {
        "queries": number,
        "seconds": round(compiled.seconds, 2),
        "ms_per_query": round(ms, 3),
        "plain_ms_per_query": round(plain_ms, 3),
        "times_faster_than_plain": round(plain_ms / ms, 1),
        "published_ms_per_query_on_an_h200": PUBLISHED_MS,
    }
    if peak is not None:
        row["times_faster_than_published"] = round(PUBLISHED_MS / ms, 1)
        row["peak_gib"] = round(peak, 2)
    if number >= ALL_QUERIES and device.type == "cuda":
        verdict = "kept" if compiled.seconds <= GOAL_S else "MISSED"
        row["goal"] = f"{GOAL_S:g} s: {verdict}"
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_option(parser)
    parser.add_argument("--dim", type=int, default=800)
    parser.add_argument(
        "--max-queries",
        type=int,
        help="queries per structure; by default all on a GPU and 5 on a CPU",
    )
    parser.add_argument(
        "--plain-queries",
        type=int,
        help="queries per structure for the plain path; by default 100 on a GPU and 1 on a CPU",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    for name in ("dim", "max_queries", "plain_queries"):
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name.replace('_', '-')} is {value}; it must be 1 or more")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu = device.type == "cuda"
    if options.max_queries is None and not on_gpu:
        options.max_queries = 5
    if options.plain_queries is None:
        options.plain_queries = 100 if on_gpu else 1
    machine = torch.cuda.get_device_name() if on_gpu else f"{torch.get_num_threads()} CPU threads"
    try:
        graph = benchmark_graph(options.data, "NELL")
        queries = test_queries(options.data / "NELL", graph, options.max_queries)
    except ConeKGError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"ConE, d = {options.dim}, {graph.num_entities:,} entities, {machine}")
    row = measure(graph, queries, options, device)
    print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    if options.json is not None:
        about = {
            "what": "ranking the hard answers of test queries of fourteen structures",
            "command": " ".join(["python", "benchmarks/bench_evaluation.py", *sys.argv[1:]]),
            "device": machine,
            "torch": torch.__version__,
        }
        options.json.write_text(json.dumps(about | row, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
