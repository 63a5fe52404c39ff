"""The version of the package; `pyproject.toml` reads it from here. Imports nothing."""

VERSION = "0.1.0"
