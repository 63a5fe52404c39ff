"""Compiles the Triton kernels for a GPU that need not be present, and prints what they use.

    python tests/compile_for_gpu.py CAPABILITY      for example 90 for Hopper

Training steps and searches run on zeros as on a GPU, but a launch of a kernel only compiles it.
So kernels are compiled with the types, sizes and options that the package gives them. Prints a JSON
row per compiled kernel: the registers of a thread, and the bytes that it spills to memory.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "0"  # before Triton is imported

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from conekg.graph.ragged import Ragged
from conekg.model.catalog import build_model
from conekg.model.geometry import Geometry
from conekg.model.kernels.score_all import EntityColumns
from conekg.sampling.query_set import QueryBlock
from conekg.training.batches import move_to_device
from conekg.training.fused import FusedUpdater
from conekg.training.recipes import find_recipe
from tiny import tiny_graph, tiny_queries

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
MODELS = ("cone", "box", "gqe", "beta")


class AbsentDevice:
    """The part of a Triton driver that compiling needs."""

    def __init__(self, capability: int) -> None:
        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


class Zeroed(TorchDispatchMode):
    """Fills new memory with zeros: they are valid ids where kernels would have written some."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
        result = function(*args, **(kwargs or {}))
        return result.zero_() if "empty" in function.__name__ else result


@contextmanager
def launches_compiled(capability: int) -> Iterator[dict[str, Any]]:
    """A context in which launching a kernel only compiles it; yields kernels by hash.

    Each value is the kernel's name and the result of compiling it.
    """
    compiled: dict[str, Any] = {}
    launch = JITFunction.run

    def compile_only(kernel: Any, *args: Any, warmup: bool, **options: Any) -> Any:
        done = launch(kernel, *args, warmup=True, **options)
        compiled[done.hash] = (f"{kernel.fn.__module__}.{kernel.fn.__name__}", done)
        return done

    driver.set_active(AbsentDevice(capability))
    JITFunction.run = compile_only
    try:
        with Zeroed():
            yield compiled
    finally:
        JITFunction.run = launch


def step(recipe_name: str, model_name: str, graph_name: str, **changes: Any) -> None:
    """A training step with the recipe's model at full width, on the tiny graph.

    `changes` are made to the settings of training.
    """
    queries, graph = tiny_queries()["train"], tiny_graph()
    recipe = find_recipe(recipe_name, model_name, graph_name)
    present = frozenset(block.shape.name for block in queries if len(block))
    training = recipe.training.restricted_to(present)
    training = replace(training, compile_operators=False, **changes)
    shapes = sorted({shape for pool in training.pools for shape in pool.shapes})

    def one_near_miss(block: QueryBlock) -> Ragged:
        return Ragged.from_rows([[0]] * len(block))

    near_misses = one_near_miss if training.near_misses else None
    data = move_to_device(queries, graph.num_entities, shapes, torch.device("cpu"), near_misses)
    model = build_model(model_name, graph.num_entities, graph.num_relations, recipe.config)
    FusedUpdater(model, data, training).step(1e-4)


def search(geometry: Geometry, dim: int) -> None:
    """Distances to all entities for 1, 8 and 64 regions."""
    columns = EntityColumns(torch.zeros(1000, dim), geometry=int(geometry), inverse_range=1.0)
    for rows in (1, 8, 64):
        region = torch.zeros(rows, dim)
        columns.distances(region, region, 0.02)


def resources(compiled: Any) -> dict[str, int]:
    """The registers and the spilled bytes of a compiled kernel, from the assembler."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        printed = subprocess.run(
            [CUOBJDUMP, "--dump-resource-usage", file.name],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    registers, stack, local = (
        int(re.search(rf"\b{name}:(\d+)", printed)[1])  # type: ignore[index]
        for name in ("REG", "STACK", "LOCAL")
    )
    return {"registers": registers, "spilled": stack + local}


def main() -> None:
    with launches_compiled(int(sys.argv[1])) as compiled:
        for model in MODELS:
            step("paper", model, "nell995")
        for geometry, dim in ((Geometry.CONE, 800), (Geometry.BOX, 800), (Geometry.POINT, 1600)):
            search(geometry, dim)
        step("fast", "cone", "fb15k")
        for sampling in ("uniform-filtered", "uniform-published"):
            step("fast", "gqe", "nell995", shared_negatives=True, negative_sampling=sampling)
    rows = [{"kernel": name, **resources(done)} for name, done in compiled.values()]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
