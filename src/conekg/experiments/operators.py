"""Section 5.4 and Appendix C.6: how well the learned operators approximate those of sets.

The paper says neither how its pairs of cones are drawn nor how a set in many dimensions is
measured. So both are done in several ways here, and every row says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from conekg.experiments.arcs import Arc, length, overlap, overlap_of_three
from conekg.experiments.beside_paper import graph_note, paper_rows
from conekg.experiments.embedded import only_structures
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    check_models,
    common_data_set,
    describe,
    title_of,
)
from conekg.experiments.options import Options
from conekg.experiments.published import published
from conekg.experiments.table import Row, Table
from conekg.graph.adjacency import IntArray
from conekg.model.cone import Cone, wrap
from conekg.model.interface import QueryModel, Region
from conekg.training.run import Run

PAIRS = 8000
"""How many pairs the paper draws."""

_CONES_AT_ONCE = 1 << 20
"""How many cones (one per pair and dimension) are in memory at a time."""

NOTES = (
    "Uniform cones: in every dimension an axis uniform on the circle and an aperture uniform in "
    "[0, 2π], independently. Narrow cones: the same with apertures in [0, π]. Cones of links: "
    "those that the model gives to the two links of random 2i queries (2u queries for the union), "
    "to a random link for the projection.",
    "A ⊂ B: A's aperture is uniform between 0 and B's, its axis uniform where A stays inside B; "
    "the relation is uniform over all, inverses counted.",
    "Total length: |C| is the sum over dimensions of the length of C's arc, and the ratio that of "
    "two such sums. By dimension: the ratio of arc lengths in each dimension, averaged over "
    "dimensions, 1 where both are empty. Overlaps are exact; then the mean over pairs.",
)


@dataclass(frozen=True)
class Overlap:
    """The two lengths, each [pairs, dim], of which a ratio is made."""

    common: Tensor
    whole: Tensor

    def by_total_length(self) -> Tensor:
        """[pairs] the ratio of the lengths summed over dimensions."""
        return _ratio(self.common.sum(dim=-1), self.whole.sum(dim=-1))

    def by_dimension(self) -> Tensor:
        """[pairs] the mean over dimensions of the ratio in each."""
        return _ratio(self.common, self.whole).mean(dim=-1)


def projection_overlap(
    model: QueryModel, inner: Region, outer: Region, relation: Tensor
) -> Overlap:
    """|P(A) ∩ P(B)| and |P(A)| for A ⊂ B; their ratio is 1 if projection keeps the inclusion."""
    first, second = _arc(model.project(inner, relation)), _arc(model.project(outer, relation))
    return Overlap(overlap(first, second), length(first))


def intersection_overlap(model: QueryModel, first: Region, second: Region) -> Overlap:
    """|I ∩ (C ∩ D)| and |I ∪ (C ∩ D)|, where I is the learned intersection of C and D."""
    learned, c, d = _arc(model.intersect(_stack(first, second))), _arc(first), _arc(second)
    common = overlap_of_three(learned, c, d)
    return Overlap(common, length(learned) + overlap(c, d) - common)


def union_overlap(model: QueryModel, first: Region, second: Region) -> Overlap:
    """|M ∩ (A ∪ B)| and |M ∪ (A ∪ B)|, where M = ¬(¬A ∧ ¬B) by the learned operators."""
    negated = model.intersect(_stack(model.negate(first), model.negate(second)))
    learned, a, b = _arc(model.negate(negated)), _arc(first), _arc(second)
    union = length(a) + length(b) - overlap(a, b)
    common = overlap(learned, a) + overlap(learned, b) - overlap_of_three(learned, a, b)
    return Overlap(common, length(learned) + union - common)


def draw_uniform(
    count: int, dim: int, generator: torch.Generator, widest: float = math.pi
) -> Region:
    """`count` random cones: axes uniform, half apertures uniform up to `widest`; on the CPU."""
    axis = math.pi * (2.0 * torch.rand(count, dim, generator=generator) - 1.0)
    return axis, widest * torch.rand(count, dim, generator=generator)


def draw_inside(outer: Region, generator: torch.Generator) -> Region:
    """A random cone inside each of `outer`, in every dimension.

    Its aperture is uniform up to the outer one, its axis uniform where the cone stays inside.
    """
    axis, half = outer
    inner_half = half * torch.rand(half.shape, generator=generator).to(half)
    room = half - inner_half
    shift = 2.0 * torch.rand(half.shape, generator=generator).to(half) - 1.0
    return wrap(axis + shift * room), inner_half


def operators(runs: Sequence[Run], options: Options) -> Tables:
    """The average ratios of the three operators, for every run and way to draw and to measure."""
    data_set = common_data_set(runs)
    check_models(
        runs,
        lambda model: issubclass(model, Cone),
        "has no cones, which this experiment is about",
        "give runs of the model cone",
    )
    paper = published("sec:operators", data_set)
    rows, notes = list[Row](), list(NOTES)
    for run in runs:
        model = run.load_model(options.checkpoint, options.device)
        assert isinstance(model, Cone)
        sources: dict[str, Source] = {
            "uniform cones": UniformSource(model, math.pi),
            "narrow cones": UniformSource(model, math.pi / 2),
        }
        if run.has_queries(options.split):
            links = LinkSource(model, run, options)
            sources["cones of links"] = links
            notes += links.notes(title_of(run), options)
        else:
            notes.append(f"{title_of(run)} has no {options.split} queries, so no cones of links.")
        for source_name, source in sources.items():
            total, mean = dict[str, float](), dict[str, float]()
            for column in paper.columns:
                ratios = average_ratios(model, source, column, options)
                if ratios is None:
                    notes.append(
                        f"{title_of(run)} has no {options.split} queries for the {column}."
                    )
                else:
                    total[column], mean[column] = ratios
            rows.append(Row(f"{title_of(run)}, {source_name}, total length", total))
            rows.append(Row(f"{title_of(run)}, {source_name}, by dimension", mean))
        notes.append(describe(run, options.checkpoint))
    table = Table(
        title="Operators against real set operations, "
        f"{runs[0].graph.name}, {pairs_of(options):,} pairs",
        columns=paper.columns,
        rows=(*rows, *paper_rows(paper)),
        paper=paper.label,
        unit=paper.unit,
        notes=(*dict.fromkeys(notes), *graph_note(paper, runs[0].graph)),
        digits=4,
    )
    return (table,)


def pairs_of(options: Options) -> int:
    """How many pairs are drawn: by default as many as in the paper."""
    return options.pairs or PAIRS


@torch.inference_mode()
def average_ratios(
    model: QueryModel, source: Source, operator: str, options: Options
) -> tuple[float, float] | None:
    """The mean ratios of an operator, by total length and by dimension; None without pairs."""
    generator = torch.Generator().manual_seed(options.seed)
    measure = _MEASURES[operator]
    totals, means = list[Tensor](), list[Tensor]()
    for first, second in source.pairs(operator, pairs_of(options), generator):
        found = measure(model, first, second, generator)
        totals.append(found.by_total_length().cpu())
        means.append(found.by_dimension().cpu())
    if not totals:
        return None
    return float(torch.cat(totals).mean()), float(torch.cat(means).mean())


class UniformSource:
    """Pairs of cones drawn uniformly, with half apertures up to `widest`."""

    def __init__(self, model: Cone, widest: float) -> None:
        self._model, self._widest = model, widest

    def pairs(
        self, operator: str, count: int, generator: torch.Generator
    ) -> Iterator[tuple[Region, Region]]:
        """Pairs in batches; the first inside the second where the operator is a projection."""
        device = self._model.device
        for rows in _batch_sizes(count, self._model.dim):
            second = draw_uniform(rows, self._model.dim, generator, self._widest)
            if operator == "projection":
                first = draw_inside(second, generator)
            else:
                first = draw_uniform(rows, self._model.dim, generator, self._widest)
            yield _to(first, device), _to(second, device)


class LinkSource:
    """Pairs of cones that the model gives to links (one-hop queries) of the run's queries."""

    def __init__(self, model: Cone, run: Run, options: Options) -> None:
        self._model, self._seed = model, options.seed
        blocks = only_structures(run.queries(options.split), ("1p", "2i", "2u"))
        self._blocks = {block.shape.name: block for block in blocks if len(block)}

    def pairs(
        self, operator: str, count: int, generator: torch.Generator
    ) -> Iterator[tuple[Region, Region]]:
        """Pairs in batches; none if the run has no queries of the structure for the operator."""
        block = self._blocks.get(
            {"projection": "1p", "intersection": "2i", "union": "2u"}[operator]
        )
        if block is None:
            return
        random = np.random.default_rng(self._seed)
        rows = random.choice(len(block), count, replace=count > len(block))
        anchors, relations = block.anchors[rows], block.relations[rows]
        start = 0
        for size in _batch_sizes(count, self._model.dim):
            piece = slice(start, start + size)
            start += size
            first = self._links(anchors[piece, 0], relations[piece, 0])
            if operator == "projection":
                yield draw_inside(first, generator), first
            else:
                yield first, self._links(anchors[piece, 1], relations[piece, 1])

    def notes(self, title: str, options: Options) -> list[str]:
        """Notes on which queries the links are from, and whether some are drawn repeatedly."""
        notes = [f"The links are those of {options.split} queries."]
        few = [
            f"{len(block):,} of {name}"
            for name, block in self._blocks.items()
            if len(block) < pairs_of(options)
        ]
        if few:
            counts = ", ".join(few)
            notes.append(f"{title}: links are drawn with repetition, as there are only {counts}.")
        return notes

    def _links(self, heads: IntArray, relations: IntArray) -> Region:
        """The cones of one-hop queries."""
        device = self._model.device
        anchor = self._model.anchor(torch.from_numpy(heads.astype(np.int64)).to(device))
        return self._model.project(anchor, torch.from_numpy(relations.astype(np.int64)).to(device))


