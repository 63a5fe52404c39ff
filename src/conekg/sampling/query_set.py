"""Query sets: queries of many shapes with their easy and hard answers.

Queries of one shape form a block of plain integer matrices, which the symbolic
engine, the planner and the device can take as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import Split
from conekg.query.shape import Shape
from conekg.query.tree import Query


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one flat array; each row is sorted."""

    offsets: LongArray
    """[rows + 1]"""
    values: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> IntArray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> LongArray:
        """[rows] how many values each row has."""
        return np.diff(self.offsets)

    @staticmethod
    def from_rows(rows: Sequence[Sequence[int] | IntArray]) -> Ragged:
        """Rows copied into one array."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        values = np.empty(offsets[-1], dtype=np.int32)
        for index, row in enumerate(rows):
            values[offsets[index] : offsets[index + 1]] = row
        return Ragged(offsets, values)

    def take(self, rows: LongArray) -> Ragged:
        """The given rows, in the given order."""
        lengths = self.lengths[rows]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Ragged(offsets, self.values[np.repeat(self.offsets[rows], lengths) + within])


@dataclass(frozen=True)
class QueryBlock:
    """Queries of one shape with their answers.

    In a training set every answer is hard: the smaller graph is empty there.
    """

    shape: Shape
    anchors: IntArray
    """[queries, shape.num_anchors]"""
    relations: IntArray
    """[queries, shape.num_relations]"""
    easy: Ragged
    """All answers on the smaller graph, also those that negation makes false on the larger."""
    hard: Ragged
    """Answers on the larger graph that are not easy."""

    def __len__(self) -> int:
        return len(self.anchors)

    def query(self, row: int) -> Query:
        """One query as a tree."""
        return self.shape.ground(self.anchors[row].tolist(), self.relations[row].tolist())

    def take(self, rows: LongArray) -> QueryBlock:
        """The given queries, in the given order."""
        return QueryBlock(
            self.shape,
            self.anchors[rows],
            self.relations[rows],
            self.easy.take(rows),
            self.hard.take(rows),
        )


@dataclass(frozen=True)
class QuerySet:
    """Blocks of queries, one a shape, all of one split of one graph."""

    split: Split
    blocks: tuple[QueryBlock, ...]

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def __iter__(self) -> Iterator[QueryBlock]:
        return iter(self.blocks)

    def block(self, name: str) -> QueryBlock:
        """The block of the shape called `name`."""
        return next(block for block in self.blocks if block.shape.name == name)
