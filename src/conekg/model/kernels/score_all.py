"""Distances from regions to every entity on a GPU.

The tables are transposed, so that one dimension of many entities is one contiguous
read. Sines and cosines are taken once per table, never in the inner loop. A search that
knows a bound on its answers' distances stops adding up a tile when every sum exceeds it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from conekg.model.kernels.geometry import cone_distance, prepare_entity, term


class EntityColumns:
    """The entity table prepared for scoring: [dim, num_entities], coordinates ready for `term`."""

    def __init__(self, entities: Tensor, *, geometry: int, inverse_range: float) -> None:
        self.geometry = geometry
        self.num_entities, self.dim = entities.shape
        self.u = torch.empty(self.dim, self.num_entities, device=entities.device)
        self.v = torch.empty_like(self.u) if geometry == 0 else self.u
        block = 1024
        _prepare_kernel[(self.num_entities, triton.cdiv(self.dim, block))](
            entities.contiguous(),
            self.u,
            self.v,
            inverse_range,
            self.num_entities,
            self.dim,
            GEOMETRY=geometry,
            BLOCK=block,
            enable_fp_fusion=True,
        )

    def distances(
        self, first: Tensor, second: Tensor, center_weight: float, *, dims: int | None = None
    ) -> Tensor:
        """[rows, num_entities] from regions of components [rows, dim] to every entity.

        With `dims`, only the first `dims` dimensions are added up, which gives lower bounds.
        """
        rows = len(first)
        out = torch.empty(rows, self.num_entities, device=first.device)
        if rows == 0:
            return out
        block_rows, block_entities = 32, 128  # the fastest of seven tried on an H200
        tiles = triton.cdiv(rows, block_rows) * triton.cdiv(self.num_entities, block_entities)
        _distance_kernel[(tiles,)](
            self.u,
            self.v,
            self._prepare(first, second),
            out,
            rows,
            self.num_entities,
            self.dim,
            self.dim if dims is None else min(dims, self.dim),
            center_weight,
            GEOMETRY=self.geometry,
            BLOCK_ROWS=block_rows,
            BLOCK_ENTITIES=block_entities,
            num_warps=4,
            enable_fp_fusion=True,
        )
        return out

    def distances_within(
        self, first: Tensor, second: Tensor, center_weight: float, bounds: Tensor
    ) -> Tensor:
        """[rows, num_entities] the same distances where they are at most `bounds` [rows].

        Elsewhere the value may be a partial sum, but one above the bound.
        """
        rows = len(first)
        out = torch.empty(rows, self.num_entities, device=first.device)
        if rows == 0:
            return out
        # Few rows per tile: a tile goes on as long as any of its pairs is within its bound.
        block_rows, block_entities = min(8, triton.next_power_of_2(rows)), 128
        tiles = triton.cdiv(rows, block_rows) * triton.cdiv(self.num_entities, block_entities)
        _bounded_kernel[(tiles,)](
            self.u,
            self.v,
            self._prepare(first, second),
            bounds,
            out,
            rows,
            self.num_entities,
            self.dim,
            center_weight,
            GEOMETRY=self.geometry,
            BLOCK_ROWS=block_rows,
            BLOCK_ENTITIES=block_entities,
            STRIDE=32,
            num_warps=4,
            enable_fp_fusion=True,
        )
        return out

    def _prepare(self, first: Tensor, second: Tensor) -> Tensor:
        """[4, dim, rows] the coordinates of the regions as `term` takes them."""
        if self.geometry != 0:
            parts = [first.t(), first.t(), second.t(), second.t()]
            return torch.stack(parts).contiguous()
        axis, half_aperture = 0.5 * first.t(), 0.5 * second.t()
        parts = [axis.sin(), axis.cos(), half_aperture.sin(), half_aperture.cos()]
        prepared = torch.stack(parts).contiguous()
        prepared[2:].abs_()  # as in `cone.cone_distance`, for half apertures outside [0, π]
        return prepared


@triton.jit
def _prepare_kernel(
    raw_ptr,
    u_ptr,
    v_ptr,
    inverse_range,
    num_entities,
    dim,
    GEOMETRY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real = column < dim
    raw = tl.load(raw_ptr + row * dim + column, mask=real, other=0.0)
    point, _ = prepare_entity(raw, inverse_range, GEOMETRY)
    place = column.to(tl.int64) * num_entities + row
    if GEOMETRY == 0:
        half_angle = 3.141592653589793 * (point + 0.5)
        tl.store(u_ptr + place, tl.sin(half_angle), mask=real)
        tl.store(v_ptr + place, tl.cos(half_angle), mask=real)
    else:
        tl.store(u_ptr + place, point, mask=real)


@triton.jit
def _tile(num_rows, BLOCK_ROWS: tl.constexpr, BLOCK_ENTITIES: tl.constexpr):
    """(rows, entities) of a program's tile; tiles of the same entities are consecutive.

    All programs lie along the first axis of the grid. The other axes hold only 65,535, the number
    of tiles of eight million entities.
    """
    row_tiles = tl.cdiv(num_rows, BLOCK_ROWS)
    program = tl.program_id(0)
    row = (program % row_tiles) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    entity = (program // row_tiles) * BLOCK_ENTITIES + tl.arange(0, BLOCK_ENTITIES)
    return row, entity


@triton.jit
def _term(
    u_ptr,
    v_ptr,
    region_ptr,
    plane,
    row,
    entity,
    real_row,
    real_entity,
    center_weight,
    GEOMETRY: tl.constexpr,
):
    """One dimension's term of a tile's distances; the pointers point at that dimension."""
    u = tl.load(u_ptr + entity, mask=real_entity, other=0.0)[None, :]
    a = tl.load(region_ptr + row, mask=real_row, other=0.0)[:, None]
    c = tl.load(region_ptr + 2 * plane + row, mask=real_row, other=0.0)[:, None]
    if GEOMETRY == 0:
        v = tl.load(v_ptr + entity, mask=real_entity, other=0.0)[None, :]
        b = tl.load(region_ptr + plane + row, mask=real_row, other=0.0)[:, None]
        d = tl.load(region_ptr + 3 * plane + row, mask=real_row, other=0.0)[:, None]
        part = cone_distance(u, v, a, b, c, d, center_weight)
    else:
        part, _, _ = term(u, a, c, c, center_weight, GEOMETRY)
    return part


@triton.jit
def _distance_kernel(
    u_ptr,
    v_ptr,
    region_ptr,
    out_ptr,
    num_rows,
    num_entities,
    dim,
    used_dims,
    center_weight,
    GEOMETRY: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_ENTITIES: tl.constexpr,
):
    row, entity = _tile(num_rows, BLOCK_ROWS, BLOCK_ENTITIES)
    real_row = row < num_rows
    real_entity = entity < num_entities
    total = tl.zeros([BLOCK_ROWS, BLOCK_ENTITIES], dtype=tl.float32)
    plane = dim * num_rows  # the four prepared coordinates lie one after the other
    for _ in range(used_dims):
        total += _term(
            u_ptr,
            v_ptr,
            region_ptr,
            plane,
            row,
            entity,
            real_row,
            real_entity,
            center_weight,
            GEOMETRY,
        )
        u_ptr += num_entities
        v_ptr += num_entities
        region_ptr += num_rows
    out = row.to(tl.int64)[:, None] * num_entities + entity[None, :]
    tl.store(out_ptr + out, total, mask=real_row[:, None] & real_entity[None, :])


@triton.jit
def _bounded_kernel(
    u_ptr,
    v_ptr,
    region_ptr,
    bound_ptr,
    out_ptr,
    num_rows,
    num_entities,
    dim,
    center_weight,
    GEOMETRY: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_ENTITIES: tl.constexpr,
    STRIDE: tl.constexpr,
):
    row, entity = _tile(num_rows, BLOCK_ROWS, BLOCK_ENTITIES)
    real_row = row < num_rows
    real_entity = entity < num_entities
    bound = tl.load(bound_ptr + row, mask=real_row, other=-1.0)[:, None]  # below any distance
    total = tl.zeros([BLOCK_ROWS, BLOCK_ENTITIES], dtype=tl.float32)
    total = tl.where(real_entity[None, :], total, float("inf"))
    plane = dim * num_rows
    done = 0
    open_pairs = 1
    while (done < dim) & (open_pairs > 0):
        for _ in range(tl.minimum(STRIDE, dim - done)):
            total += _term(
                u_ptr,
                v_ptr,
                region_ptr,
                plane,
                row,
                entity,
                real_row,
                real_entity,
                center_weight,
                GEOMETRY,
            )
            u_ptr += num_entities
            v_ptr += num_entities
            region_ptr += num_rows
        done += STRIDE
        # No term is negative: a sum above the bound stays above it.
        open_pairs = tl.sum(tl.sum((total <= bound).to(tl.int32), axis=1), axis=0)
    out = row.to(tl.int64)[:, None] * num_entities + entity[None, :]
    tl.store(out_ptr + out, total, mask=real_row[:, None] & real_entity[None, :])
