"""The public names: all exist and are imported when first used. Also the version and archive."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import conekg


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_importing_loads_nothing_heavy() -> None:
    heavy = "torch numpy numba pyarrow rich typer"
    code = f"import sys, conekg; print([m for m in {heavy.split()!r} if m in sys.modules])"
    assert run_python(code) == "[]"


def test_exact_answers_never_load_torch() -> None:
    code = (
        "import sys, conekg\n"
        "graph = conekg.load('geography')\n"
        "query = conekg.parse_query('France.capital', graph.vocabulary)\n"
        "found = conekg.answer(graph.adjacency('test'), query)\n"
        "print([graph.vocabulary.entities.name(i) for i in found], 'torch' in sys.modules)"
    )
    assert run_python(code) == "['Paris'] False"


@pytest.mark.parametrize("name", conekg.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(conekg, name) is not None
    assert name in dir(conekg)


def test_dir_lists_only_the_public_names() -> None:
    shown = {name for name in dir(conekg) if not name.startswith("_")}
    assert shown == set(conekg.__all__) - {"__version__"}


def test_the_version_is_that_of_the_installed_package() -> None:
    assert conekg.__version__ == metadata.version("conekg")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'solve'"):
        conekg.solve  # noqa: B018


def test_patterns_of_the_source_archive_name_files_of_the_root() -> None:
    """A pattern without a leading slash matches in every folder, so it may add other files."""
    root = Path(__file__).parents[1]
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert "/LICENSE" in included
    for pattern in included:
        assert pattern.startswith("/")
        assert (root / pattern[1:]).exists()
