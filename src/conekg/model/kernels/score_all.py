"""Distances from regions to every entity on a GPU.

The tables are transposed, so that one dimension of many entities is one contiguous
read. Sines and cosines are taken once per table, never in the inner loop.
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

    def distances(self, first: Tensor, second: Tensor, center_weight: float) -> Tensor:
        """[rows, num_entities] from regions of components [rows, dim] to every entity."""
        rows = len(first)
        out = torch.empty(rows, self.num_entities, device=first.device)
        if rows == 0:
            return out
        # The fastest of seven tiles tried on an H200 for many rows. A tile of few real rows takes
        # as long as a full one, so eight rows or fewer have lower ones.
        block_rows, block_entities = (8 if rows <= 8 else 32), 128
        tiles = triton.cdiv(rows, block_rows) * triton.cdiv(self.num_entities, block_entities)
        _distance_kernel[(tiles,)](
            self.u,
            self.v,
            self._prepare(first, second),
            out,
            rows,
            self.num_entities,
            self.dim,
            center_weight,
            GEOMETRY=self.geometry,
            BLOCK_ROWS=block_rows,
            BLOCK_ENTITIES=block_entities,
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
def _distance_kernel(
    u_ptr,
    v_ptr,
    region_ptr,
    out_ptr,
    num_rows,
    num_entities,
    dim,
    center_weight,
    GEOMETRY: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_ENTITIES: tl.constexpr,
):
    # Tiles of the same entities are consecutive. All lie along the first axis of the grid, as the
    # others hold only 65,535, the number of tiles of eight million entities.
    row_tiles = tl.cdiv(num_rows, BLOCK_ROWS)
    program = tl.program_id(0)
    row = (program % row_tiles) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    entity = (program // row_tiles) * BLOCK_ENTITIES + tl.arange(0, BLOCK_ENTITIES)
    real_row = row < num_rows
    real_entity = entity < num_entities
    total = tl.zeros([BLOCK_ROWS, BLOCK_ENTITIES], dtype=tl.float32)
    plane = dim * num_rows  # the four prepared coordinates lie one after the other
    for _ in range(dim):
        u = tl.load(u_ptr + entity, mask=real_entity, other=0.0)[None, :]
        a = tl.load(region_ptr + row, mask=real_row, other=0.0)[:, None]
        c = tl.load(region_ptr + 2 * plane + row, mask=real_row, other=0.0)[:, None]
        if GEOMETRY == 0:
            v = tl.load(v_ptr + entity, mask=real_entity, other=0.0)[None, :]
            b = tl.load(region_ptr + plane + row, mask=real_row, other=0.0)[:, None]
            d = tl.load(region_ptr + 3 * plane + row, mask=real_row, other=0.0)[:, None]
            total += cone_distance(u, v, a, b, c, d, center_weight)
        else:
            part, _, _ = term(u, a, c, c, center_weight, GEOMETRY)
            total += part
        u_ptr += num_entities
        v_ptr += num_entities
        region_ptr += num_rows
    out = row.to(tl.int64)[:, None] * num_entities + entity[None, :]
    tl.store(out_ptr + out, total, mask=real_row[:, None] & real_entity[None, :])
