"""A run's calibration, which turns scores into probabilities and region sizes into counts.

All curves rise: a higher score never means a lower probability, a larger region never fewer
answers. The answers that the facts give can be counted, so sizes are used only to estimate how many
are missing. The same score means different things for a single link and for a long path, so shapes
can have curves of their own. This file also reads and writes calibrations; `calibrate.py` fits
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from conekg.answering.curves import Curve, FloatArray
from conekg.errors import StoreError, UnsupportedOperatorError
from conekg.graph.json_file import read_object, value_of, write_object
from conekg.model.interface import QueryModel, Region
from conekg.query.branches import UnionForm
from conekg.query.plan import branches_of
from conekg.query.shape import Shape, outline, shape_of
from conekg.training.run import Run, Which

FILE_NAMES: dict[Which, str] = {"best": "calibration.json", "last": "calibration-last.json"}
"""The name of the calibration file of each checkpoint, in the run's folder."""
FORMAT_VERSION = 2


@dataclass(frozen=True)
class ScoreCurve:
    """The probability that an entity which the known graph does not give is an answer."""

    curve: Curve
    """From the score to the probability."""
    relative: bool
    """Whether the score is taken minus the mean score of arbitrary entities for the same query;
    fitting chooses what predicts better."""
    error: float
    """Expected calibration error on unseen queries of a shape, 15 bins of equal width."""

    def probability(self, score: float, background: float) -> float:
        """The probability at a score; `background` is the mean score of arbitrary entities."""
        return float(self.curve([score - background if self.relative else score])[0])


@dataclass(frozen=True)
class CountCurve:
    """The number of answers that the facts lack, by the size of a region."""

    log_missing: Curve
    """From `model.size` to the natural logarithm of one plus the number of missing answers."""
    factor: float
    """The median error on unseen queries: for half of them the estimate of one plus the number of
    missing answers was within this factor of the truth."""

    def missing(self, size: float) -> float:
        """The estimated number of missing answers of a region."""
        return float(np.expm1(self.log_missing([size]))[0])


@dataclass(frozen=True)
class Calibration:
    """The meaning of one model's scores and region sizes, fitted on validation queries."""

    predicted: ScoreCurve
    """For shapes without a curve of their own, fitted on queries of all shapes."""
    count: CountCurve | None
    """For regions without a curve of their own; None if sizes predict nothing."""
    error: float
    """The mean over the validation queries' shapes of the calibration error of their curve."""
    known_kept: float
    """Of known answers that a negation can make false, the share that more facts left true."""
    num_queries: int
    """How many validation queries the curves were fitted on."""
    predicted_of: Mapping[str, ScoreCurve] = field(default_factory=dict)
    """The score curves of single shapes, by the joined outlines of their regions."""
    count_of: Mapping[str, CountCurve] = field(default_factory=dict)
    """The count curves of single regions, by their outlines."""
    kept_of: Mapping[str, float] = field(default_factory=dict)
    """`known_kept` of each shape with a negation, by the joined outlines of its regions."""
    weights: str | None = None
    """The name of the weights that it was fitted for; None if not recorded."""

    def scores(self, regions: tuple[str, ...]) -> ScoreCurve:
        """The score curve for queries ranked by regions of these outlines."""
        return self.predicted_of.get(joined(regions), self.predicted)

    def sizes(self, region: str) -> CountCurve | None:
        """The count curve for a region of this outline; None if its size predicts nothing."""
        return self.count_of.get(region, self.count)

    def kept(self, regions: tuple[str, ...]) -> float:
        """The probability that a known answer stays one, if more facts can undo it at all.

        `regions` are the outlines of the regions that the query is ranked by.
        """
        return self.kept_of.get(joined(regions), self.known_kept)


@lru_cache(maxsize=1024)
def outlines(shape: Shape, union: UnionForm, cap: int) -> tuple[str, ...]:
    """The outline of each region that queries of a shape are ranked by, in order.

    An outline is the structure of a union-free branch; branches that differ only in the order of
    operands, which changes no score, have the same outline.
    """
    return tuple(outline(shape_of(branch)) for branch in branches_of(shape, union, cap))


def region_sizes(model: QueryModel, region: Region) -> FloatArray:
    """[rows] the model's size of each region; empty for a model without sizes."""
    try:
        return model.size(region).double().cpu().numpy()
    except UnsupportedOperatorError:
        return np.empty(0)


