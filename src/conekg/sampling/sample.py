"""Sampling: a query set of a split, by a protocol, with a report of what was rejected.

Attempts are read in order and the first that pass are kept, so that the set depends
on graph, split, protocol and seed alone, not on the number of workers, and a shape's
queries do not depend on which other shapes are sampled with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from conekg.errors import ConfigError
from conekg.graph.adjacency import IntArray, LongArray, build_adjacency
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.query.shape import Shape, encode_shape
from conekg.sampling.answers import easy_and_hard
from conekg.sampling.attempt import (
    ACCEPTED,
    DUPLICATE,
    NO_HARD_ANSWER,
    OVER_CAP,
    REASONS,
    Piece,
    attempts,
)
from conekg.sampling.ground import stream_key
from conekg.sampling.protocol import LINK, SamplingProtocol, is_number_of_things
from conekg.sampling.query_set import QueryBlock, QuerySet, concatenate_blocks

Progress = Callable[[Shape, int, int | None], None]
"""Called with a shape, how many of its queries are found, and how many are wanted."""


@dataclass(frozen=True)
class ShapeReport:
    """What became of the attempts at one shape."""

    shape: Shape
    wanted: int | None
    """Queries asked for; `None` for all there are."""
    found: int
    attempts: int
    rejected: dict[str, int]
    """How many attempts were rejected for each reason; reasons that did not occur are absent."""
    mean_easy: float
    mean_hard: float

    @property
    def shortfall(self) -> int:
        """How many queries could not be found."""
        return 0 if self.wanted is None else self.wanted - self.found


@dataclass(frozen=True)
class SampledSet:
    """A query set and how it came about."""

    query_set: QuerySet
    reports: tuple[ShapeReport, ...]


def sample_query_set(
    graph: KnowledgeGraph,
    split: Split,
    protocol: SamplingProtocol,
    seed: int,
    *,
    shapes: Sequence[Shape] | None = None,
    count: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> SampledSet:
    """A query set of a split; `shapes` and `count` replace those of the protocol.

    A shape that the graph does not hold often enough comes back short, and the report says by
    how much. Raises `ConfigError` where seed or count is no such number, or a shape is there twice.
    """
    if count is not None and not is_number_of_things(count):
        raise ConfigError(
            f"count is {count!r}; it must be a whole number, 1 query a shape or more", key="count"
        )
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed is {seed!r}; it must be a whole number, 0 or more", key="seed")
    seed = int(seed)  # a file of queries has no place for NumPy's
    for shape, times in Counter(shapes or ()).items():
        if times > 1:
            raise ConfigError(f"shape {shape.name} is asked for {times} times", key="shapes")
    resolved = protocol.for_graph(graph)
    sampled = []
    for shape in resolved.shapes(split) if shapes is None else shapes:
        wanted = resolved.count(split, shape) if count is None else count
        arguments = (graph, split, shape, wanted, resolved, seed, workers)
        if shape == LINK:
            sampled.append(_enumerate_links(*arguments))
        else:
            sampled.append(_sample_shape(*arguments, progress))
        if progress is not None:
            progress(shape, sampled[-1][1].found, wanted)
    blocks = tuple(block for block, _ in sampled)
    paths_from = protocol.train_paths_from if split == "train" else None
    query_set = QuerySet(
        split, blocks, graph.fingerprint, protocol.name, seed, paths_from=paths_from
    )
    return SampledSet(query_set, tuple(report for _, report in sampled))


def _sample_shape(
    graph: KnowledgeGraph,
    split: Split,
    shape: Shape,
    wanted: int | None,
    protocol: SamplingProtocol,
    seed: int,
    workers: int | None,
    progress: Progress | None,
) -> tuple[QueryBlock, ShapeReport]:
    assert wanted is not None, "only links can be enumerated"
    collected = _Collected(shape, wanted)
    if not len(graph.edges(split)):  # whatever is drawn, the smaller graph answers it as well
        return collected.result()
    pieces = attempts(
        graph,
        split,
        shape,
        key=stream_key(seed, split, encode_shape(shape)),
        cap=protocol.answer_cap(split, shape),
        tries=protocol.relation_tries,
        distinct=True,
        forwards=protocol.walks_forwards(split, shape),
        workers=workers,
    )
    checked_attempts = checked_found = 0
    for piece in pieces:
        collected.add(piece)
        if progress is not None:
            progress(shape, collected.found, wanted)
        if collected.found == wanted:
            break
        if collected.attempts - checked_attempts >= protocol.patience:
            new = collected.found - checked_found
            if new < protocol.min_yield * (collected.attempts - checked_attempts):
                break
            checked_attempts, checked_found = collected.attempts, collected.found
    return collected.result()


class _Collected:
    """The distinct accepted queries of one shape so far, in the order of their attempts."""

    def __init__(self, shape: Shape, wanted: int) -> None:
        self.shape = shape
        self.wanted = wanted
        self._outcomes: Counter[int] = Counter()
        self._seen: set[bytes] = set()
        self._blocks: list[QueryBlock] = []

    @property
    def found(self) -> int:
        """How many queries there are."""
        return len(self._seen)

    @property
    def attempts(self) -> int:
        """How many attempts it took to find them."""
        return self._outcomes.total()

    def add(self, piece: Piece) -> None:
        """Take a piece, up to the attempt that completes the count."""
        outcomes = piece.outcomes.copy()
        accepted = np.flatnonzero(outcomes == ACCEPTED)
        kept: list[int] = []
        rows = np.hstack([piece.accepted.anchors, piece.accepted.relations])
        for row, attempt in enumerate(accepted.tolist()):
            name = rows[row].tobytes()
            if name in self._seen:
                outcomes[attempt] = DUPLICATE
                continue
            self._seen.add(name)
            kept.append(row)
            if self.found == self.wanted:
                outcomes = outcomes[: attempt + 1]
                break
        self._outcomes.update(dict(enumerate(np.bincount(outcomes).tolist())))
        self._blocks.append(piece.accepted.take(np.array(kept, dtype=np.int64)))

    def result(self) -> tuple[QueryBlock, ShapeReport]:
        """All that was kept, and what became of the rest."""
        block = concatenate_blocks(self.shape, self._blocks)
        return block, _report(block, self.wanted, self.attempts, self._outcomes)


def _report(
    block: QueryBlock, wanted: int | None, attempts: int, outcomes: Counter[int]
) -> ShapeReport:
    return ShapeReport(
        shape=block.shape,
        wanted=wanted,
        found=len(block),
        attempts=attempts,
        rejected={name: outcomes[code] for code, name in REASONS.items() if outcomes[code]},
        mean_easy=block.easy.mean_length,
        mean_hard=block.hard.mean_length,
    )


def _enumerate_links(
    graph: KnowledgeGraph,
    split: Split,
    shape: Shape,
    wanted: int | None,
    protocol: SamplingProtocol,
    seed: int,
    workers: int | None,
) -> tuple[QueryBlock, ShapeReport]:
    """Every (head, relation) of the split's own edges with at most `cap` tails in the split.

    Where fewer are wanted than there are, a seeded choice of them in their order.
    """
    heads, relations, left_out = links_of(graph, split, protocol.answer_cap(split, shape))
    outcomes = Counter({OVER_CAP: left_out})
    anchors, relations = heads[:, None], relations[:, None]
    easy, hard = easy_and_hard(graph, split, shape, anchors, relations, workers=workers)
    block = QueryBlock(shape, anchors, relations, easy, hard)
    has_hard = hard.lengths > 0  # an edge that an earlier split holds already predicts nothing
    outcomes[NO_HARD_ANSWER] = int(np.count_nonzero(~has_hard))
    rows: LongArray = np.flatnonzero(has_hard)
    if wanted is not None and wanted < len(rows):
        generator = np.random.default_rng([seed, len(rows)])
        rows = np.sort(generator.choice(rows, wanted, replace=False))
    block = block.take(rows)
    return block, _report(block, wanted, len(heads) + left_out, outcomes)


def links_of(
    graph: KnowledgeGraph, split: Split, cap: int | None
) -> tuple[IntArray, IntArray, int]:
    """Heads and relations of the split's own links with at most `cap` tails in the split.

    Also how many links had more.
    """
    own = build_adjacency(graph.edges(split), graph.num_entities, graph.num_relations)
    sizes = np.diff(own.pair_offsets)
    within = sizes <= (sizes if cap is None else cap)
    return own.pair_heads[within], own.pair_relations[within], int(np.count_nonzero(~within))
