"""The settings with which Sphinx builds the pages of this folder, without network access."""

from __future__ import annotations

import importlib.util
from typing import Any

from conekg.version import VERSION

project = "conekg"
author = "The conekg authors"
copyright = author
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
nitpicky = False  # annotations name types of numpy and torch, whose own pages are not fetched

# Pages are plain Markdown that also reads well on a code host: the only directives are the list of
# pages on the first page and the API reference. Links to headings use the same anchors as there.
myst_heading_anchors = 3

# Docstrings are written with single backticks for code, as in Markdown.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_mock_imports = [
    name
    for name in ("fastapi", "fastapi_offline", "uvicorn", "pydantic", "rdflib", "pyoxigraph")
    if importlib.util.find_spec(name) is None
]

smartquotes_action = "q"  # only quotes: the two hyphens of an option must not become a dash

html_theme = "furo"
html_title = f"conekg {VERSION}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]


def escape_signs(
    app: Any, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Escape | and * in docstrings outside of code: there they are mathematics, not markup."""
    for number, line in enumerate(lines):
        parts = line.split("`")
        parts[::2] = [part.replace("|", r"\|").replace("*", r"\*") for part in parts[::2]]
        lines[number] = "`".join(parts)


def setup(app: Any) -> None:
    """Register `escape_signs` with autodoc."""
    app.connect("autodoc-process-docstring", escape_signs)