Source = UniformSource | LinkSource


def _measure_projection(
    model: QueryModel, inner: Region, outer: Region, generator: torch.Generator
) -> Overlap:
    """The overlap of projections by relations drawn uniformly, inverses included."""
    shape = (inner[0].shape[0],)
    relation = torch.randint(model.num_relations, shape, generator=generator)
    return projection_overlap(model, inner, outer, relation.to(inner[0].device))


_MEASURES: dict[str, Callable[[QueryModel, Region, Region, torch.Generator], Overlap]] = {
    "projection": _measure_projection,
    "intersection": lambda model, first, second, _: intersection_overlap(model, first, second),
    "union": lambda model, first, second, _: union_overlap(model, first, second),
}


def _arc(region: Region) -> Arc:
    """The arcs of a region, in float64, as lengths are differences of near-equal angles."""
    return region[0].double(), region[1].double()


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Elementwise `part / whole`; 1 where the whole is empty."""
    return torch.where(whole > 0, part / whole.clamp_min(1e-300), torch.ones_like(whole))


def _stack(first: Region, second: Region) -> Region:
    return tuple(torch.stack(parts) for parts in zip(first, second, strict=True))


def _to(region: Region, device: torch.device) -> Region:
    return tuple(part.to(device) for part in region)


def _batch_sizes(count: int, dim: int) -> Iterator[int]:
    """The sizes of batches that `count` pairs are drawn in."""
    size = max(1, _CONES_AT_ONCE // dim)
    for start in range(0, count, size):
        yield min(size, count - start)


OPERATORS = Experiment(
    name="operators",
    paper=("sec:operators",),
    summary="learned projection, intersection and De Morgan union against real set operations",
    run=operators,
    options=("split", "checkpoint", "pairs", "seed"),
)
