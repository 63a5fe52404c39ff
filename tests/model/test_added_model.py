"""The example model of docs/researchers.md passes the tests of the catalog's models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from book import blocks_of

TESTS = Path(__file__).parents[1]
RECIPES = TESTS.parent / "docs" / "researchers.md"
CONTRACT_FILES = ("test_contract", "test_catalog", "test_measure", "test_scoring", "test_support")


@pytest.mark.slow
def test_the_documented_model_keeps_the_contract(tmp_path: Path) -> None:
    """Added as the page says: one file, one line in the catalog, small sizes for the tests."""
    (code,) = (b.body for b in blocks_of(RECIPES) if "class Disc(QueryModel)" in b.body)
    (tmp_path / "disc.py").write_text(code, "utf-8")
    (tmp_path / "with_disc.py").write_text(
        "from conekg.model.catalog import MODELS, ModelEntry\n"
        "from disc import Disc, DiscConfig\n"
        "import small_models\n"
        "MODELS['disc'] = ModelEntry(Disc, DiscConfig, 'discs; no negation')\n"
        "small_models.SMALL_OPTIONS['disc'] = {'dim': 5}\n"
        "small_models.VARIANTS['disc'] = ('disc', {})\n",
        "utf-8",
    )
    files = [f"{TESTS}/model/{name}.py" for name in CONTRACT_FILES]
    paths = [str(tmp_path), str(TESTS), *filter(None, sys.path)]
    plugin = ("-p", "with_disc")
    chosen = ("-k", "disc or every_model or expected or negation_needs")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, *plugin, *chosen],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert int(re.findall(r"(\d+) passed", found.stdout)[0]) > 20
