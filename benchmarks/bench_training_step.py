"""Milliseconds of one training step (three updates of 512 queries) on a GPU.

Compares, in one run, the fused updater in each precision with the plain eager one, and
prints the figures of the published code beside them (one H200, FB15k-237's sizes). The
queries are random and of the benchmark's sizes: the time of a step does not depend on
what they ask.

    python benchmarks/bench_training_step.py [--datasets fb15k-237 nell995] [--models cone box]
        [--variants eager-float32 fused-bfloat16]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import numpy as np
import torch

from conekg.graph.ragged import Ragged
from conekg.model.catalog import build_model
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.training.batches import DeviceData, move_to_device
from conekg.training.precision import Precision
from conekg.training.recipe import INTERSECTION_POOL, OTHER_POOL, PATH_POOL, TrainingRecipe
from conekg.training.updater import EagerUpdater, Updater

SIZES = {"fb15k": (14951, 2690), "fb15k-237": (14505, 474), "nell995": (63361, 400)}
CONFIGS: dict[str, dict[str, object]] = {
    "cone": {"dim": 800},
    "gqe": {"dim": 800},
    "box": {"dim": 400},
    "beta": {"dim": 400},
}
VARIANTS: dict[str, tuple[str, Precision, bool]] = {
    "eager-float32": ("eager", "float32", False),
    "fused-float32": ("fused", "float32", False),
    "fused-tf32": ("fused", "tf32", True),
    "fused-bfloat16": ("fused", "bfloat16", True),
}
"""(updater, precision of matrix products, operators compiled)"""
PUBLISHED_MS = {"cone": 143, "gqe": 35, "box": 44, "beta": 90}


def random_data(entities: int, relations: int, device: torch.device) -> DeviceData:
    rng = np.random.default_rng(0)
    blocks = []
    for name in (*PATH_POOL.shapes, *OTHER_POOL.shapes):
        shape, count = STRUCTURES[name], 20_000
        lengths = rng.integers(1, 30, size=count)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        values = rng.integers(entities // 2, size=offsets[-1])
        row = np.repeat(np.arange(count), lengths)
        order = np.lexsort((values, row))
        blocks.append(
            QueryBlock(
                shape,
                rng.integers(entities, size=(count, shape.num_anchors), dtype=np.int32),
                rng.integers(relations, size=(count, shape.num_relations), dtype=np.int32),
                Ragged(np.zeros(count + 1, np.int64), np.zeros(0, np.int32)),
                Ragged(offsets, values[order].astype(np.int32)),
            )
        )
    names = [block.shape.name for block in blocks]
    return move_to_device(QuerySet("train", tuple(blocks)), entities, names, device)


def milliseconds(updater: Updater, steps: int) -> float:
    """The median over five runs of `steps` steps, after a warm-up that includes the capture."""
    for _ in range(6):
        updater.step(1e-4)
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(steps):
            updater.step(1e-4)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / steps * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["fb15k-237", "nell995"])
    parser.add_argument("--models", nargs="+", default=list(CONFIGS))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: this benchmark needs a CUDA device")
        return
    from conekg.training.fused import FusedUpdater

    device = torch.device("cuda")
    rows = []
    for dataset in arguments.datasets:
        entities, relations = SIZES[dataset]
        data = random_data(entities, relations, device)
        for name in arguments.models:
            other = OTHER_POOL if name in ("cone", "beta") else INTERSECTION_POOL
            for kind, precision, compiled in map(VARIANTS.__getitem__, arguments.variants):
                recipe = TrainingRecipe(
                    steps=1000,
                    pools=(PATH_POOL, other),
                    precision=precision,
                    compile_operators=compiled,
                )
                torch.compiler.reset()  # each model and size is compiled on its own
                torch.cuda.reset_peak_memory_stats()
                model = build_model(name, entities, relations, CONFIGS[name]).to(device)
                updater: Updater = (
                    FusedUpdater(model, data, recipe)
                    if kind == "fused"
                    else EagerUpdater(model, data, recipe)
                )
                ms = milliseconds(updater, arguments.steps if kind == "fused" else 10)
                rows.append(
                    {
                        "dataset": dataset,
                        "model": name,
                        "updater": kind,
                        "precision": precision,
                        "compiled": compiled,
                        "ms_per_step": round(ms, 3),
                        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
                        "published_ms": PUBLISHED_MS[name],
                        "times_faster_than_published": round(PUBLISHED_MS[name] / ms, 1),
                    }
                )
                print("  ".join(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
                del updater, model
                torch.cuda.empty_cache()
    if arguments.json:
        json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
