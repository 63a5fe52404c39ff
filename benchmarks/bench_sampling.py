"""Time and memory of sampling whole presets: all splits and structures, published counts.

Claims, on two cores: FB15k-237 in under 3 minutes, NELL in under 2, memory under 4 GB.
The published script needs days.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from benchmark_graph import add_data_option, benchmark_graph, random_graph

from conekg.graph.knowledge_graph import SPLITS
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS
from conekg.sampling.query_set import save_query_set
from conekg.sampling.sample import sample_query_set
from conekg.symbolic.workers import available_cores

CLAIMS_S = {"NELL": ("nell995", 120), "FB15k-237": ("fb15k-237", 180)}
MEMORY_GB = 4


def compile_loops() -> None:
    """Sample from a small graph before the clock starts: a machine compiles the loops only once."""
    graph = random_graph(2_000, 20, 20_000)
    for split in SPLITS:
        sample_query_set(graph, split, PRESETS["nell995"], 0, count=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument(
        "--graph", choices=CLAIMS_S, action="append", help="sample only this graph; repeatable"
    )
    parser.add_argument("--out", type=Path, help="save the query sets in this folder")
    arguments = parser.parse_args()
    print(f"{available_cores()} cores")
    compile_loops()
    for name in arguments.graph or CLAIMS_S:
        preset, claim_s = CLAIMS_S[name]
        graph = benchmark_graph(arguments.data, name)
        # Prepare the training graph before the clock starts.
        sample_query_set(graph, "train", PRESETS[preset], 0, shapes=[STRUCTURES["2i"]], count=1)
        total_s = total_cpu_s = queries = 0.0
        for split in SPLITS:
            started, cpu = time.perf_counter(), time.process_time()
            sampled = sample_query_set(graph, split, PRESETS[preset], 0)
            elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
            size = len(sampled.query_set)
            total_s, total_cpu_s, queries = total_s + elapsed, total_cpu_s + cpu, queries + size
            answers = sum(len(b.easy.values) + len(b.hard.values) for b in sampled.query_set)
            print(
                f"  {split:5} {size:9,} queries {answers:12,} answers {elapsed:7.1f} s "
                f"({cpu:.1f} s of CPU) {size / elapsed:9,.0f} /s"
            )
            if arguments.out is not None:
                save_query_set(arguments.out / name / f"{split}.arrow", sampled.query_set)
        verdict = "kept" if total_s < claim_s else "MISSED"
        print(
            f"  all   {queries:9,.0f} queries in {total_s:.1f} s ({total_cpu_s:.1f} s of CPU); "
            f"claim {claim_s} s: {verdict}"
        )
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    verdict = "kept" if peak_gb < MEMORY_GB else "MISSED"
    print(f"peak memory {peak_gb:.2f} GB; claim {MEMORY_GB} GB: {verdict}")


if __name__ == "__main__":
    main()
