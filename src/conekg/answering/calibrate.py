"""Fits a model's calibration on validation queries.

The queries are ranked as questions are: without the parts that known facts leave empty. A shape
gets curves of its own if these clearly predict better than the curves fitted on all shapes;
otherwise it uses the latter. Curves are compared, and their errors measured, by two-fold
cross-validation: each half of the queries is predicted by the curve of the other half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conekg.answering.answer import Question
from conekg.answering.batch import embed_grounded
from conekg.answering.calibration import (
    Calibration,
    CountCurve,
    ScoreCurve,
    joined,
    outlines,
    region_sizes,
)
from conekg.answering.curves import (
    Curve,
    FloatArray,
    expected_calibration_error,
    fit_curve,
    foreseen,
    is_clearly_less,
    mean_error,
    surprise,
)
from conekg.answering.empty_parts import without_empty_parts
from conekg.answering.facts import Facts, facts_of
from conekg.answering.index import EntityIndex
from conekg.answering.named import RankedBy
from conekg.answering.ranking import merge_rankings
from conekg.answering.understand import Understood, shortened, understand
from conekg.errors import ConfigError, QueryError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.model.interface import QueryModel
from conekg.model.support import is_supported
from conekg.query.branches import DEFAULT_BRANCH_CAP
from conekg.query.shape import Shape
from conekg.query.tree import has_negation
from conekg.sampling.answers import smaller_split
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.symbolic.engine import answer_batch

_BATCH = 64
"""Queries that are embedded and searched together."""


def fit_calibration(
    model: QueryModel,
    graph: KnowledgeGraph,
    queries: QuerySet,
    *,
    depth: int = 20,
    max_queries: int = 200,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """The calibration of a model by queries of a held-out split.

    Each query contributes its `depth` best entities that the smaller graph neither gives nor
    rules out; an entity counts as true if it is an answer on the split's graph. At most
    `max_queries` queries of each shape are used, and none that name their answers. `progress` is
    called with the number of queries done and the total, first with 0 done.
    """
    if smaller_split(queries.split) is None:
        raise ConfigError(
            "training queries cannot calibrate: a model has seen all their answers; give "
            "validation queries",
            key="queries",
        )
    generator = np.random.default_rng(seed)
    blocks = [
        _some(block, max_queries, generator)
        for block in queries
        if len(block) and is_supported(model, block.shape)
    ]
    samples: list[_Sample] = []
    done, total = 0, sum(map(len, blocks))
    progress(done, total)
    index = EntityIndex(model)
    for block in blocks:
        for alike in _ranked_alike(model, graph, queries.split, block):
            samples.append(_examine(model, index, graph, queries.split, alike, depth))
        done += len(block)
        progress(done, total)
    if not samples:
        raise QueryError(
            f"none of the {len(queries):,} {queries.split} queries can calibrate {model.name!r}"
            if len(queries)
            else f"there are no {queries.split} queries to calibrate {model.name!r} on",
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


@dataclass(frozen=True)
class _Sample:
    """What the queries of one shape contribute to the curves."""

    regions: tuple[str, ...]
    """The outlines of the regions that the queries are ranked by."""
    num_queries: int
    scores: FloatArray
    """[entities] of the best entities of all queries, one query after the other."""
    backgrounds: FloatArray
    """[entities] the mean score of arbitrary entities in the region that each score is from."""
    hits: FloatArray
    """[entities] 1 if the entity is an answer on the split's graph, else 0."""
    owners: NDArray[np.int64]
    """[entities] the place of the query that each score belongs to."""
    known: int
    """Answers on the smaller graph that further facts can make false; 0 without a negation."""
    kept: int
    """How many of those are still answers on the split's graph."""
    sizes: FloatArray
    """[queries] the size of each region; empty for unions and for models without a size."""
    missing: FloatArray
    """[queries] how many answers the smaller graph lacks; empty if `sizes` is."""


class _Alike(NamedTuple):
    """Queries of one shape that are also ranked by queries of one shape."""

    block: QueryBlock
    asked: list[Understood]
    """Each query of the block as it is answered with the smaller graph's facts."""


