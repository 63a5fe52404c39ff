"""The import rules: a folder imports only from folders to its left and from the root modules."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "conekg"
LAYERS = (
    "graph",
    "query",
    "symbolic",
    "sampling",
    "model",
    "training",
    "evaluation",
    "answering",
    "serving",
    "experiments",
    "cli",
)
ROOTS = ("lines", "errors", "version")
"""Modules beside the folders, which every folder may import; they import from no folder."""
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def imports(tree: ast.AST) -> list[str]:
    """Dotted names of everything a module imports, also inside functions."""
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                found += [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                prefix = "." * level + (module or "")
                found += [f"{prefix}.{alias.name}" for alias in names]
    return found


def violations(layer: str, source: str) -> list[str]:
    """The imports in `source` that are forbidden for a module of the folder `layer`."""
    allowed = [[name] for name in (*LAYERS[: LAYERS.index(layer) + 1], *ROOTS)]
    wrong = []
    for name in imports(ast.parse(source)):
        if name.startswith("."):
            wrong.append(f"{name} is relative")
        elif name.split(".")[0] == "conekg" and name.split(".", 2)[1:2] not in allowed:
            wrong.append(name)
    return wrong


def test_every_folder_is_a_layer() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_left(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0]
    assert violations(layer, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("root", ROOTS)
def test_roots_import_only_roots_to_their_left(root: str) -> None:
    tree = ast.parse((PACKAGE / f"{root}.py").read_text(encoding="utf-8"))
    ours = [name for name in imports(tree) if name.split(".")[0] in ("conekg", "")]
    allowed = ROOTS[: ROOTS.index(root)]
    assert [name for name in ours if name.split(".")[1] not in allowed] == []


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("graph", "from conekg.query.tree import Anchor"),
        ("query", "def late():\n    import conekg.symbolic.engine"),
        ("model", "from conekg import load"),
        ("model", "import conekg"),
        ("sampling", "from ..graph import store"),
    ],
)
def test_forbidden_imports_are_found(layer: str, source: str) -> None:
    assert violations(layer, source) != []


def test_allowed_imports_pass() -> None:
    source = "from conekg.graph.store import load_graph\nfrom conekg.errors import DataError\n"
    assert violations("query", source + "import numpy.typing\n") == []


@pytest.mark.parametrize("layer", ["graph", "query", "symbolic", "sampling"])
def test_layers_before_the_models_never_load_torch(layer: str) -> None:
    names = [
        f"conekg.{layer}.{path.stem}"
        for path in sorted((PACKAGE / layer).glob("*.py"))
        if path.stem != "__init__"
    ]
    assert names
    code = "import importlib, sys\n"
    code += f"for name in {names!r}: importlib.import_module(name)\n"
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_line_loads_no_heavy_library_at_the_start() -> None:
    code = "import sys\nimport conekg.cli.main\n"
    code += "sys.exit(bool({'torch', 'numba', 'rdflib', 'fastapi'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WITH_THE_CORE_ALONE = """
import sys
sys.modules.update(dict.fromkeys({hidden!r}))  # importing one of them fails
sys.path.insert(0, {tests!r})
import conekg
from conekg.cli.main import app
from tiny import FEW, SETTINGS, tiny_graph
from typer.testing import CliRunner

conekg.fit(tiny_graph(), "run", settings=SETTINGS, protocol=FEW, device="cpu")
explained = conekg.explain("run", "*.knows & !*.lives_in", candidates=1)
assert explained.witnesses
open("facts.nt", "w").write("<http://x/a> <http://x/r> <http://x/b> .")
for command in {commands!r}:
    result = CliRunner().invoke(app, command)
    print(result.exit_code, *result.output.split())
"""


@pytest.mark.slow
def test_a_model_is_trained_and_asked_with_the_core_alone(tmp_path: Path) -> None:
    """Without the packages of any extra, and without Triton, which is for GPUs.

    What needs an extra says so, and how to install it.
    """
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    names = [
        re.split(r"[\[>=]", each)[0] for extra in extras if extra != "dev" for each in extras[extra]
    ]
    hidden = [name.replace("-", "_") for name in (*names, "triton")]
    needed = {
        (
            "serve",
            "run",
        ): "serving needs fastapi, which is not installed pip install 'conekg[serve]'",
        ("explain-query", "run", "SELECT ?x { ?x :knows ?y }"): (
            "reading SPARQL needs rdflib, which is not installed pip install 'conekg[rdf]'"
        ),
        ("graph", "build", "facts.nt", "--out", "graph"): (
            "reading RDF needs pyoxigraph, which is not installed pip install 'conekg[rdf]'"
        ),
        ("reproduce", "figures", "--out", "figures"): (
            "pictures need matplotlib, which is not installed: pip install 'conekg[plot]'"
        ),
    }
    code = WITH_THE_CORE_ALONE.format(
        hidden=hidden, tests=str(Path(__file__).parent), commands=[*needed]
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"2 error: {told}" for told in needed.values()]
