"""Endless streams of training queries, by the same definitions as a sampled set.

A stream of one shape reads numbered attempts and keeps those that pass. Its position is the
number of the next attempt: a new stream from that position continues exactly where the old
one stopped. Unlike a set, a stream may give a query more than once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conekg.errors import ConfigError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.shape import Shape, encode_shape
from conekg.sampling.answers import easy_and_hard
from conekg.sampling.attempt import ACCEPTED, attempts
from conekg.sampling.ground import random_state, stream_key
from conekg.sampling.protocol import LINK, SamplingProtocol
from conekg.sampling.query_set import QueryBlock, concatenate_blocks
from conekg.sampling.sample import links_of


class ShapeStream:
    """Training queries of one shape, without end."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        shape: Shape,
        protocol: SamplingProtocol,
        seed: int,
        *,
        position: int = 0,
        workers: int | None = 1,
    ) -> None:
        self.shape = shape
        self.position = position
        """The number of the next attempt; a new stream from this position continues this one."""
        self._graph = graph
        self._protocol = protocol
        self._key = stream_key(seed, "stream", encode_shape(shape))
        self._workers = workers
        if shape == LINK:
            self._links = links_of(graph, "train", protocol.answer_cap("train", shape))

    def take(self, count: int) -> QueryBlock:
        """The next `count` queries with their answers, which are all hard.

        Raises `ConfigError` if `count` is below 1 or the graph holds hardly any such query.
        """
        if count < 1:
            raise ConfigError(
                f"{count} queries of shape {self.shape.name} are asked for; take 1 or more",
                key="count",
            )
        if self.shape == LINK:
            return self._take_links(count)
        blocks: list[QueryBlock] = []
        missing = count
        fruitless = 0
        pieces = attempts(
            self._graph,
            "train",
            self.shape,
            key=self._key,
            cap=self._protocol.answer_cap("train", self.shape),
            tries=self._protocol.relation_tries,
            distinct=False,
            forwards=self._protocol.walks_forwards("train", self.shape),
            first=self.position,
            workers=self._workers,
        )
        for piece in pieces:
            accepted = np.flatnonzero(piece.outcomes == ACCEPTED)[:missing]
            missing -= len(accepted)
            # The attempts after the last query taken are left to the next call.
            used = int(accepted[-1]) + 1 if missing == 0 else len(piece.outcomes)
            self.position += used
            blocks.append(piece.accepted.take(np.arange(len(accepted))))
            if missing == 0:
                return concatenate_blocks(self.shape, blocks)
            fruitless = 0 if len(accepted) else fruitless + used
            if fruitless >= self._protocol.patience:
                break
        raise ConfigError(
            f"no query of shape {self.shape.name} was found in {fruitless:,} attempts; the graph "
            "hardly holds any",
            key="shapes",
        )

    def _take_links(self, count: int) -> QueryBlock:
        """Links drawn uniformly from all links: they are enumerated, not walked."""
        heads, relations, _ = self._links
        if not len(heads):
            raise ConfigError("the training graph has no links to draw from", key="shapes")
        numbers = range(self.position, self.position + count)
        draws = np.array([random_state(self._key, number) for number in numbers], dtype=np.uint64)
        rows = (draws % np.uint64(len(heads))).astype(np.int64)
        self.position += count
        anchors: IntArray = heads[rows, None]
        block_relations: IntArray = relations[rows, None]
        easy, hard = easy_and_hard(
            self._graph, "train", self.shape, anchors, block_relations, workers=1
        )
        return QueryBlock(self.shape, anchors, block_relations, easy, hard)


class QueryStream:
    """Endless batches of training queries, with a fixed number of queries of each shape.

    >>> from conekg.graph.geography import load_geography
    >>> from conekg.query.shape import STRUCTURES
    >>> from conekg.sampling.protocol import PRESETS
    >>> counts = {STRUCTURES["2i"]: 3, STRUCTURES["1p"]: 2}
    >>> stream = QueryStream(load_geography(), counts, PRESETS["small"], seed=0)
    >>> [len(block) for block in next(stream)]
    [3, 2]
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        counts: dict[Shape, int],
        protocol: SamplingProtocol,
        seed: int,
        *,
        positions: Sequence[int] | None = None,
        workers: int | None = 1,
    ) -> None:
        starts = [0] * len(counts) if positions is None else positions
        self._counts = list(counts.values())
        self._streams = [
            ShapeStream(graph, shape, protocol, seed, position=start, workers=workers)
            for shape, start in zip(counts, starts, strict=True)
        ]

    @property
    def positions(self) -> list[int]:
        """The position of each shape's stream; a new stream with these continues this one."""
        return [stream.position for stream in self._streams]

    def __iter__(self) -> QueryStream:
        return self

    def __next__(self) -> tuple[QueryBlock, ...]:
        return tuple(
            stream.take(count) for stream, count in zip(self._streams, self._counts, strict=True)
        )