def _ranked_alike(
    model: QueryModel, graph: KnowledgeGraph, split: Split, block: QueryBlock
) -> list[_Alike]:
    """The queries of a block that can calibrate, by the shape that they are ranked by.

    That of most is the block's own, but a query may have parts that known facts leave empty. Those
    that name their answers are left out: a sampled query has an answer that the smaller graph
    lacks, so the entity it names always is one, and that says nothing of its score.
    """
    smaller = smaller_split(split)
    assert smaller is not None, "fit_calibration refuses training queries"
    queries = [block.query(place) for place in range(len(block))]
    asked = [
        understand(Question(query, known_graph=smaller), graph, model, DEFAULT_BRANCH_CAP)
        for query in queries
    ]
    left = without_empty_parts(graph, [(item.grounded, smaller) for item in asked])
    places_of: dict[Shape, list[int]] = {}
    for place, query in enumerate(left):
        asked[place] = shortened(asked[place], query, model, DEFAULT_BRANCH_CAP)
        form = asked[place].ranked_by
        if all(limit.among is None for limit in form.limits):
            places_of.setdefault(form.grounded.shape, []).append(place)
    return [
        _Alike(block.take(np.array(places)), [asked[place] for place in places])
        for places in places_of.values()
    ]


def _examine(
    model: QueryModel,
    index: EntityIndex,
    graph: KnowledgeGraph,
    split: Split,
    alike: _Alike,
    depth: int,
) -> _Sample:
    """The sample of some queries: their best entities, and the counts of their answers."""
    block, asked = alike
    truth = answer_batch(graph.adjacency(split), block.shape, block.anchors, block.relations)
    smaller = _facts(graph, alike)
    scores: list[FloatArray] = []
    backgrounds: list[FloatArray] = []
    hits: list[FloatArray] = []
    sizes: list[FloatArray] = []
    for start in range(0, len(block), _BATCH):
        places = range(start, min(len(block), start + _BATCH))
        forms = [asked[place].ranked_by for place in places]
        # `some` puts the rows in the order of the queries, as `sizes` needs.
        embedded = embed_grounded(model, [form.grounded for form in forms]).some(0, len(forms))
        skip = [
            ids
            for place, form in zip(places, forms, strict=True)
            for ids in _not_predicted(smaller[place], form, graph.num_entities)
        ]
        rankings = index.top(embedded.region, [depth] * len(skip), skip)
        row_backgrounds = index.background(embedded.region)
        for place, rows in zip(places, embedded.rows, strict=True):
            ranking, origin = merge_rankings([rankings[row] for row in rows], depth)
            backgrounds.append(row_backgrounds[np.array(rows)[origin]])
            scores.append(ranking.scores)
            hits.append(np.isin(ranking.entity_ids, truth[place]).astype(float))
        if all(len(rows) == 1 for rows in embedded.rows):
            sizes.append(region_sizes(model, embedded.region))
    kept = np.array(
        [np.isin(facts.known, truth[place]).sum() for place, facts in enumerate(smaller)]
    )
    in_doubt = [np.setdiff1d(facts.known, facts.certain, assume_unique=True) for facts in smaller]
    found = np.concatenate(sizes) if sizes else np.empty(0)
    return _Sample(
        regions=outlines(asked[0].ranked_by.grounded.shape, "dnf", DEFAULT_BRANCH_CAP),
        num_queries=len(block),
        scores=np.concatenate(scores),
        backgrounds=np.concatenate(backgrounds),
        hits=np.concatenate(hits),
        owners=np.repeat(np.arange(len(block)), [len(part) for part in scores]),
        known=sum(map(len, in_doubt)),
        kept=sum(int(np.isin(ids, truth[place]).sum()) for place, ids in enumerate(in_doubt)),
        sizes=found,
        missing=(truth.lengths - kept).astype(float) if len(found) else np.empty(0),
    )


