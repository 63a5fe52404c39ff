"""What a model's scores and the sizes of its regions mean: a run's calibration, and its file.

A higher score never means a lower probability, a larger region never fewer answers. Answers
that the facts give are counted, so sizes only have to tell how many are missing from them.
The same score means one thing at the end of a link and another at the end of a long path, so
shapes can have curves of their own. `calibrate.py` fits them.
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
from conekg.query.plan import branches_of
from conekg.query.rewrite import UnionForm
from conekg.query.shape import Shape, outline, shape_of
from conekg.training.run import Run, Which

FILE_NAMES: dict[Which, str] = {"best": "calibration.json", "last": "calibration-last.json"}
"""What the calibration of a checkpoint is called in the folder of its run."""
FORMAT_VERSION = 2


@dataclass(frozen=True)
class ScoreCurve:
    """How likely an entity that the known graph does not give is an answer, by its score."""

    curve: Curve
    relative: bool
    """Whether the score is taken above what an arbitrary entity scores for the same query;
    fitting chooses what predicts better."""
    error: float
    """Expected calibration error on unseen queries of a shape, 15 bins of equal width."""

    def probability(self, score: float, background: float) -> float:
        """How likely an entity is an answer, where an arbitrary one scores `background`."""
        return float(self.curve([score - background if self.relative else score])[0])


@dataclass(frozen=True)
class CountCurve:
    """How many answers a region of a given size has besides those that the facts give."""

    log_missing: Curve
    """From `model.size` to the natural logarithm of one plus their number."""
    factor: float
    """Of unseen queries, half had one plus that number estimated within this factor."""

    def missing(self, size: float) -> float:
        """How many answers of a region the facts do not give."""
        return float(np.expm1(self.log_missing([size]))[0])


@dataclass(frozen=True)
class Calibration:
    """What validation queries say about the scores of one model."""

    predicted: ScoreCurve
    """Of queries of any shape."""
    count: CountCurve | None
    """Of regions of any shape; None where sizes tell nothing."""
    error: float
    """The mean over the shapes of validation queries of what their curves are off by."""
    known_kept: float
    """The share of known answers that rest on a negation and that more facts left true."""
    num_queries: int
    predicted_of: Mapping[str, ScoreCurve] = field(default_factory=dict)
    """The curves of shapes that have one of their own, by the outlines of their regions."""
    count_of: Mapping[str, CountCurve] = field(default_factory=dict)
    """The curves of regions that have one of their own, by their outlines."""
    kept_of: Mapping[str, float] = field(default_factory=dict)
    """The same share as `known_kept` for each shape with a negation."""
    weights: str | None = None
    """The weights it was fitted for, by name; None: not recorded."""

    def scores(self, regions: tuple[str, ...]) -> ScoreCurve:
        """What the scores of queries that are ranked by such regions mean."""
        return self.predicted_of.get(joined(regions), self.predicted)

    def sizes(self, region: str) -> CountCurve | None:
        """What the sizes of such regions mean."""
        return self.count_of.get(region, self.count)

    def kept(self, regions: tuple[str, ...]) -> float:
        """How likely a known answer of such queries stays one.

        Those are meant that more facts can undo, as they can undo a negation.
        """
        return self.kept_of.get(joined(regions), self.known_kept)


@lru_cache(maxsize=1024)
def outlines(shape: Shape, union: UnionForm, cap: int) -> tuple[str, ...]:
    """The outline of each region that queries of a shape are ranked by, in order.

    An outline says what a region is made of; the order of operands, which changes no score, is left
    out.
    """
    return tuple(outline(shape_of(branch)) for branch in branches_of(shape, union, cap))


def region_sizes(model: QueryModel, region: Region) -> FloatArray:
    """[rows] the model's measure of how many entities each region holds; empty if it has none."""
    try:
        return model.size(region).double().cpu().numpy()
    except UnsupportedOperatorError:
        return np.empty(0)


def joined(regions: tuple[str, ...]) -> str:
    """One key for all queries that are ranked by such regions, in whatever order."""
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
    """The calibration that a run's checkpoint has; None where there is none, or of other weights.

    What does not say which weights it is of was fitted at the end of `fit`, for the best.
    """
    wanted, best = run.weights_name(which), run.weights_name("best")
    for checkpoint in sorted(FILE_NAMES, key=lambda checkpoint: checkpoint != which):
        path = run.folder / FILE_NAMES[checkpoint]
        if not path.exists():
            continue
        # The last weights may be the best as well, and older versions had one file for both.
        with nullcontext() if checkpoint == which else suppress(StoreError):
            calibration = load_calibration(path)
            if (calibration.weights or best) == wanted:
                return calibration
    return None


def _as_second_format(content: dict[str, Any]) -> dict[str, Any]:
    """A file of the first format, with one curve for the scores of all shapes, in the second."""
    predicted = {
        "curve": value_of(content, "predicted", dict),
        "relative": value_of(content, "relative", bool),
        "error": value_of(content, "error", float),
    }
    # Its counts were of all answers, not of the missing ones.
    absent: dict[str, Any] = {"predicted_of": {}, "count": None, "count_of": {}, "kept_of": {}}
    return content | {"predicted": predicted} | absent


def _parsed(content: dict[str, Any]) -> Calibration:
    """The calibration; `ValueError`, `TypeError` or `OverflowError` where it is not one."""
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
