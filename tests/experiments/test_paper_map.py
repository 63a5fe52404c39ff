"""The map of the paper names only what exists, and leaves no experiment and no table out."""

import ast
import importlib
import json
import re
from functools import cache
from pathlib import Path

import pytest

from conekg.experiments.catalog import EXPERIMENTS
from conekg.experiments.published import FIGURE_PLACES, labels, place_of
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([^`]+)`", PAGE)))


def resolve(dotted):
    """The object of a dotted name, however much of it is module; None when there is none."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name, None)
        return found
    return None


@cache
def functions_in(path):
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def exists(name):
    if name.startswith("conekg reproduce"):
        return name == "conekg reproduce" or name.split()[2] in EXPERIMENTS
    if name.startswith("conekg."):
        return resolve(name) is not None
    if "::" in name:
        path, _, test = name.partition("::")
        return test in functions_in(path)
    if "/" in name:
        return (ROOT / name).exists()
    return name in {*labels(), *FIGURE_PLACES, "eqn:proj_op", "table:datasets", "table:hp"}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_exists(name):
    assert exists(name), f"docs/paper-map.md names `{name}`, which does not exist"


@pytest.mark.parametrize(
    "name",
    [
        "conekg reproduce nothing",
        "conekg.model.cone.Cone.fly",
        "conekg.nowhere",
        "tests/model/test_cone.py::test_nothing",
        "tests/nowhere.py::test_nothing",
        "results/nothing.json",
        "table:nothing",
    ],
)
def test_the_check_sees_what_does_not_exist(name):
    assert not exists(name)


def rows():
    """The cells of every row of the page's tables."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_experiment_and_every_table_is_on_the_map():
    commands = {row[1]: row for row in rows() if "conekg reproduce" in row[1]}
    assert set(commands) == {f"`conekg reproduce {name}`" for name in EXPERIMENTS}
    covered = set(re.findall(r"`(\S+)`", " ".join(row[0] for row in commands.values())))
    assert {*labels(), *FIGURE_PLACES} <= covered
    for name, experiment in EXPERIMENTS.items():
        if name in ("main-epfo", "main-negation"):
            continue  # their error bars have a row of their own
        for label in experiment.paper:
            assert f"`{label}`" in commands[f"`conekg reproduce {name}`"][0], place_of(label)


def test_our_numbers_are_those_of_the_results():
    found = 0
    for row in rows():
        match = re.search(r"^([\d.]+) \(`(results/\S+\.json)`\)$", row[-1])
        if match is None:
            continue
        structures = NEGATION_STRUCTURES if "main-negation" in row[1] else POSITIVE_STRUCTURES
        measured = json.loads((ROOT / match[2]).read_text())["structures"]
        mean = sum(measured[name]["mrr"] for name in structures) / len(structures)
        assert match[1] == f"{100 * mean:.1f}"
        found += 1
    assert found == 2