def joined(regions: tuple[str, ...]) -> str:
    """The outlines as one key, the same in whatever order they come."""
    return " | ".join(sorted(regions))


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write the calibration as JSON."""
    write_object(path, {"format": FORMAT_VERSION, **asdict(calibration)})


def load_calibration(path: Path) -> Calibration:
    """The calibration of a JSON file."""
    try:
        content = read_object(path)
        version = value_of(content, "format", int)
        if version in (1, FORMAT_VERSION):
            return _parsed(content if version == FORMAT_VERSION else _as_second_format(content))
    except OSError as error:  # no sign of damage
        raise StoreError(f"cannot be read: {error.strerror}", path=str(path)) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise StoreError(
            f"not a readable calibration: {error}",
            path=str(path),
            hint="fit it again with `conekg calibrate`, or delete the file to ask without "
            "probabilities",
        ) from error
    raise StoreError(
        f"calibration format {version}; this version reads {FORMAT_VERSION}",
        path=str(path),
        hint="fit it again with `conekg calibrate`",
    )


def calibration_of(run: Run, which: Which = "best") -> Calibration | None:
    """The calibration of a run's checkpoint; None if there is none for its weights.

    A file that does not name its weights was written by `fit`, for the best ones.
    """
    wanted, best = run.weights_name(which), run.weights_name("best")
    for checkpoint in sorted(FILE_NAMES, key=lambda checkpoint: checkpoint != which):
        path = run.folder / FILE_NAMES[checkpoint]
        if not path.exists():
            continue
        # The last weights may also be the best, and older versions had one file for both: so the
        # other checkpoint's file may fit as well. If that one is damaged, it is not used.
        with nullcontext() if checkpoint == which else suppress(StoreError):
            calibration = load_calibration(path)
            if (calibration.weights or best) == wanted:
                return calibration
    return None


def _as_second_format(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file of format 1, which has one score curve for all shapes, as format 2."""
    predicted = {
        "curve": value_of(content, "predicted", dict),
        "relative": value_of(content, "relative", bool),
        "error": value_of(content, "error", float),
    }
    # Format 1 counted all answers, not the missing ones, so its counts cannot be used.
    absent: dict[str, Any] = {"predicted_of": {}, "count": None, "count_of": {}, "kept_of": {}}
    return content | {"predicted": predicted} | absent


def _parsed(content: dict[str, Any]) -> Calibration:
    """The calibration; `ValueError`, `TypeError` or `OverflowError` if the content is not one."""
    has_count = content.get("count", "missing") is not None
    predicted_of = value_of(content, "predicted_of", dict)
    count_of = value_of(content, "count_of", dict)
    kept_of = value_of(content, "kept_of", dict)
    return Calibration(
        predicted=_score_curve(value_of(content, "predicted", dict)),
        count=_count_curve(value_of(content, "count", dict)) if has_count else None,
        error=value_of(content, "error", float),
        known_kept=value_of(content, "known_kept", float),
        num_queries=value_of(content, "num_queries", int),
        predicted_of={k: _score_curve(value_of(predicted_of, k, dict)) for k in predicted_of},
        count_of={k: _count_curve(value_of(count_of, k, dict)) for k in count_of},
        kept_of={k: value_of(kept_of, k, float) for k in kept_of},
        weights=None if content.get("weights") is None else value_of(content, "weights", str),
    )


def _score_curve(content: dict[str, Any]) -> ScoreCurve:
    return ScoreCurve(
        _curve(value_of(content, "curve", dict)),
        value_of(content, "relative", bool),
        value_of(content, "error", float),
    )


def _count_curve(content: dict[str, Any]) -> CountCurve:
    curve = _curve(value_of(content, "log_missing", dict))
    return CountCurve(curve, value_of(content, "factor", float))


def _curve(content: dict[str, Any]) -> Curve:
    x, y = (tuple(float(value) for value in value_of(content, key, list)) for key in ("x", "y"))
    if len(x) != len(y) or not x or list(x) != sorted(x) or list(y) != sorted(y):
        raise ValueError("a curve needs rising knots")
    if not np.isfinite((x, y)).all():
        raise ValueError("a curve has a knot that is no finite number")
    return Curve(x, y)
