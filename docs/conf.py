"""How Sphinx builds the pages of this folder; nothing is fetched from the network."""

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

# Pages are plain Markdown that also reads well on a code host: no directives but the list of
# pages on the first page and the API reference; headings can be linked to as there.
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

smartquotes_action = "q"  # quotes alone: two hyphens begin an option

html_theme = "furo"
html_title = f"conekg {VERSION}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]


def escape_signs(
    app: Any, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Let |x| and * in docstrings be mathematics, not markup, outside of code."""
    for number, line in enumerate(lines):
        parts = line.split("`")
        parts[::2] = [part.replace("|", r"\|").replace("*", r"\*") for part in parts[::2]]
        lines[number] = "`".join(parts)


def setup(app: Any) -> None:
    """Hook into autodoc."""
    app.connect("autodoc-process-docstring", escape_signs)
