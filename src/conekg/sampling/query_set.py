"""Query sets: queries of many shapes with their easy and hard answers.

Queries of one shape form a block of plain integer matrices, which the symbolic
engine, the planner and the device can take as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import Split
from conekg.graph.ragged import Ragged
from conekg.query.shape import Shape
from conekg.query.tree import Query


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