def _not_predicted(facts: Facts, form: RankedBy, num_entities: int) -> list[IntArray]:
    """For each branch of a query the sorted ids that it does not predict: facts settle them."""
    given = np.union1d(facts.known, facts.contradicted).astype(np.int32)
    if not (barred := form.barred(num_entities)):
        return [given] * len(outlines(form.grounded.shape, "dnf", DEFAULT_BRANCH_CAP))
    return [np.union1d(given, ids).astype(np.int32) for ids in barred]


def _facts(graph: KnowledgeGraph, alike: _Alike) -> list[Facts]:
    """What the smaller graph says about the answers of each query."""
    block, asked = alike
    if not has_negation(block.shape.template):  # nothing is ruled out, and nothing can be lost
        nothing = np.empty(0, dtype=np.int32)
        easy = [block.easy[place] for place in range(len(block))]
        return [Facts(known, nothing, known) for known in easy]
    return facts_of(graph, [(item.grounded, item.question.known_graph) for item in asked])


def _some(block: QueryBlock, most: int, generator: np.random.Generator) -> QueryBlock:
    """At most `most` queries of the block, drawn at random, in their order."""
    if len(block) <= most:
        return block
    return block.take(np.sort(generator.choice(len(block), size=most, replace=False)))


def _fit_scores(
    samples: Sequence[_Sample], generator: np.random.Generator
) -> tuple[ScoreCurve, dict[str, ScoreCurve], float]:
    """The curve of all shapes, the curves of single shapes, and the mean error over the shapes.

    A shape's error is that of the curve which its probabilities are read from.
    """
    cases = _Cases.of(samples, generator)
    relative = cases.predict_better_above_background()
    by_all = foreseen(cases.scores(relative), cases.hits, cases.half)
    own: dict[str, ScoreCurve] = {}
    general_errors, errors = [], []
    for key in dict.fromkeys(cases.keys.tolist()):
        of_key = cases.keys == key
        some = _Cases(*(column[of_key] for column in cases))
        general_errors.append(expected_calibration_error(by_all[of_key], some.hits))
        errors.append(general_errors[-1])
        if not _is_split(some.half):  # of a single query: there is no other to judge its curve on
            continue
        own_relative = some.predict_better_above_background()
        by_own = foreseen(some.scores(own_relative), some.hits, some.half)
        if is_clearly_less(surprise(by_own, some.hits), surprise(by_all[of_key], some.hits)):
            curve = fit_curve(some.scores(own_relative), some.hits)
            errors[-1] = expected_calibration_error(by_own, some.hits)
            own[key] = ScoreCurve(curve, own_relative, errors[-1])
    curve = fit_curve(cases.scores(relative), cases.hits)
    return ScoreCurve(curve, relative, mean_error(general_errors)), own, mean_error(errors)


class _Cases(NamedTuple):
    """Ranked entities with their scores and outcomes, in two halves; each array is [cases]."""

    keys: NDArray[np.str_]
    """The joined outlines of the regions that each entity is ranked by."""
    absolute: FloatArray
    """The scores."""
    above: FloatArray
    """The scores minus the mean score of arbitrary entities in the same region."""
    hits: FloatArray
    """1 if the entity is an answer on the split's graph, else 0."""
    half: NDArray[np.bool_]
    """Which half each entity is in; those of one query are in the same half."""

    @classmethod
    def of(cls, samples: Sequence[_Sample], generator: np.random.Generator) -> _Cases:
        """The cases of all samples, each sample's queries split into halves at random."""
        halves = _halves([sample.num_queries for sample in samples], generator)
        parts = [
            cls(
                np.repeat(joined(sample.regions), len(sample.scores)),
                sample.scores,
                sample.scores - sample.backgrounds,
                sample.hits,
                half[sample.owners],
            )
            for sample, half in zip(samples, halves, strict=True)
        ]
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def scores(self, relative: bool) -> FloatArray:
        """The scores, above the background or as they are."""
        return self.above if relative else self.absolute

    def predict_better_above_background(self) -> bool:
        """Whether scores above the background predict better than plain scores; not on ties."""
        above, absolute = (
            surprise(foreseen(scores, self.hits, self.half), self.hits).sum()
            for scores in (self.above, self.absolute)
        )
        return bool(above < absolute)


