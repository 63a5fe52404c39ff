"""Milliseconds of one training step (three updates of 512 queries) on a GPU.

Compares the fused updater with the plain eager one in the same run, and prints the figures of the
published code beside them (one H200, FB15k-237's sizes). Graphs have the benchmarks' sizes, but
queries are random: the time of a step does not depend on what they ask. Before the measurement,
parallel processes compile the operators of all cases, to fill the compiler's caches.

    python benchmarks/bench_training_step.py [--datasets fb15k-237 nell995] [--models cone box]
        [--variants eager-float32 fused-bfloat16] [--json FILE] [--inductor KEY=true ...]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from conekg.graph.ragged import Ragged
from conekg.model.catalog import build_model
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.training.batches import DeviceData, move_to_device
from conekg.training.precision import Precision
from conekg.training.recipe import OTHER_POOL, PATH_POOL, Pool, TrainingRecipe
from conekg.training.timing import seconds_per_step
from conekg.training.updater import EagerUpdater, Updater

INTERSECTION_POOL = Pool("other", (("2i", 1.0), ("3i", 1.0)))
"""The shapes of `OTHER_POOL` without negation, for models that cannot negate."""

SIZES = {"fb15k": (14951, 2690), "fb15k-237": (14505, 474), "nell995": (63361, 400)}
"""Entities, and relations with their inverses."""
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
"""Milliseconds per step of the published code at FB15k-237's sizes, on one H200."""
GOALS_MS = {
    ("fb15k-237", "cone"): 2.5,
    ("nell995", "cone"): 4.0,
    **{("fb15k-237", name): PUBLISHED_MS[name] / 15 for name in ("gqe", "box", "beta")},
}
"""For the fastest variant on one H200."""
FASTEST = "fused-bfloat16"
LEARNING_RATE = 1e-4


def random_data(entities: int, relations: int, device: torch.device) -> DeviceData:
    """20,000 random queries of each shape of the pools, with 1 to 29 answers each."""
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


def new_updater(name: str, dataset: str, variant: str, data: DeviceData) -> Updater:
    """An updater of a new model, as the variant has it."""
    from conekg.training.fused import FusedUpdater

    kind, precision, compiled = VARIANTS[variant]
    recipe = TrainingRecipe(
        steps=1000,
        pools=(PATH_POOL, OTHER_POOL if name in ("cone", "beta") else INTERSECTION_POOL),
        precision=precision,
        compile_operators=compiled,
    )
    model = build_model(name, *SIZES[dataset], CONFIGS[name]).to(data.device)
    return (FusedUpdater if kind == "fused" else EagerUpdater)(model, data, recipe)


def measure(
    name: str, dataset: str, variant: str, data: DeviceData, steps: int
) -> dict[str, object]:
    """The time and memory of a step of one case, as a row of the JSON file.

    Eager steps are slow: only two rounds of five steps are timed.
    """
    torch.compiler.reset()  # what was compiled for the case before counts towards its limit
    gc.collect()  # frees the updater of the case before, with its graph
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    updater = new_updater(name, dataset, variant, data)
    kind, precision, compiled = VARIANTS[variant]
    rounds = (steps, 5) if kind == "fused" else (5, 2)
    ms = 1e3 * seconds_per_step(updater, LEARNING_RATE, rounds[0], repeats=rounds[1])
    row: dict[str, object] = {
        "dataset": dataset,
        "model": name,
        "updater": kind,
        "precision": precision,
        "compiled": compiled,
        "ms_per_step": round(ms, 3),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }
    if dataset == "fb15k-237":
        row["published_ms"] = PUBLISHED_MS[name]
        row["times_faster_than_published"] = round(PUBLISHED_MS[name] / ms, 1)
    goal = GOALS_MS.get((dataset, name))
    if goal is not None and variant == FASTEST:
        row["goal"] = f"{goal:.2f} ms: {'kept' if ms <= goal else 'MISSED'}"
    return row


def compile_side_by_side(cases: list[tuple[str, str, str]], inductor: list[str]) -> None:
    """Run a step of each case in a process of its own, which fills the compiler's caches."""
    options = ["--inductor", *inductor] if inductor else []
    command = [sys.executable, __file__, "--only-compile", *options]
    processes = [
        subprocess.Popen(
            [*command, "--datasets", dataset, "--models", name, "--variants", variant],
            stdout=subprocess.DEVNULL,
        )
        for dataset, name, variant in cases
    ]
    failed = [case for case, process in zip(cases, processes, strict=True) if process.wait()]
    if failed:
        print(f"not compiled ahead: {failed}", flush=True)


def compiler_option(text: str) -> str:
    """The text unchanged; an argparse error unless it is KEY=VALUE with a value in JSON."""
    key, _, value = text.partition("=")
    try:
        json.loads(value)
    except json.JSONDecodeError:
        key = ""
    if not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as max_autotune=true")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--datasets", nargs="+", choices=list(SIZES), default=["fb15k-237", "nell995"]
    )
    parser.add_argument("--models", nargs="+", choices=list(CONFIGS), default=list(CONFIGS))
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--json", type=Path, help="write the rows to this JSON file")
    parser.add_argument(
        "--inductor", nargs="+", type=compiler_option, default=[], help="compiler options to try"
    )
    parser.add_argument(
        "--only-compile",
        action="store_true",
        help="fill the compiler's caches and measure nothing",
    )
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error(f"--steps is {arguments.steps}; it must be 1 or more")
    if not torch.cuda.is_available():
        print("skipped: this benchmark needs a CUDA device")
        return
    from conekg.training import fused

    for option in arguments.inductor:
        key, _, value = option.partition("=")
        fused.COMPILER_OPTIONS[key] = json.loads(value)
    device = torch.device("cuda")
    cases = list(itertools.product(arguments.datasets, arguments.models, arguments.variants))
    compiled = [case for case in cases if VARIANTS[case[2]][2]]
    if len(compiled) > 1 and not arguments.only_compile:
        compile_side_by_side(compiled, arguments.inductor)
    rows: list[dict[str, object]] = []
    for dataset in arguments.datasets:
        data = random_data(*SIZES[dataset], device)
        for name in arguments.models:
            eager_ms: float | None = None
            for variant in arguments.variants:
                if arguments.only_compile:
                    new_updater(name, dataset, variant, data).step(LEARNING_RATE)
                    continue
                row = measure(name, dataset, variant, data, arguments.steps)
                if row["updater"] == "eager":
                    eager_ms = float(str(row["ms_per_step"]))
                elif eager_ms is not None:
                    ms = float(str(row["ms_per_step"]))
                    row["times_faster_than_eager"] = round(eager_ms / ms, 1)
                rows.append(row)
                print("  ".join(f"{key}={value}" for key, value in row.items()), flush=True)
    if arguments.json is not None and not arguments.only_compile:
        about = {
            "what": "one training step: three updates of 512 queries, 128 negatives each",
            "command": " ".join(["python", "benchmarks/bench_training_step.py", *sys.argv[1:]]),
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
        }
        arguments.json.write_text(json.dumps(about | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
