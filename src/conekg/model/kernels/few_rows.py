"""Products of few rows with large weights, about as fast as the weights can be read.

A batch of questions has a dozen rows for weights of ten megabytes. Libraries rearrange
the weights in every product, which takes longer than the product; here they are kept in
panels of 32 outputs, read once from start to end, and asked for ahead of their use. For
processors with vectors of 512 bits; `few_rows_linear` leaves layers alone elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from torch import Tensor, nn
from torch.nn.functional import linear

from conekg.model.kernels.tile import LINE, LINE_BYTES, FloatArray, compiled, empty_on_cache_lines

FEWEST_ROWS, MOST_ROWS = 2, 48
"""Between these this is faster than the library, which needs no rearranging for one row."""

_PANEL = 2 * LINE
"""Outputs whose sums stay in registers, two vectors for each row of a tile."""
_LARGE, _SMALL = 12, 4
"""Rows of a tile: 24 sums leave registers for weights; what is left over goes by fours."""
_AHEAD = 8192
"""Bytes of weights between what is used and what is asked for: less came too late, and more
made no difference."""


def has_wide_vectors() -> bool:
    """Whether the processor that functions are compiled for has vectors of 512 bits."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return "+avx512f" in features.split(",")


def few_rows_linear(layer: nn.Linear) -> nn.Module:
    """The layer in a form that is fast for few rows, or itself where there is none."""
    weight = layer.weight
    is_plain = weight.device.type == "cpu" and weight.dtype == torch.float32
    return FewRowsLinear(layer) if is_plain and has_wide_vectors() else layer


class FewRowsLinear(nn.Module):
    """A linear layer whose weights no longer change; gradients take the usual way."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self._panels = pack(layer.weight.detach().numpy())
        outputs = layer.out_features
        self._start = np.zeros(len(self._panels) * _PANEL, dtype=np.float32)
        if layer.bias is not None:
            self._start[:outputs] = layer.bias.detach().numpy()

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., outputs] from inputs [..., inputs]."""
        rows = inputs.shape[:-1].numel()
        needs_gradient = torch.is_grad_enabled() and (
            inputs.requires_grad or self.weight.requires_grad
        )
        is_few = FEWEST_ROWS <= rows <= MOST_ROWS
        if needs_gradient or not is_few or inputs.dtype != torch.float32:
            return linear(inputs, self.weight, self.bias)
        flat = inputs.reshape(rows, inputs.shape[-1]).contiguous()
        product = multiply(flat.numpy(), self._panels, self._start)
        outputs = self.weight.shape[0]
        return torch.from_numpy(product)[:rows, :outputs].reshape(*inputs.shape[:-1], outputs)


