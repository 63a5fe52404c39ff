"""Tiny trained runs on which all experiments are tested, and fixtures to run experiments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.experiments.options import Options
from conekg.training.loop import train
from conekg.training.run import Run, open_run
from tiny import tiny_run

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> dict[str, Run]:
    """A run of each model on the tiny graph, and one of ConE with another seed (`cone-10`)."""
    root = tmp_path_factory.mktemp("runs")
    wanted = {name: (name, 0) for name in ("cone", "box", "beta", "gqe", "emql")}
    runs = {}
    for key, (model, seed) in (wanted | {"cone-10": ("cone", 10)}).items():
        run = tiny_run(root / key, model, seed=seed)
        train(run, device=CPU)
        runs[key] = open_run(run.folder)
    return runs


@pytest.fixture
def named() -> Callable[[Run, str], Run]:
    """A function that gives a run whose graph has another name, such as that of a data set.

    The experiments tell the paper's data sets by the name of the graph.
    """

    def with_name(run: Run, name: str) -> Run:
        renamed = open_run(run.folder)
        renamed.graph.name = name
        return renamed

    return with_name


@pytest.fixture
def options() -> Options:
    return Options(device=CPU)


@pytest.fixture
def reproduce(tmp_path):
    """A function that runs `conekg reproduce` and returns its tables, as in the JSON file."""

    def call(*arguments: object) -> list[dict]:
        file = Path(tmp_path) / "tables.json"
        words = ["reproduce", *map(str, arguments), "--json", str(file)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return json.loads(file.read_text())["tables"]

    return call
