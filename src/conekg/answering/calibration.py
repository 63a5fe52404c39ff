"""From scores to probabilities, and from region sizes to numbers of answers.

Both maps are monotone curves fitted on validation queries by isotonic regression: a
higher score never means a lower probability, a larger region never fewer answers. Answers
that the facts give are counted, so sizes only have to tell how many are missing from them.
The same score means one thing at the end of a link and another at the end of a long path, so
a shape has curves of its own where these clearly do better than those of all shapes; others
have the curves of all. What does better, and how far off it is, is measured on the half of the
queries that the measured curve has not seen, each half in its turn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conekg.answering.batch import embed_queries
from conekg.answering.facts import facts_of
from conekg.answering.index import EntityIndex, merge_rankings
from conekg.errors import QueryError, StoreError, UnsupportedOperatorError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.model.interface import QueryModel, Region
from conekg.model.support import is_supported
from conekg.query.plan import branches_of
from conekg.query.rewrite import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.shape import Shape, grounded, outline, shape_of
from conekg.query.tree import has_negation
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.symbolic.engine import answer_batch
from conekg.training.checkpoint import write_atomically
from conekg.training.run import Run, Which

FloatArray = NDArray[np.float64]

FILE_NAME = "calibration.json"
FORMAT_VERSION = 2
_BINS = 15
_BATCH = 64


@dataclass(frozen=True)
class Curve:
    """A rising function, linear between its knots and constant beyond them."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, values: FloatArray | Sequence[float]) -> FloatArray:
        """The function at each value."""
        return np.interp(values, self.x, self.y)


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
    """Of the shapes that have one of their own, by the outlines of their regions."""
    count_of: Mapping[str, CountCurve] = field(default_factory=dict)
    """Of the regions that have one of their own, by their outlines."""
    kept_of: Mapping[str, float] = field(default_factory=dict)
    """The same share as `known_kept` for each shape with a negation."""
    weights: str | None = None
    """The weights it was fitted for, by name; None: not recorded."""

    def scores(self, regions: tuple[str, ...]) -> ScoreCurve:
        """What the scores of queries that are ranked by such regions mean."""
        return self.predicted_of.get(_joined(regions), self.predicted)

    def sizes(self, region: str) -> CountCurve | None:
        """What the sizes of such regions mean."""
        return self.count_of.get(region, self.count)

    def kept(self, regions: tuple[str, ...]) -> float:
        """How likely a known answer of such queries stays one.

        Those are meant that more facts can undo, as they can undo a negation.
        """
        return self.kept_of.get(_joined(regions), self.known_kept)


@lru_cache(maxsize=1024)
def outlines(shape: Shape, union: UnionForm, cap: int) -> tuple[str, ...]:
    """How the regions are made that queries of a shape are ranked by, in the order of the regions.

    The order of operands is left out: it changes no score.
    """
    return tuple(outline(shape_of(branch)) for branch in branches_of(shape, union, cap))


def fit_calibration(
    model: QueryModel,
    graph: KnowledgeGraph,
    queries: QuerySet,
    *,
    depth: int = 20,
    max_queries: int = 200,
    seed: int = 0,
) -> Calibration:
    """The calibration of a model by queries of a held-out split.

    From every query come its `depth` best entities that the smaller graph neither gives nor
    rules out, each true or false on the larger one; at most `max_queries` of a shape are used.
    """
    generator = np.random.default_rng(seed)
    index = EntityIndex(model)
    samples = [
        _examine(model, index, graph, queries, _some(block, max_queries, generator), depth)
        for block in queries
        if len(block) and is_supported(model, block.shape)
    ]
    if not samples:
        raise QueryError(
            f"none of the {len(queries):,} {queries.split} queries can calibrate {model.name!r}",
            hint="hold more facts out, or sample validation queries of shapes that the model "
            "supports",
        )
    predicted, predicted_of, error = _fit_scores(samples, generator)
    count, count_of = _fit_counts(samples, generator)
    return Calibration(
        predicted=predicted,
        count=count,
        error=error,
        known_kept=_share_kept(samples),
        num_queries=sum(sample.num_queries for sample in samples),
        predicted_of=predicted_of,
        count_of=count_of,
        kept_of={key: _share_kept(some) for key, some in _by_regions(samples).items()},
    )


def fit_curve(x: FloatArray, y: FloatArray) -> Curve:
    """The rising curve nearest to the points in least squares; one point at least."""
    if len(x) == 0:
        return Curve((0.0,), (0.0,))
    order = np.argsort(x, kind="stable")
    means, weights = pool_adjacent_violators(y[order])
    ends = np.cumsum(weights)
    starts = ends - weights
    centers = np.add.reduceat(x[order], starts) / weights
    return Curve(tuple(centers.tolist()), tuple(means.tolist()))


