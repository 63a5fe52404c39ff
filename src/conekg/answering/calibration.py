"""From scores to probabilities, and from region sizes to numbers of answers.

Both maps are monotone curves fitted on validation queries by isotonic regression: a
higher score never means a lower probability, a larger region never fewer answers.
How far off they are is measured on queries that the measured curve has not seen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
from conekg.query.shape import grounded
from conekg.query.tree import has_negation
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.symbolic.engine import answer_batch
from conekg.training.checkpoint import write_atomically
from conekg.training.run import Run, Which

FloatArray = NDArray[np.float64]

FILE_NAME = "calibration.json"
FORMAT_VERSION = 1
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
class CountCurve:
    """How many answers a region of a given size has."""

    log_count: Curve
    """From `model.size` to the natural logarithm of one plus the number of answers."""
    factor: float
    """Half of the held-out estimates were within this factor of the truth."""

    def estimate(self, sizes: FloatArray | Sequence[float], most: int) -> float:
        """The number of answers of a union of regions, each of the given size.

        Branches may overlap, so their sum is an upper estimate; `most` caps it.
        """
        return float(min(most, np.expm1(self.log_count(sizes)).sum()))


@dataclass(frozen=True)
class Calibration:
    """What validation queries say about the scores of one model."""

    predicted: Curve
    """From the score of an entity that the known graph does not give, to its probability."""
    relative: bool
    """Whether that score is taken above what an arbitrary entity scores for the same query;
    fitting chooses what predicts better."""
    error: float
    """Expected calibration error on the held-out half, 15 bins of equal width."""
    known_kept: float
    """The share of known answers that rest on a negation and that more facts left true."""
    count: CountCurve | None
    num_queries: int
    weights: str | None = None
    """The weights it was fitted for, by name; None: not recorded."""

    def probability(self, score: float, background: float, *, known: bool, certain: bool) -> float:
        """How likely an entity is an answer, where an arbitrary one scores `background`.

        A known answer is certain if more facts cannot undo it, as they can undo a negation.
        """
        if known:
            return 1.0 if certain else self.known_kept
        return float(self.predicted([score - background if self.relative else score])[0])

    def expected_count(
        self, estimate: float, *, num_known: int, num_certain: int, num_possible: int
    ) -> float:
        """An estimated number of answers, held to what the facts say.

        At least the known ones, of which those that are not certain may be lost, and at most
        the `num_possible` entities that no fact rules out.
        """
        least = num_certain + (num_known - num_certain) * self.known_kept
        return float(min(max(estimate, least), num_possible))


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
    hits = np.concatenate([sample.hits for sample in samples])
    owners = np.concatenate(
        [sample.owners + shift for sample, shift in zip(samples, _shifts(samples), strict=True)]
    )
    total = sum(sample.num_queries for sample in samples)
    held_out = (generator.permutation(total) % 2 == 0)[owners]
    absolute = np.concatenate([sample.scores for sample in samples])
    above = absolute - np.concatenate([sample.backgrounds for sample in samples])
    # Scores as they are win ties, and so where the held-out half is empty.
    relative = held_out_loss(above, hits, held_out) < held_out_loss(absolute, hits, held_out)
    scores = above if relative else absolute
    kept, known = (sum(getattr(s, name) for s in samples) for name in ("kept", "known"))
    return Calibration(
        predicted=fit_curve(scores, hits),
        relative=bool(relative),
        error=_held_out_error(scores, hits, held_out),
        known_kept=(kept + 1) / (known + 1),
        count=_fit_count(samples, generator),
        num_queries=total,
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
        if content["format"] != FORMAT_VERSION:
            raise StoreError(
                f"calibration format {content['format']}; this version reads {FORMAT_VERSION}",
                path=str(path),
                hint="fit it again with `conekg calibrate`",
            )
        count = content["count"]
        return Calibration(
            predicted=_curve(content["predicted"]),
            relative=bool(content["relative"]),
            error=float(content["error"]),
            known_kept=float(content["known_kept"]),
            count=None
            if count is None
            else CountCurve(_curve(count["log_count"]), float(count["factor"])),
            num_queries=int(content["num_queries"]),
            weights=content.get("weights"),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
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


def _curve(content: dict[str, Any]) -> Curve:
    x, y = (tuple(float(value) for value in content[key]) for key in ("x", "y"))
    if len(x) != len(y) or not x or list(x) != sorted(x) or list(y) != sorted(y):
        raise ValueError("a curve needs rising knots")
    return Curve(x, y)


@dataclass(frozen=True)
class _Sample:
    """What the queries of one shape tell."""

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
    answers: FloatArray
    """How many answers those queries have."""


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
    negation = has_negation(block.shape.template)
    known = int(block.easy.lengths.sum()) if negation else 0
    kept = sum(int(np.isin(block.easy[i], truth[i]).sum()) for i in range(len(block)) if negation)
    found = np.concatenate(sizes) if sizes else np.empty(0)
    return _Sample(
        num_queries=len(block),
        scores=np.concatenate(scores),
        backgrounds=np.concatenate(backgrounds),
        hits=np.concatenate(hits),
        owners=np.repeat(np.arange(len(block)), [len(part) for part in scores]),
        known=known,
        kept=kept,
        sizes=found,
        answers=truth.lengths.astype(float) if len(found) else np.empty(0),
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


def _fit_count(samples: Sequence[_Sample], generator: np.random.Generator) -> CountCurve | None:
    sizes = np.concatenate([sample.sizes for sample in samples])
    return fit_count(sizes, np.concatenate([sample.answers for sample in samples]), generator)


def fit_count(
    sizes: FloatArray, answers: FloatArray, generator: np.random.Generator
) -> CountCurve | None:
    """From the sizes of regions to their numbers of answers; None where sizes tell nothing."""
    if len(sizes) < 2:
        return None
    logs = np.log1p(answers)
    held_out = generator.permutation(len(sizes)) % 2 == 0
    half = fit_curve(sizes[~held_out], logs[~held_out])
    gap = float(np.median(np.abs(half(sizes[held_out]) - logs[held_out])))
    # Sizes need not mean anything: what always says the same must not be as good a guess.
    constant = np.median(logs[~held_out])
    if gap >= float(np.median(np.abs(constant - logs[held_out]))):
        return None
    return CountCurve(fit_curve(sizes, logs), math.exp(gap))


def _held_out_error(scores: FloatArray, hits: FloatArray, held_out: NDArray[np.bool_]) -> float:
    half = fit_curve(scores[~held_out], hits[~held_out])
    return expected_calibration_error(half(scores[held_out]), hits[held_out])


def held_out_loss(scores: FloatArray, hits: FloatArray, held_out: NDArray[np.bool_]) -> float:
    """The mean surprise, in nats, at the held-out half under a curve of the other half."""
    if not held_out.any():
        return math.inf
    half = fit_curve(scores[~held_out], hits[~held_out])
    likely = np.clip(half(scores[held_out]), 1e-4, 1 - 1e-4)
    return float(-np.where(hits[held_out] > 0, np.log(likely), np.log1p(-likely)).mean())


def _shifts(samples: Sequence[_Sample]) -> list[int]:
    """Where the queries of each sample start when all are numbered in one row."""
    ends = np.cumsum([0, *(sample.num_queries for sample in samples)])
    return [int(end) for end in ends[:-1]]


def _some(block: QueryBlock, most: int, generator: np.random.Generator) -> QueryBlock:
    if len(block) <= most:
        return block
    return block.take(np.sort(generator.choice(len(block), size=most, replace=False)))
