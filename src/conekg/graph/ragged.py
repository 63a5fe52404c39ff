"""Ragged rows: answer sets of different sizes in one flat array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conekg.graph.adjacency import IntArray, LongArray


def offsets_of(lengths: Sequence[int] | LongArray) -> LongArray:
    """[rows + 1] the start of each row in a flat array of rows of these lengths, and the end."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one flat array; each row is sorted."""

    offsets: LongArray
    """[rows + 1] row r is `values[offsets[r] : offsets[r + 1]]`."""
    values: IntArray
    """[all values] the rows, one after the other."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> IntArray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> LongArray:
        """[rows] how many values each row has."""
        return np.diff(self.offsets)

    @property
    def mean_length(self) -> float:
        """How many values a row has on average; 0 if there are no rows."""
        return len(self.values) / max(len(self), 1)

    @staticmethod
    def empty(rows: int) -> Ragged:
        """`rows` rows without values."""
        return Ragged(np.zeros(rows + 1, dtype=np.int64), np.zeros(0, dtype=np.int32))

    @staticmethod
    def from_rows(rows: Sequence[Sequence[int] | IntArray]) -> Ragged:
        """Rows copied into one array."""
        offsets = offsets_of([len(row) for row in rows])
        values = np.empty(offsets[-1], dtype=np.int32)
        for index, row in enumerate(rows):
            values[offsets[index] : offsets[index + 1]] = row
        return Ragged(offsets, values)

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        """The rows of all parts, in order."""
        lengths = [np.zeros(0, dtype=np.int64), *(part.lengths for part in parts)]
        values = [np.zeros(0, dtype=np.int32), *(part.values for part in parts)]
        return Ragged(offsets_of(np.concatenate(lengths)), np.concatenate(values))

    def span(self, start: int, stop: int) -> Ragged:
        """The rows from `start` up to, but not including, `stop`; their values are a view."""
        offsets = self.offsets[start : stop + 1]
        return Ragged(offsets - offsets[0], self.values[offsets[0] : offsets[-1]])

    def take(self, rows: LongArray) -> Ragged:
        """The given rows, in the given order."""
        lengths = self.lengths[rows]
        offsets = offsets_of(lengths)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Ragged(offsets, self.values[np.repeat(self.offsets[rows], lengths) + within])
