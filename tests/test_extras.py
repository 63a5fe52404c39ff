"""Test modules that need an extra are skipped without it, never in CI, and stop no collection."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from extras import EXTRA_OF, need

TESTS = Path(__file__).parent
COLLECT = """
import sys
sys.modules.update(dict.fromkeys({hidden!r}))  # importing one of them fails
import pytest
sys.exit(pytest.main(["-m", "gpu", "--collect-only", "-q", "-p", "no:cacheprovider", {tests!r}]))
"""


def packages_by_extra() -> dict[str, list[str]]:
    """The names of the packages of every extra, and of the core under an empty name."""
    content = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    listed = {"": content["project"]["dependencies"]}
    listed |= content["project"]["optional-dependencies"]
    return {
        extra: [re.split(r"[\[>=]", each)[0].replace("-", "_") for each in packages]
        for extra, packages in listed.items()
    }


def test_a_package_is_of_the_extra_that_the_reason_names() -> None:
    packages = packages_by_extra()
    for package, extra in EXTRA_OF.items():
        assert package in packages[extra]


def test_a_missing_package_skips_but_not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    need("httpx", "fastapi")
    monkeypatch.setitem(sys.modules, "rdflib", None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception) as skipped:
        need("fastapi", "rdflib")
    assert str(skipped.value) == "needs rdflib, which `pip install 'conekg[rdf]'` installs"
    monkeypatch.setenv("CI", "true")
    with pytest.raises(ModuleNotFoundError):
        need("fastapi", "rdflib")


@pytest.mark.slow
def test_gpu_tests_are_collected_where_extras_and_plugins_are_missing() -> None:
    """As on a machine with a GPU that has torch, pytest and hypothesis, and no servers."""
    packages = packages_by_extra()
    present = {"conekg", "pytest", "hypothesis", "scipy", "triton"}
    hidden = {name for extra in ("serve", "rdf", "dev") for name in packages[extra]}
    hidden |= {"pydantic", "starlette", "httptools", "xdist", "countryinfo", "matplotlib"}
    code = COLLECT.format(hidden=sorted(hidden - present), tests=str(TESTS))
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TESTS.parent,
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "tests/training/test_loop.py::" in done.stdout
    reasons = re.findall(r"^SKIPPED .* (tests/\S+):\d+: needs (\w+), which", done.stdout, re.M)
    assert ("tests/serving/test_http.py", "fastapi") in reasons
    assert ("tests/query/test_iri.py", "rdflib") in reasons
