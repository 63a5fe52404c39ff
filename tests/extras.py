"""Packages that some test modules need and that not every machine has, such as one with a GPU.

Without them the module is skipped, visibly, with the extra that installs them. In CI everything is
installed, so there a missing package is an error.
"""

from __future__ import annotations

import os
from importlib import import_module

import pytest

EXTRA_OF = {
    "fastapi": "serve",
    "uvicorn": "serve",
    "fastapi_offline": "serve",
    "rdflib": "rdf",
    "pyoxigraph": "rdf",
    "matplotlib": "plot",
    "httpx": "dev",
    "playwright": "dev",
    "schemathesis": "dev",
    "countryinfo": "",
}
"""By package, the extra of `pyproject.toml` that installs it; empty for one that all need."""


def need(*packages: str) -> None:
    """Skip the test or module that calls this if a package is missing; in CI, raise an error."""
    __tracebackhide__ = True  # the reason is shown with the place of the caller
    for package in packages:
        if os.environ.get("CI") == "true":
            import_module(package)
        extra = f"[{EXTRA_OF[package]}]" if EXTRA_OF[package] else ""
        pytest.importorskip(
            package,
            reason=f"needs {package}, which `pip install 'conekg{extra}'` installs",
        )
