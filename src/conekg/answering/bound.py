"""A lower bound of every entity's distance from a cone, from six bits per dimension.

The circle of each dimension is cut into 64 cells that hold about equally many entities.
A dimension's part of the distance, d_out + λ d_in (ConE, Section 4.3), rises with the angle
between entity and axis, so its least value over a cell is at the cell's end nearer to the
axis, or zero if the axis lies inside the cell. These 64 values, in steps of 1/255 of the
largest possible value and rounded down, form a table of bytes. Adding up, over all dimensions,
the table entries of an entity's cells gives a lower bound of its distance. A search that has k
distances can leave out every entity whose bound exceeds the largest of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conekg.model.kernels.lookup import (
    CELLS,
    GROUP,
    ByteArray,
    SumArray,
    has_wide_lookup,
    place_of,
    sum_lookups,
    sum_lookups_plainly,
)
from conekg.model.kernels.processor import (
    FloatArray,
    compiled,
    empty_on_cache_lines,
    prefer_wide_vectors,
)
from conekg.model.kernels.scoring import in_ranges

_SAMPLE = 2_048
"""Entities from which the cell edges of a dimension are chosen."""
_LEAST_STEP = 1e-30
"""Keeps the step above zero, so that sums can be divided by it."""
_ZERO = np.float32(0)
_RELATIVE_ERROR = 1e-5
_ERROR_PER_DIMENSION = 2e-6
"""Generous limits for the rounding error of single-precision distances and bounds."""


@dataclass(frozen=True)
class LowerBounds:
    """Lower bounds of distances as whole numbers of steps.

    A distance may be below its bound by rounding errors; `largest_sum` allows for them.
    """

    sums: SumArray
    """[rows, num_entities or more]"""
    steps: FloatArray
    """[rows] the distance that one step stands for."""


class CellTable:
    """For every entity and dimension, which of the 64 cells its angle lies in.

    `angles` [num_entities, dim] are in [-π, π]. `wide=False` uses the plain loop, which gives
    the same sums on any processor.
    """

    def __init__(self, angles: FloatArray, *, wide: bool | None = None) -> None:
        self._kernel = sum_lookups
        if not (has_wide_lookup() if wide is None else wide):
            self._kernel = sum_lookups_plainly
        edges = cell_edges(angles)
        self._sines, self._cosines = np.sin(edges * 0.5), np.cos(edges * 0.5)
        groups = -(-len(angles) // GROUP)
        self._codes: ByteArray = empty_on_cache_lines((groups, angles.shape[1], GROUP), np.uint8)
        self._codes[:] = 0
        places = np.array([place_of(entity)[1] for entity in range(GROUP)])
        _write_cells(angles, edges, places, self._codes)

    def lower_bounds(self, region: FloatArray, weight: float, threads: int = 1) -> LowerBounds:
        """The bounds of all entities' distances from cones packed by `scoring.pack_cones`."""
        rows, groups, dim = len(region), *self._codes.shape[:2]
        tables: ByteArray = empty_on_cache_lines((rows, dim, CELLS), np.uint8)
        # The largest part of a distance is that of an opposite angle: |cos h/2| + λ |sin h/2|.
        largest = np.float32(weight) * (region[:, 4] + region[:, 5]).max(axis=1)
        steps = np.maximum(largest / np.float32(255), np.float32(_LEAST_STEP))
        _fill_tables(region, np.float32(weight), self._sines, self._cosines, steps, tables)
        sums: SumArray = empty_on_cache_lines((rows, groups * GROUP), np.uint32)
        sums[:] = 0
        in_ranges(self._kernel, groups, threads, self._codes, tables, sums, step=1)
        return LowerBounds(sums, steps)


def cell_edges(angles: FloatArray) -> FloatArray:
    """[dim, 65] the edges of each dimension's cells, which hold about equally many entities."""
    sample = angles[:: -(-len(angles) // _SAMPLE)]
    ordered = np.sort(np.ascontiguousarray(sample.T), axis=1)
    places = np.linspace(0, len(sample) - 1, CELLS + 1).round().astype(np.int64)
    edges = np.ascontiguousarray(ordered[:, places])
    edges[:, 0], edges[:, -1] = angles.min(axis=0), angles.max(axis=0)
    return edges


@compiled
def largest_sum(distance: float, step: float, dim: int) -> float:
    """The largest sum of steps possible at a distance of at most `distance`, rounding included."""
    return (distance * (1 + _RELATIVE_ERROR) + dim * _ERROR_PER_DIMENSION) / step


@compiled
def _write_cells(
    angles: FloatArray, edges: FloatArray, places: NDArray[np.int64], codes: ByteArray
) -> None:
    """Fill `codes` [groups, dim, 512] with the cell of each angle, found by binary search."""
    for entity in range(angles.shape[0]):
        group, place = entity // GROUP, places[entity % GROUP]
        for j in range(angles.shape[1]):
            cell, half = 0, CELLS // 2
            while half > 0:
                if angles[entity, j] >= edges[j, cell + half]:
                    cell += half
                half //= 2
            codes[group, j, place] = cell


@compiled
def _fill_tables(
    region: FloatArray,
    weight: np.float32,
    edge_sines: FloatArray,
    edge_cosines: FloatArray,
    steps: FloatArray,
    tables: ByteArray,
) -> None:
    """Fill `tables` [rows, dim, 64] with the least distance over each cell, in whole steps."""
    prefer_wide_vectors()
    offset_sines = np.empty(CELLS + 1, dtype=np.float32)  # sin((edge − axis) / 2)
    parts = np.empty(CELLS + 1, dtype=np.float32)
    for row in range(region.shape[0]):
        per_step = np.float32(1) / steps[row]
        for j in range(region.shape[2]):
            sine, cosine = region[row, 5, j], region[row, 4, j] * weight
            axis_sine, axis_cosine = region[row, 0, j], region[row, 1, j]
            if axis_cosine < _ZERO:  # shift an axis outside [-π, π] by a full turn
                axis_sine, axis_cosine = -axis_sine, -axis_cosine
            sines, cosines = edge_sines[j], edge_cosines[j]
            for edge in range(CELLS + 1):
                offset_sines[edge] = sines[edge] * axis_cosine - cosines[edge] * axis_sine
                x = abs(offset_sines[edge])
                y = abs(cosines[edge] * axis_cosine + sines[edge] * axis_sine)
                parts[edge] = max(_ZERO, x * cosine - y * sine) + weight * min(x, sine)
            table = tables[row, j]
            for cell in range(CELLS):
                least = min(parts[cell], parts[cell + 1]) * per_step
                # If the cell's ends lie on both sides of the axis, the axis is inside.
                if offset_sines[cell] <= _ZERO and offset_sines[cell + 1] >= _ZERO:
                    least = _ZERO
                table[cell] = np.uint8(min(least, np.float32(255)))
