"""Exact answers in batches on FB15k-237: queries per second, and the ratio to plain sets.

Claim: at least 100,000 3p and 200,000 pin queries per second on two cores. The first table is of
queries drawn as in the test preset (at most 120 hard answers), the second of queries of the same
shapes without a limit on their answers. All are answered on the training graph, in batches drawn
from 5,000 queries per shape.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from benchmark_graph import add_data_option, benchmark_graph

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS, SamplingProtocol
from conekg.sampling.query_set import QueryBlock
from conekg.sampling.sample import sample_query_set
from conekg.symbolic.engine import answer_batch
from conekg.symbolic.workers import available_cores

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracle import Oracle

CLAIMS = {"3p": 100_000, "pin": 200_000}
ORACLE_QUERIES = 200
RUNS = 12


def measure(graph: KnowledgeGraph, block: QueryBlock, repeats: int, oracle: Oracle) -> None:
    """Time batches of queries of one shape, check some answers, print one line of the table."""
    adjacency = graph.adjacency("train")
    order = np.random.default_rng(0).integers(0, len(block), repeats)
    anchors, relations = block.anchors[order], block.relations[order]
    wall_s, cpu_s = np.inf, np.inf
    for _ in range(RUNS):
        started, cpu = time.perf_counter(), time.process_time()
        answer_batch(adjacency, block.shape, anchors, relations)
        wall_s = min(wall_s, time.perf_counter() - started)
        cpu_s = min(cpu_s, time.process_time() - cpu)
    answers = answer_batch(adjacency, block.shape, anchors, relations)
    queries = [block.query(row) for row in order[:ORACLE_QUERIES]]
    started = time.perf_counter()
    expected = [oracle.answer(query) for query in queries]
    oracle_rate = len(queries) / (time.perf_counter() - started)
    for row, wanted in enumerate(expected):
        assert set(answers[row].tolist()) == wanted, "the engine and the oracle disagree"
    rate = len(order) / wall_s
    claim = CLAIMS.get(block.shape.name)
    verdict = "" if claim is None else f"claim {claim:,}: {'kept' if rate >= claim else 'MISSED'}"
    print(
        f"  {block.shape.name:6} {rate:12,.0f} /s {answers.lengths.mean():9.1f} answers "
        f"{rate / oracle_rate:8.0f} x sets {1e6 * cpu_s / len(order):7.2f} us of CPU  {verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--queries", type=int, default=50_000)
    every = [name for name in STRUCTURES if not name.endswith("-DM")]
    parser.add_argument("--shapes", nargs="+", choices=every, default=every)
    arguments = parser.parse_args()
    graph = benchmark_graph(arguments.data, "FB15k-237")
    oracle = Oracle(graph.edges("train").tolist(), graph.num_entities)
    print(
        f"{available_cores()} cores, {arguments.queries:,} queries a batch, best of {RUNS}, "
        "training graph"
    )
    shapes = [STRUCTURES[name] for name in arguments.shapes]
    published = PRESETS["fb15k-237"]
    for title, split, protocol in (
        ("test preset", "test", published),
        ("drawn without a cap", "train", SamplingProtocol("uncapped", None)),
    ):
        print(title)
        sampled = sample_query_set(graph, split, protocol, 0, shapes=shapes, count=5_000)
        for block in sampled.query_set:
            measure(graph, block, arguments.queries, oracle)


if __name__ == "__main__":
    main()