def pack(weight: FloatArray) -> FloatArray:
    """Weights [outputs, inputs] as panels [panels, inputs, 32], the last one filled with zeros."""
    outputs, inputs = weight.shape
    count = -(-outputs // _PANEL)
    filled = np.zeros((count * _PANEL, inputs), dtype=np.float32)
    filled[:outputs] = weight
    panels: FloatArray = empty_on_cache_lines((count, inputs, _PANEL), np.float32)
    panels[...] = filled.reshape(count, _PANEL, inputs).transpose(0, 2, 1)
    return panels


@compiled
def multiply(rows: FloatArray, panels: FloatArray, start: FloatArray) -> FloatArray:
    """[rows and some more, 32 · panels] start + rows · weights; what is beyond the rows is noise.

    Of each panel the first tile of rows asks for weights ahead, the others find them near.
    """
    count, inputs = rows.shape
    large = count // _LARGE
    small = (count - large * _LARGE + _SMALL - 1) // _SMALL
    filled = large * _LARGE + small * _SMALL
    width = len(panels) * _PANEL
    out = np.empty((filled, width), dtype=np.float32)
    # Rows of a tile side by side: what one weight meets is one stretch of memory.
    tiles = np.zeros(filled * inputs, dtype=np.float32)
    for row in range(count):
        in_large = row < large * _LARGE
        height = _LARGE if in_large else _SMALL
        within = (row if in_large else row - large * _LARGE) % height
        base = (row - within) * inputs + within
        for i in range(inputs):
            tiles[base + i * height] = rows[row, i]
    for panel in range(len(panels)):
        weights = panels.ctypes.data + panel * inputs * _PANEL * 4
        first_sums = start.ctypes.data + panel * _PANEL * 4
        for tile in range(large):
            values = tiles.ctypes.data + tile * _LARGE * inputs * 4
            target = out.ctypes.data + (tile * _LARGE * width + panel * _PANEL) * 4
            if tile == 0:
                _large_ahead(values, weights, inputs, first_sums, target, width)
            else:
                _large(values, weights, inputs, first_sums, target, width)
        for tile in range(small):
            row = large * _LARGE + tile * _SMALL
            values = tiles.ctypes.data + row * inputs * 4
            target = out.ctypes.data + (row * width + panel * _PANEL) * 4
            if row == 0:
                _small_ahead(values, weights, inputs, first_sums, target, width)
            else:
                _small(values, weights, inputs, first_sums, target, width)
    return out


def _tile_product(rows: int, asks_ahead: bool) -> Any:
    """An intrinsic for `rows` rows against one panel: addresses and sizes in, sums in memory.

    Its arguments: the tile [inputs, rows], the panel [inputs, 32], the number of inputs, the 32
    first sums, where the sums go, and how many floats lie between two rows of these.
    """

    @intrinsic
    def product(
        typing_context: Any,
        values: Any,
        weights: Any,
        inputs: Any,
        first_sums: Any,
        target: Any,
        width: Any,
    ) -> tuple[Any, Any]:
        signature = types.void(*[types.intp] * 6)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _emit_product(builder, rows, asks_ahead, arguments)
            return context.get_dummy_value()

        return signature, generate

    return product


def _emit_product(builder: Any, rows: int, asks_ahead: bool, arguments: Any) -> None:
    number, place, byte = ir.FloatType(), ir.IntType(64), ir.IntType(8)
    flag = ir.IntType(32)
    vector = ir.VectorType(number, LINE)
    fuse = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LINE}f32"
    )
    prefetch = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [byte.as_pointer(), flag, flag, flag]),
        "llvm.prefetch.p0",
    )
    values, weights, inputs, first_sums, target, width = arguments
    values = builder.inttoptr(values, number.as_pointer())
    ahead = builder.inttoptr(
        builder.add(weights, ir.Constant(weights.type, _AHEAD)), byte.as_pointer()
    )
    weights = builder.inttoptr(weights, vector.as_pointer())
    first_sums = builder.inttoptr(first_sums, vector.as_pointer())
    target = builder.inttoptr(target, number.as_pointer())
    unknown = ir.Constant(vector, ir.Undefined)
    everywhere = ir.Constant(ir.VectorType(flag, LINE), [0] * LINE)
    sums = [[cgutils.alloca_once(builder, vector) for _ in range(2)] for _ in range(rows)]
    for half in range(2):
        first = builder.load(builder.gep(first_sums, [place(half)]), align=4)
        for row in range(rows):
            builder.store(first, sums[row][half])
    with cgutils.for_range(builder, inputs) as loop:
        line = builder.mul(loop.index, place(2))
        loaded = [
            builder.load(builder.gep(weights, [builder.add(line, place(half))]), align=LINE_BYTES)
            for half in range(2)
        ]
        if asks_ahead:
            for half in range(2):
                offset = builder.add(
                    builder.mul(loop.index, place(2 * LINE_BYTES)), place(half * LINE_BYTES)
                )
                wanted = builder.gep(ahead, [offset])
                builder.call(prefetch, [wanted, flag(0), flag(2), flag(1)])  # read, L2, data
        begin = builder.mul(loop.index, place(rows))
        for row in range(rows):
            value = builder.load(builder.gep(values, [builder.add(begin, place(row))]))
            spread = builder.shuffle_vector(
                builder.insert_element(unknown, value, flag(0)), unknown, everywhere
            )
            for half in range(2):
                total = builder.load(sums[row][half])
                builder.store(builder.call(fuse, [spread, loaded[half], total]), sums[row][half])
    for row in range(rows):
        for half in range(2):
            offset = builder.add(builder.mul(width, place(row)), place(half * LINE))
            goal = builder.bitcast(builder.gep(target, [offset]), vector.as_pointer())
            builder.store(builder.load(sums[row][half]), goal, align=4)


_large, _large_ahead = _tile_product(_LARGE, False), _tile_product(_LARGE, True)
_small, _small_ahead = _tile_product(_SMALL, False), _tile_product(_SMALL, True)