def pool_adjacent_violators(values: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    """(means, sizes) of the blocks of the isotonic regression of a sequence.

    Neighbouring blocks whose means do not rise are merged until all rise.
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = value, 1
        while means and means[-1] >= mean:
            size += sizes[-1]
            mean += (means.pop() - mean) * sizes.pop() / size
        means.append(mean)
        sizes.append(size)
    return np.array(means), np.array(sizes, dtype=np.int64)


def expected_calibration_error(probabilities: FloatArray, hits: FloatArray) -> float:
    """The mean gap between probability and frequency over 15 bins, weighted by their sizes."""
    if len(hits) == 0:
        return math.nan
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(bins, probabilities - hits, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(hits))


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write the calibration as JSON."""
    content = {"format": FORMAT_VERSION, **asdict(calibration)}
    write_atomically(path, json.dumps(content, indent=2).encode())


def load_calibration(path: Path) -> Calibration:
    """The calibration of a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content["format"]
        if found == 1:  # one curve for the scores of all shapes
            names = ("curve", "relative", "error")
            parts = (content["predicted"], content["relative"], content["error"])
            content |= {"predicted": dict(zip(names, parts, strict=True))}
            # Its counts were of all answers, not of the missing ones.
            content |= {"predicted_of": {}, "count": None, "count_of": {}, "kept_of": {}}
        elif found != FORMAT_VERSION:
            raise StoreError(
                f"calibration format {found}; this version reads {FORMAT_VERSION}",
                path=str(path),
                hint="fit it again with `conekg calibrate`",
            )
        count = content["count"]
        return Calibration(
            predicted=_score_curve(content["predicted"]),
            count=None if count is None else _count_curve(count),
            error=float(content["error"]),
            known_kept=float(content["known_kept"]),
            num_queries=int(content["num_queries"]),
            predicted_of={k: _score_curve(own) for k, own in content["predicted_of"].items()},
            count_of={k: _count_curve(own) for k, own in content["count_of"].items()},
            kept_of={k: float(share) for k, share in content["kept_of"].items()},
            weights=content.get("weights"),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise StoreError(
            f"not a readable calibration: {error}",
            path=str(path),
            hint="fit it again with `conekg calibrate`, or delete the file to ask without "
            "probabilities",
        ) from error


def calibration_of(run: Run, which: Which = "best") -> Calibration | None:
    """The calibration that a run's checkpoint has; None where there is none, or of other weights.

    What does not say which weights it is of was fitted at the end of `fit`, for the best.
    """
    path = run.folder / FILE_NAME
    if not path.exists():
        return None
    calibration = load_calibration(path)
    wanted = run.weights_name(which)
    return calibration if (calibration.weights or run.weights_name("best")) == wanted else None


def _joined(regions: tuple[str, ...]) -> str:
    return " | ".join(sorted(regions))


def _score_curve(content: dict[str, Any]) -> ScoreCurve:
    return ScoreCurve(_curve(content["curve"]), bool(content["relative"]), float(content["error"]))


def _count_curve(content: dict[str, Any]) -> CountCurve:
    return CountCurve(_curve(content["log_missing"]), float(content["factor"]))


def _curve(content: dict[str, Any]) -> Curve:
    x, y = (tuple(float(value) for value in content[key]) for key in ("x", "y"))
    if len(x) != len(y) or not x or list(x) != sorted(x) or list(y) != sorted(y):
        raise ValueError("a curve needs rising knots")
    return Curve(x, y)


@dataclass(frozen=True)
class _Sample:
    """What the queries of one shape tell."""

    regions: tuple[str, ...]
    """The outlines of what the queries are ranked by."""
    num_queries: int
    scores: FloatArray
    backgrounds: FloatArray
    """What an arbitrary entity scores in the region that each score comes from."""
    hits: FloatArray
    owners: NDArray[np.int64]
    """Which of the queries each score belongs to."""
    known: int
    kept: int
    sizes: FloatArray
    """Of each query with a single branch; empty where the model has no size."""
    missing: FloatArray
    """How many answers the smaller graph does not give to those queries."""


def _examine(
    model: QueryModel,
    index: EntityIndex,
    graph: KnowledgeGraph,
    queries: QuerySet,
    block: QueryBlock,
    depth: int,
) -> _Sample:
    truth = answer_batch(
        graph.adjacency(queries.split), block.shape, block.anchors, block.relations
    )
    not_predicted = _not_predicted(graph, queries.split, block)
    scores: list[FloatArray] = []
    backgrounds: list[FloatArray] = []
    hits: list[FloatArray] = []
    sizes: list[FloatArray] = []
    for start in range(0, len(block), _BATCH):
        places = range(start, min(len(block), start + _BATCH))
        embedded = embed_queries(model, [block.query(place) for place in places])
        rows = [row for branches in embedded.rows for row in branches]
        given = [
            not_predicted[place] for place, b in zip(places, embedded.rows, strict=True) for _ in b
        ]
        rankings = index.top(
            tuple(part[rows] for part in embedded.region), [depth] * len(rows), given
        )
        usual = index.background(tuple(part[rows] for part in embedded.region))
        taken = 0
        for place, branches in zip(places, embedded.rows, strict=True):
            ranking, origin = merge_rankings(rankings[taken : taken + len(branches)], depth)
            backgrounds.append(usual[taken + origin])
            taken += len(branches)
            scores.append(ranking.scores)
            hits.append(np.isin(ranking.entity_ids, truth[place]).astype(float))
        if all(len(branches) == 1 for branches in embedded.rows):
            sizes.append(region_sizes(model, tuple(part[rows] for part in embedded.region)))
    known, kept = block.easy.lengths, block.easy.lengths
    if negation := has_negation(block.shape.template):
        kept = np.array([np.isin(block.easy[i], truth[i]).sum() for i in range(len(block))])
    found = np.concatenate(sizes) if sizes else np.empty(0)
    return _Sample(
        regions=outlines(block.shape, "dnf", DEFAULT_BRANCH_CAP),
        num_queries=len(block),
        scores=np.concatenate(scores),
        backgrounds=np.concatenate(backgrounds),
        hits=np.concatenate(hits),
        owners=np.repeat(np.arange(len(block)), [len(part) for part in scores]),
        known=int(known.sum()) if negation else 0,
        kept=int(kept.sum()) if negation else 0,
        sizes=found,
        missing=(truth.lengths - kept).astype(float) if len(found) else np.empty(0),
    )


def _not_predicted(graph: KnowledgeGraph, split: Split, block: QueryBlock) -> list[IntArray]:
    """For each query what the smaller graph gives, and what it rules out: neither is a guess."""
    easy = [block.easy[place] for place in range(len(block))]
    if not has_negation(block.shape.template):
        return easy
    smaller = SPLITS[SPLITS.index(split) - 1]
    asked = [(grounded(block.query(place)), smaller) for place in range(len(block))]
    return [
        np.union1d(given, facts.contradicted).astype(np.int32)
        for given, facts in zip(easy, facts_of(graph, asked), strict=True)
    ]


def region_sizes(model: QueryModel, region: Region) -> FloatArray:
    """[rows] the model's measure of how many entities each region holds; empty if it has none."""
    try:
        return model.size(region).double().cpu().numpy()
    except UnsupportedOperatorError:
        return np.empty(0)


def _by_regions(samples: Sequence[_Sample]) -> dict[str, list[_Sample]]:
    """The samples that tell of known answers to be lost, by the outlines of their regions."""
    found: dict[str, list[_Sample]] = {}
    for sample in samples:
        if sample.known:
            found.setdefault(_joined(sample.regions), []).append(sample)
    return found


def _share_kept(samples: Sequence[_Sample]) -> float:
    """What is left of the known answers of some samples; all of none."""
    return (sum(s.kept for s in samples) + 1) / (sum(s.known for s in samples) + 1)


def _fit_scores(
    samples: Sequence[_Sample], generator: np.random.Generator
) -> tuple[ScoreCurve, dict[str, ScoreCurve], float]:
    """The curve of all shapes, the curves that shapes have of their own, and their mean error."""
    cases = _Cases.of(samples, generator)
    relative = cases.predict_better_above_background()
    by_all = foreseen(cases.scores(relative), cases.hits, cases.half)
    own: dict[str, ScoreCurve] = {}
    general_errors, errors = [], []
    for key in dict.fromkeys(cases.keys.tolist()):
        of_key = cases.keys == key
        some = _Cases(*(column[of_key] for column in cases))
        general_errors.append(expected_calibration_error(by_all[of_key], some.hits))
        own_relative = some.predict_better_above_background()
        by_own = foreseen(some.scores(own_relative), some.hits, some.half)
        if is_clearly_less(surprise(by_own, some.hits), surprise(by_all[of_key], some.hits)):
            curve = fit_curve(some.scores(own_relative), some.hits)
            error = expected_calibration_error(by_own, some.hits)
            own[key] = ScoreCurve(curve, own_relative, error)
        errors.append(own[key].error if key in own else general_errors[-1])
    curve = fit_curve(cases.scores(relative), cases.hits)
    return ScoreCurve(curve, relative, mean_error(general_errors)), own, mean_error(errors)


class _Cases(NamedTuple):
    """Ranked entities with their scores, true or false, in two halves by their queries."""

    keys: NDArray[np.str_]
    """The outlines of the regions they are ranked by."""
    absolute: FloatArray
    above: FloatArray
    """The same scores above what an arbitrary entity scores."""
    hits: FloatArray
    half: NDArray[np.bool_]

    @classmethod
    def of(cls, samples: Sequence[_Sample], generator: np.random.Generator) -> _Cases:
        """All cases of the samples."""
        parts = [
            cls(
                np.repeat(_joined(sample.regions), len(sample.scores)),
                sample.scores,
                sample.scores - sample.backgrounds,
                sample.hits,
                _coins(sample.num_queries, generator)[sample.owners],
            )
            for sample in samples
        ]
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def scores(self, relative: bool) -> FloatArray:
        """Above the background or as they are."""
        return self.above if relative else self.absolute

    def predict_better_above_background(self) -> bool:
        """Scores as they are win ties."""
        above, absolute = (
            surprise(foreseen(scores, self.hits, self.half), self.hits).sum()
            for scores in (self.above, self.absolute)
        )
        return bool(above < absolute)


def _fit_counts(
    samples: Sequence[_Sample], generator: np.random.Generator
) -> tuple[CountCurve | None, dict[str, CountCurve]]:
    """The curve of all regions, None where sizes tell nothing, and the curves of their own."""
    keys = np.repeat([_joined(s.regions) for s in samples], [len(s.sizes) for s in samples])
    sizes = np.concatenate([sample.sizes for sample in samples])
    logs = np.log1p(np.concatenate([sample.missing for sample in samples]))
    half = np.concatenate([_coins(len(sample.sizes), generator) for sample in samples])
    general = fit_count(sizes, logs, half)
    gaps = np.abs(foreseen(sizes, logs, half) - logs)
    own: dict[str, CountCurve] = {}
    for key in dict.fromkeys(keys.tolist()):
        of_key = keys == key
        own_gaps = np.abs(foreseen(sizes[of_key], logs[of_key], half[of_key]) - logs[of_key])
        if general is None or is_clearly_less(own_gaps, gaps[of_key]):
            curve = fit_curve(sizes[of_key], logs[of_key])
            own[key] = CountCurve(curve, math.exp(float(np.median(own_gaps))))
    return general, own


def fit_count(sizes: FloatArray, logs: FloatArray, half: NDArray[np.bool_]) -> CountCurve | None:
    """From the sizes of regions to how many answers are missing; None where they tell nothing."""
    if len(sizes) < 2:
        return None
    gap = float(np.median(np.abs(foreseen(sizes, logs, half) - logs)))
    # Sizes need not mean anything: what always says the same must not be as good a guess.
    constant = np.where(half, np.median(logs[~half]), np.median(logs[half]))
    if gap >= float(np.median(np.abs(constant - logs))):
        return None
    return CountCurve(fit_curve(sizes, logs), math.exp(gap))


def _coins(number: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Which of so many are in one half, in an order drawn."""
    heads: NDArray[np.bool_] = generator.permutation(number) % 2 == 0
    return heads


def foreseen(x: FloatArray, y: FloatArray, half: NDArray[np.bool_]) -> FloatArray:
    """[n] what the curve of each half says of the other."""
    found = np.empty(len(x))
    for seen in (half, ~half):
        found[~seen] = fit_curve(x[seen], y[seen])(x[~seen])
    return found


def surprise(probabilities: FloatArray, hits: FloatArray) -> FloatArray:
    """[n] in nats, at what was found true or false."""
    likely = np.clip(probabilities, 1e-4, 1 - 1e-4)
    return -np.where(hits > 0, np.log(likely), np.log1p(-likely))


def is_clearly_less(values: FloatArray, others: FloatArray) -> bool:
    """Whether values are less than others in the mean, by more than the standard error of that."""
    if len(values) < 2:
        return False
    less = others - values
    return bool(less.mean() > less.std(ddof=1) / math.sqrt(len(less)))


def mean_error(errors: Sequence[float]) -> float:
    """The mean of the errors that are known; not a number where none is."""
    known = [error for error in errors if not math.isnan(error)]
    return sum(known) / len(known) if known else math.nan


def _some(block: QueryBlock, most: int, generator: np.random.Generator) -> QueryBlock:
    if len(block) <= most:
        return block
    return block.take(np.sort(generator.choice(len(block), size=most, replace=False)))
