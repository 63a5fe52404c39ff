"""Every Triton kernel compiles, without a GPU, for the GPUs it is meant for, as it is launched."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import conekg.model.kernels

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="Triton is not installed here"
    ),
    pytest.mark.skipif(
        torch.cuda.is_available(), reason="kernels are compiled for the GPU that is here"
    ),
]

KERNELS = Path(conekg.model.kernels.__file__).parent
SCRIPT = Path(__file__).parents[2] / "compile_for_gpu.py"


def launched_kernels() -> set[str]:
    """The functions that the kernels' modules launch, `name[grid](...)`, by module."""
    found = set()
    for path in KERNELS.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Subscript(value=ast.Name(id=name))) if "kernel" in name:
                    found.add(f"conekg.model.kernels.{path.stem}.{name}")
    return found


def compile_for(capability: int, cache: Path) -> list[dict[str, Any]]:
    path = os.pathsep.join(sys.path)  # the package under test need not be the one installed
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, str(capability)],
        env=os.environ | {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("capability", "most_spilled"),
    [
        pytest.param(80, 32, id="Ampere"),
        pytest.param(90, 0, id="Hopper"),
        pytest.param(100, 32, id="Blackwell"),
    ],
)
def test_every_kernel_compiles_and_keeps_its_numbers_in_registers(
    tmp_path: Path, capability: int, most_spilled: int
) -> None:
    """At the widths of the recipes. A warning of the compiler fails the test too."""
    rows = compile_for(capability, tmp_path)
    expected = launched_kernels()
    assert len(expected) >= 8
    assert {row["kernel"] for row in rows} == expected
    for row in rows:
        assert row["registers"] > 8, row
        assert row["spilled"] <= most_spilled, row
