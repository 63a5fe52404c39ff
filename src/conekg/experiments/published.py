"""The paper's numbers, read from `published.toml`.

The file has every table by its label in the paper's source. For a graph that is not in the paper,
tables are without rows.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

ANY = "any"
"""The data set of numbers for which the paper names no graph."""

MODEL_TITLES = {
    "gqe": "GQE",
    "box": "Query2Box",
    "beta": "BetaE",
    "emql": "EmQL",
    "cone": "ConE",
}
"""What the paper calls our models, in the order of its tables."""


FIGURE_PLACES = {
    "subfig:cones": "Figure 1b",
    "fig:models": "Figure 2",
    "fig:queries": "Figure 3",
    "fig:intersect": "Figure 4",
}
"""The paper's figures by label."""


def model_title(name: str) -> str:
    """A model's name in tables: the paper's name for it, or for other models their own.

    >>> model_title("box"), model_title("mine")
    ('Query2Box', 'mine')
    """
    return MODEL_TITLES.get(name, name)


@dataclass(frozen=True)
class Published:
    """One table of the paper, for one data set."""

    label: str
    """The table's label in the paper's source."""
    place: str
    """Where it is in the paper, such as `Table 1`."""
    release: str
    """The release of the queries that its numbers are for: `BetaE` or `Query2Box`."""
    unit: str
    columns: tuple[str, ...]
    rows: dict[str, dict[str, float]]
    """Values by row and column; those that the paper prints as a dash are absent."""
    data_sets: tuple[str, ...]
    """The data sets for which the paper has this table."""

    def row(self, name: str) -> dict[str, float]:
        """The row of that name; empty if the paper has none."""
        return self.rows.get(name, {})


def published(label: str, data_set: str | None) -> Published:
    """The paper's table of that label for a data set; without rows if the paper has none.

    >>> published("table:epfo_results", "nell995").row("cone")["AVG"]
    27.2
    """
    table = _tables()[label]
    columns = tuple(table["columns"])
    rows = table.get(data_set, {}) if data_set is not None else {}
    return Published(
        label=label,
        place=table["place"],
        release=table.get("release", "BetaE"),
        unit=table["unit"],
        columns=columns,
        rows={
            name: {
                column: float(value)
                for column, value in zip(columns, values, strict=True)
                if not math.isnan(value)
            }
            for name, values in rows.items()
        },
        data_sets=tuple(name for name, part in table.items() if isinstance(part, dict)),
    )


def place_of(label: str) -> str:
    """Where the paper has the table, figure or number of that label, such as `Table 1`."""
    place: str = FIGURE_PLACES.get(label) or _tables()[label]["place"]
    return place


def labels() -> tuple[str, ...]:
    """The labels of all tables, in the paper's order."""
    return tuple(_tables())


@cache
def _tables() -> dict[str, Any]:
    text = files("conekg.experiments").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