def _fit_counts(
    samples: Sequence[_Sample], generator: np.random.Generator
) -> tuple[CountCurve | None, dict[str, CountCurve]]:
    """The curve of all regions, None if sizes predict nothing, and the curves of single shapes."""
    keys = np.repeat([joined(s.regions) for s in samples], [len(s.sizes) for s in samples])
    sizes = np.concatenate([sample.sizes for sample in samples])
    logs = np.log1p(np.concatenate([sample.missing for sample in samples]))
    half = np.concatenate(_halves([len(sample.sizes) for sample in samples], generator))
    general = fit_count(sizes, logs, half)
    gaps = np.abs(foreseen(sizes, logs, half) - logs)
    own: dict[str, CountCurve] = {}
    for key in dict.fromkeys(keys.tolist()):
        of_key = keys == key
        if not _is_split(half[of_key]):
            continue
        curve, own_gaps = _count_of_shape(sizes[of_key], logs[of_key], half[of_key])
        if general is None or is_clearly_less(own_gaps, gaps[of_key]):
            own[key] = CountCurve(curve, math.exp(float(np.median(own_gaps))))
    return general, own


def fit_count(sizes: FloatArray, logs: FloatArray, half: NDArray[np.bool_]) -> CountCurve | None:
    """The curve from region sizes to log1p of missing answers; None if sizes predict nothing.

    `half` splits the regions for cross-validation: a curve must do better than a constant.
    """
    if not _is_split(half):
        return None
    by_size, constant = _count_gaps(sizes, logs, half)
    if np.median(by_size) >= np.median(constant):
        return None
    return CountCurve(fit_curve(sizes, logs), math.exp(float(np.median(by_size))))


def _count_of_shape(
    sizes: FloatArray, logs: FloatArray, half: NDArray[np.bool_]
) -> tuple[Curve, FloatArray]:
    """A curve by size, or a constant if that does as well, and [n] its absolute errors."""
    by_size, constant = _count_gaps(sizes, logs, half)
    if np.median(by_size) < np.median(constant):
        return fit_curve(sizes, logs), by_size
    return Curve((0.0,), (float(np.median(logs)),)), constant


def _count_gaps(
    sizes: FloatArray, logs: FloatArray, half: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """[n] the absolute errors of each half's curve on the other half, and those of its median.

    The median is the baseline: sizes are informative only if the curve does better.
    """
    constant = np.where(half, np.median(logs[~half]), np.median(logs[half]))
    return np.abs(foreseen(sizes, logs, half) - logs), np.abs(constant - logs)


def _by_regions(samples: Sequence[_Sample]) -> dict[str, list[_Sample]]:
    """The samples with answers that a negation can make false, by the outlines of their regions."""
    found: dict[str, list[_Sample]] = {}
    for sample in samples:
        if sample.known:
            found.setdefault(joined(sample.regions), []).append(sample)
    return found


def _share_kept(samples: Sequence[_Sample]) -> float:
    """The share of known answers that stay answers, with one added to both counts; 1 if none."""
    return (sum(s.kept for s in samples) + 1) / (sum(s.known for s in samples) + 1)


def _is_split(half: NDArray[np.bool_]) -> bool:
    """Whether neither half is empty, so that each can be predicted by the other."""
    return bool(half.any() and not half.all())


def _halves(numbers: Sequence[int], generator: np.random.Generator) -> list[NDArray[np.bool_]]:
    """For each number of items, [number] whether each item is in the first of two random halves.

    The first half of an odd number is larger by one. Single items alternate between the halves, as
    otherwise the second half of all could be empty.
    """
    halves = [generator.permutation(number) % 2 == 0 for number in numbers]
    for place, single in enumerate(half for half in halves if len(half) == 1):
        single[:] = place % 2 == 0
    return halves
