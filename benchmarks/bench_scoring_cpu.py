"""Scoring all entities on a CPU: the compiled tables against a memory read and eager PyTorch.

    python benchmarks/bench_scoring_cpu.py [--entities 14951] [--dim 800] [--models cone]

The goals for ConE on two cores: one query takes at most 1.25 times as long as reading the table
from memory, and a query in a batch of 64 takes at most 1.3 ms. Each time is the best of several
rounds through all tasks, because other work on the machine can only make a task slower.

The cache of a large processor holds the whole table. So reading it and one query are timed twice:
with the same table in every round, and with copies in turn, which together are twice as large as
the cache, so that each of them has to come from memory. (Of small tables there are fewer copies.)
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numba
import numpy as np
import torch

from conekg.model.catalog import build_model
from conekg.model.interface import QueryModel, Region
from conekg.model.kernels.processor import prefer_wide_vectors
from conekg.model.kernels.scoring import in_ranges
from conekg.model.scoring import scoring_table

BATCH, EAGER_BATCH = 64, 8
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNKNOWN_CACHE = 256 << 20
"""Bytes that are assumed where the system does not say how large the cache is."""
MOST_COPIES = 256


@numba.njit(nogil=True, fastmath=True)
def sum_rows(table: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
    """Read a range of rows, four at a time, with hardly any arithmetic: the cost of memory."""
    prefer_wide_vectors()
    for entity in range(start, stop, 4):
        last = stop - 1
        e1, e2, e3 = min(entity + 1, last), min(entity + 2, last), min(entity + 3, last)
        r0, r1, r2, r3 = table[entity], table[e1], table[e2], table[e3]
        total = np.float32(0)
        for j in range(table.shape[1]):
            total += (r0[j] + r1[j]) + (r2[j] + r3[j])
        out[entity] = total


def best_of(repeats: int, tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Milliseconds of each task: the best of `repeats` rounds through all tasks."""
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()  # compiles it
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            best[name] = min(best[name], 1e3 * (time.perf_counter() - started))
    return best


def cache_bytes() -> int:
    """The size of the processor's largest cache."""
    sizes = [path.read_text().strip() for path in CACHES.glob("index*/size")]
    return max((int(size.removesuffix("K")) << 10 for size in sizes), default=UNKNOWN_CACHE)


def regions_of(model: QueryModel, rows: int) -> Region:
    """Regions of `rows` 1p queries; which entities and relations they have does not matter."""
    ids = torch.arange(rows) % model.num_entities
    return tuple(part.contiguous() for part in model.project(model.anchor(ids), ids % 8))


@torch.no_grad()
def measure(name: str, num_entities: int, dim: int, repeats: int) -> None:
    options: dict[str, object] = {"dim": dim}
    if name == "cone":
        options["hidden"] = 64
    model = build_model(name, num_entities, 8, options).eval()
    threads = torch.get_num_threads()
    entities = model.entity.numpy()
    one, few, many = (regions_of(model, rows) for rows in (1, EAGER_BATCH, BATCH))
    table = scoring_table(model)
    sums = np.zeros(num_entities, dtype=np.float32)
    copies = min(MOST_COPIES, math.ceil(2 * cache_bytes() / entities.nbytes))
    rows_in_turn = cycle([entities.copy() for _ in range(copies)])
    tables_in_turn = cycle([scoring_table(model) for _ in range(copies)])

    def read(rows: np.ndarray) -> None:
        in_ranges(sum_rows, num_entities, threads, rows, sums)

    quick = best_of(
        repeats,
        {
            "read again": lambda: read(entities),
            "one again": lambda: table.distances(one),
            "read": lambda: read(next(rows_in_turn)),
            "one": lambda: next(tables_in_turn).distances(one),
        },
    )
    slow = best_of(
        max(1, repeats // 40),
        {
            "many": lambda: table.distances(many),
            "eager one": lambda: model.distance_to_all(one),
            "eager few": lambda: model.distance_to_all(few),
            "table": lambda: scoring_table(model),
        },
    )
    per_query = slow["many"] / BATCH
    megabytes = entities.nbytes / 1e6
    print(f"{name}: {num_entities:,} entities, d = {dim}, {threads} threads")
    print(
        f"  {copies} copies in turn, {copies * megabytes:.0f} MB: "
        f"reading one {quick['read']:.2f} ms, one query {quick['one']:.2f} ms, "
        f"{quick['one'] / quick['read']:.2f} x reading (goal for ConE 1.25)"
    )
    print(
        f"  one table again, {megabytes:.0f} MB: "
        f"reading it {quick['read again']:.2f} ms, one query {quick['one again']:.2f} ms, "
        f"{quick['one again'] / quick['read again']:.2f} x reading, "
        f"{slow['eager one'] / quick['one again']:.1f} x faster than eager "
        f"({slow['eager one']:.1f} ms)"
    )
    print(
        f"  batch of {BATCH}, a query        {per_query:8.2f} ms, "
        f"{slow['eager few'] / EAGER_BATCH / per_query:.1f} x faster than eager "
        f"({slow['eager few'] / EAGER_BATCH:.1f} ms); goal for ConE 1.3 ms at the default sizes"
    )
    print(f"  preparing the table         {slow['table']:8.2f} ms, once")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time scoring all entities on a CPU.")
    parser.add_argument("--entities", type=int, default=14_951)
    parser.add_argument("--dim", type=int, default=800)
    parser.add_argument("--repeats", type=int, default=200)
    names = ["cone", "box", "gqe"]
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    for name in arguments.models:
        measure(name, arguments.entities, arguments.dim, arguments.repeats)


if __name__ == "__main__":
    main()
