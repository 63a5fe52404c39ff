"""Sampling: a query set of a split, by a protocol, with a report of the rejected attempts.

Attempts are read in order and the first that pass are kept. The set therefore depends only
on graph, split, protocol and seed, not on the number of workers, and the queries of a shape
do not depend on the other shapes that are sampled.
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
"""Called with a shape, how many of its queries were found, and how many are wanted."""


@dataclass(frozen=True)
class ShapeReport:
    """The outcomes of the attempts at one shape."""

    shape: Shape
    wanted: int | None
    """How many queries were asked for; None for all that exist."""
    found: int
    attempts: int
    rejected: dict[str, int]
    """How many attempts were rejected for each reason that occurred."""
    mean_easy: float
    mean_hard: float

    @property
    def shortfall(self) -> int:
        """How many queries could not be found."""
        return 0 if self.wanted is None else self.wanted - self.found


@dataclass(frozen=True)
class SampledSet:
    """A query set and the report of each of its shapes."""

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
    """Sample a query set of a split; `shapes` and `count` replace those of the protocol.

    A shape of which the graph holds too few queries gets fewer, and its report says how many are
    missing. Raises `ConfigError` if seed or count is not a valid number or a shape occurs twice.
    """
    if count is not None and not is_number_of_things(count):
        raise ConfigError(
            f"count is {count!r}; it must be a whole number, 1 query per shape or more", key="count"
        )
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed is {seed!r}; it must be a whole number, 0 or more", key="seed")
    seed = int(seed)  # JSON, in which a file of queries stores it, has no NumPy integers
    for shape, times in Counter(shapes or ()).items():
        if times > 1:
            raise ConfigError(
                f"shape {shape.name} is asked for {times} times; name each shape once", key="shapes"
            )
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
    if not len(graph.edges(split)):  # the larger graph adds nothing, so there is no hard answer
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
    """Collects the distinct accepted queries of one shape, in the order of their attempts."""

    def __init__(self, shape: Shape, wanted: int) -> None:
        self.shape = shape
        self.wanted = wanted
        self._outcomes: Counter[int] = Counter()
        self._seen: set[bytes] = set()
        self._blocks: list[QueryBlock] = []

    @property
    def found(self) -> int:
        """How many queries were kept so far."""
        return len(self._seen)

    @property
    def attempts(self) -> int:
        """How many attempts were counted so far."""
        return self._outcomes.total()

    def add(self, piece: Piece) -> None:
        """Add a piece; attempts after the one that completes the count are not counted."""
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
        """The queries that were kept, and the report."""
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
    """A query for every (head, relation) of the split's own edges within the protocol's cap.

    If fewer are wanted, a random choice of them by the seed, in the same order.
    """
    heads, relations, left_out = links_of(graph, split, protocol.answer_cap(split, shape))
    outcomes = Counter({OVER_CAP: left_out})
    anchors, relations = heads[:, None], relations[:, None]
    easy, hard = easy_and_hard(graph, split, shape, anchors, relations, workers=workers)
    block = QueryBlock(shape, anchors, relations, easy, hard)
    has_hard = hard.lengths > 0  # an edge that an earlier split has, too, gives no hard answer
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
    """(heads, relations, number left out) of a split's own links.

    A link is a pair of head and relation. Links with more than `cap` tails in the split are left
    out.
    """
    own = build_adjacency(graph.edges(split), graph.num_entities, graph.num_relations)
    sizes = np.diff(own.pair_offsets)
    within = sizes <= (sizes if cap is None else cap)
    return own.pair_heads[within], own.pair_relations[within], int(np.count_nonzero(~within))
