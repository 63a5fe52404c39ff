"""Plots of curves and points as plain data.

An experiment puts its plots on its table; `picture` draws them in place of bars.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

Kind = Literal["ours", "paper", "comparison"]
Style = Literal["line", "marked line", "steps", "points"]

_DIGITS = 6
"""Decimals of a coordinate in a file: far more than a picture shows."""


@dataclass(frozen=True)
class Series:
    """A curve, the outline of a histogram, or single points."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: Style = "line"
    kind: Kind = "ours"

    @classmethod
    def of(
        cls, label: str, x: ArrayLike, y: ArrayLike, style: Style = "line", kind: Kind = "ours"
    ) -> Series:
        """The series of points with coordinates from two arrays of the same length."""
        across, up = (tuple(np.asarray(values, np.float64).tolist()) for values in (x, y))
        assert len(across) == len(up), "every point has two coordinates"
        return cls(label, across, up, style, kind)

    def to_json(self) -> dict[str, Any]:
        """The series as plain data."""
        return {
            "label": self.label,
            "kind": self.kind,
            "style": self.style,
            "x": [round(value, _DIGITS) for value in self.x],
            "y": [round(value, _DIGITS) for value in self.y],
        }


@dataclass(frozen=True)
class Plot:
    """One panel of a picture."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    marks: tuple[float, ...] = ()
    """The x coordinates of vertical lines, such as at a threshold."""

    def to_json(self) -> dict[str, Any]:
        """The panel as plain data."""
        return {
            "title": self.title,
            "x": self.x_label,
            "y": self.y_label,
            "log_x": self.log_x,
            "marks": list(self.marks),
            "series": [series.to_json() for series in self.series],
        }
