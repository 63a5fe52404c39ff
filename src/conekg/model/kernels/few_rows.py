"""Products of few rows with large weights, about as fast as the weights can be read.

A batch of questions has about a dozen rows, for weights of ten megabytes. Libraries rearrange
the weights in every product, which takes longer than the product; here they are packed once, in
panels of 32 outputs. During the product with one panel the next is prefetched, in several
streams, which memory serves faster than a single one. This needs vectors of 512 bits;
`few_rows_linear` leaves layers unchanged on other processors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from torch import Tensor, nn
from torch.nn.functional import linear

from conekg.graph.adjacency import LongArray
from conekg.model.kernels.processor import (
    LINE,
    LINE_BYTES,
    FloatArray,
    compiled,
    emit_fetch,
    has_feature,
    inlined,
)
from conekg.model.kernels.scoring import in_ranges

FEWEST_ROWS, MOST_ROWS = 2, 48
"""Numbers of rows for which this is used: up to 32 it is faster than the library, at 48 about as
fast. For one row the library rearranges nothing."""

LEAST_BYTES = 1 << 21
"""Smaller weights stay in a cache, where the library is up to twice as fast."""

_PANEL = 2 * LINE
"""Outputs of a panel. Their sums, two vectors for each row of a tile, stay in registers."""
_HEIGHTS = (2, 4, 6, 8, 10, 12)
"""Numbers of rows of a tile. The sums of 12 rows leave enough registers for the weights."""
_STREAMS = 4
"""Streams by which the next panel is prefetched."""
_FRACTION = 8
"""Fraction bits of `pace`, the fixed-point number of prefetches per step."""
_BYTES_A_THREAD = 1 << 21
"""Bytes of weights per thread. Waking a thread takes a tenth of the time of their product."""
_LARGE_PAGE = 1 << 21
"""Bytes of a large page. NumPy asks for large pages for arrays of two of them or more; with small
pages memory is read half as fast."""


def has_wide_vectors() -> bool:
    """Whether functions are compiled for a processor with vectors of 512 bits."""
    return has_feature("avx512f")


def lay_out_for_few_rows(model: nn.Module) -> None:
    """Make a model's linear layers on the CPU fast for few rows, without changing their weights.

    Layers become `few_rows_linear`. Those that it returns unchanged still gain a little speed,
    because their weights are stored column by column.
    """
    for module in list(model.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear) and layer.weight.device.type == "cpu":
                layer.weight.data = layer.weight.data.t().contiguous().t()
                setattr(module, name, few_rows_linear(layer))


def few_rows_linear(layer: nn.Linear) -> nn.Module:
    """A `FewRowsLinear` of the layer, or the layer itself where that is not faster."""
    weight = layer.weight
    # A subclass of nn.Linear may do more than the product.
    is_plain = (
        type(layer) is nn.Linear and weight.device.type == "cpu" and weight.dtype == torch.float32
    )
    is_large = weight.nbytes >= LEAST_BYTES
    return FewRowsLinear(layer) if is_plain and is_large and has_wide_vectors() else layer


_PACKED = ("_panels", "_start")


class FewRowsLinear(nn.Module):
    """A linear layer with packed weights, which must not change any more.

    It calls `torch.nn.functional.linear` where gradients are needed, for other numbers of rows
    than `FEWEST_ROWS` to `MOST_ROWS`, and for other types than float32.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self._pack()

    def _pack(self) -> None:
        self._panels = pack(self.weight.detach().numpy())
        self._start = np.zeros(len(self._panels) * _PANEL, dtype=np.float32)
        if self.bias is not None:
            self._start[: len(self.bias)] = self.bias.detach().numpy()

    def __getstate__(self) -> dict[str, Any]:
        """The state without packed arrays, whose copies would not be aligned for vector loads."""
        return {key: value for key, value in self.__dict__.items() if key not in _PACKED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._pack()

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., outputs] from inputs [..., inputs]."""
        rows = inputs.shape[:-1].numel()
        needs_gradient = torch.is_grad_enabled() and any(
            tensor is not None and tensor.requires_grad
            for tensor in (inputs, self.weight, self.bias)
        )
        is_few = FEWEST_ROWS <= rows <= MOST_ROWS
        if needs_gradient or not is_few or inputs.dtype != torch.float32:
            return linear(inputs, self.weight, self.bias)
        flat = inputs.reshape(rows, inputs.shape[-1]).contiguous()
        threads = torch.get_num_threads()
        product = multiply(flat.numpy(), self._panels, self._start, threads)
        outputs = self.weight.shape[0]
        return torch.from_numpy(product)[:rows, :outputs].reshape(*inputs.shape[:-1], outputs)


def pack(weight: FloatArray) -> FloatArray:
    """Weights [outputs, inputs] as panels [panels, inputs, 32], the last one padded with zeros."""
    outputs, inputs = weight.shape
    count = -(-outputs // _PANEL)
    filled = np.zeros((count * _PANEL, inputs), dtype=np.float32)
    filled[:outputs] = weight
    memory = np.empty(filled.nbytes + 2 * _LARGE_PAGE, dtype=np.uint8)
    start = -memory.ctypes.data % _LARGE_PAGE
    panels: FloatArray = memory[start : start + filled.nbytes].view(np.float32)
    panels = panels.reshape(count, inputs, _PANEL)
    panels[...] = filled.reshape(count, _PANEL, inputs).transpose(0, 2, 1)
    return panels


def multiply(
    rows: FloatArray, panels: FloatArray, start: FloatArray, threads: int = 1
) -> FloatArray:
    """[rows or one more, 32 · panels] start + rows · weights; the row beyond `rows` is meaningless.

    Threads share the panels if there is enough work for several.
    """
    tiles, heights = _tiles(rows)
    out = np.empty((heights.sum(), start.size), dtype=np.float32)
    threads = min(threads, max(1, panels.nbytes // _BYTES_A_THREAD))
    in_ranges(_multiply, len(panels), threads, tiles, heights, panels, start, out, step=1)
    return out


@compiled
def _tiles(rows: FloatArray) -> tuple[FloatArray, LongArray]:
    """(tiles, heights): the rows in tiles [inputs, height], concatenated, and each tile's rows.

    The values of a tile's rows for one input, which meet the same weights, are contiguous.
    """
    count, inputs = rows.shape
    heights = _tile_heights(count)
    tiles = np.zeros(heights.sum() * inputs, dtype=np.float32)
    first = tile = 0
    for row in range(count):
        if row == first + heights[tile]:
            first += heights[tile]
            tile += 1
        base = first * inputs + row - first
        for i in range(inputs):
            tiles[base + i * heights[tile]] = rows[row, i]
    return tiles, heights


@compiled
def _multiply(
    tiles: FloatArray,
    heights: LongArray,
    panels: FloatArray,
    start: FloatArray,
    out: FloatArray,
    first_panel: int,
    last_panel: int,
) -> None:
    """Fill the outputs of a range of panels in `out` [rows, outputs].

    The product with each tile of rows prefetches that tile's share of the next panel.
    """
    inputs, width = panels.shape[1], out.shape[1]
    panel_bytes = inputs * _PANEL * 4
    gap = panel_bytes // (len(heights) * _STREAMS)
    pace = (1 << _FRACTION) // len(heights)
    for panel in range(first_panel, last_panel):
        weights = panels.ctypes.data + panel * panel_bytes
        first_sums = start.ctypes.data + panel * _PANEL * 4
        ahead = weights + panel_bytes
        values = tiles.ctypes.data
        target = out.ctypes.data + panel * _PANEL * 4
        for tile in range(len(heights)):
            height = heights[tile]
            if height == 12:
                _by_12(values, weights, inputs, first_sums, target, width, ahead, gap, pace)
            elif height == 10:
                _by_10(values, weights, inputs, first_sums, target, width, ahead, gap, pace)
            elif height == 8:
                _by_8(values, weights, inputs, first_sums, target, width, ahead, gap, pace)
            elif height == 6:
                _by_6(values, weights, inputs, first_sums, target, width, ahead, gap, pace)
            elif height == 4:
                _by_4(values, weights, inputs, first_sums, target, width, ahead, gap, pace)
            else:
                _by_2(values, weights, inputs, first_sums, target, width, ahead, gap, pace)
            values += height * inputs * 4
            target += height * width * 4
            ahead += _STREAMS * gap


@inlined
def _tile_heights(count: int) -> LongArray:
    """Even numbers of at most 12 that add up to `count` or one more, as equal as can be."""
    pairs = (count + 1) // 2
    tiles = (pairs + 5) // 6
    heights = np.empty(tiles, dtype=np.int64)
    for tile in range(tiles):
        heights[tile] = 2 * ((tile + 1) * pairs // tiles - tile * pairs // tiles)
    return heights


def _tile_product(rows: int) -> Any:
    """An intrinsic that multiplies a tile of `rows` rows with one panel and stores the sums.

    Its arguments are addresses and numbers: the tile [inputs, rows], the panel [inputs, 32], the
    number of inputs, the 32 initial sums, the destination of the sums, the floats between two rows
    there; and for prefetching the address to start from, the bytes between two streams, and the
    prefetches of two lines per step, in 1/256.
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
        ahead: Any,
        gap: Any,
        pace: Any,
    ) -> tuple[Any, Any]:
        signature = types.void(*[types.intp] * 9)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _emit_product(builder, rows, arguments)
            return context.get_dummy_value()

        return signature, generate

    return product


def _emit_product(builder: Any, rows: int, arguments: Any) -> None:
    number, place = ir.FloatType(), ir.IntType(64)
    flag = ir.IntType(32)
    vector = ir.VectorType(number, LINE)
    fuse = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LINE}f32"
    )
    values, weights, inputs, first_sums, target, width, ahead, gap, pace = arguments
    values = builder.inttoptr(values, number.as_pointer())
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
        # Two lines at a time: of the first two streams on even turns, of the others on odd ones.
        turn = builder.lshr(builder.mul(loop.index, pace), place(_FRACTION))
        far = builder.mul(builder.lshr(turn, place(1)), place(LINE_BYTES))
        side = builder.mul(builder.and_(turn, place(1)), builder.mul(gap, place(2)))
        upcoming = builder.add(ahead, builder.add(far, side))
        for address in (upcoming, builder.add(upcoming, gap)):
            emit_fetch(builder, builder.inttoptr(address, ir.IntType(8).as_pointer()))
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


_by_2, _by_4, _by_6, _by_8, _by_10, _by_12 = (_tile_product(height) for height in _HEIGHTS)
