"""Sums of table look-ups, 64 entities per instruction, of which coarse distances are made.

In each dimension, every entity has a cell number below 64, stored as one byte, and every row (a
region) has a table of 64 bytes. The kernels add up, over dimensions, the bytes that an entity's
cells select in a row's tables. AVX-512 VBMI has one instruction for 64 such look-ups. A plain
loop gives the same sums on any processor, but is slower than computing exact distances.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from conekg.model.kernels.processor import LINE_BYTES, compiled, has_feature

ByteArray: TypeAlias = NDArray[np.uint8]
SumArray: TypeAlias = NDArray[np.uint32]

CELLS = 64
"""Cells of a dimension: as many as a vector register has bytes."""
GROUP = 512
"""Entities whose sums stay in registers during the loop over dimensions."""

_VECTORS = GROUP // LINE_BYTES
_HALF = LINE_BYTES // 2
_DIMENSIONS = 256
"""Dimensions per block; their bytes always add up to less than 2^16."""


def has_wide_lookup() -> bool:
    """Whether functions are compiled for a processor that looks up 64 bytes at once."""
    return has_feature("avx512vbmi")


def place_of(entity: int) -> tuple[int, int]:
    """The group of an entity, and the place of its byte among the group's 512.

    Of every 64 bytes the even ones belong to the first 32 entities, the odd ones to the other 32.
    Bytes are added up in pairs, and this order makes the sums come out sorted by entity.

    >>> place_of(0), place_of(1), place_of(32), place_of(576)
    ((0, 0), (0, 2), (0, 1), (1, 64))
    """
    group, within = entity // GROUP, entity % GROUP
    vector, lane = within // LINE_BYTES, within % LINE_BYTES
    return group, vector * LINE_BYTES + 2 * (lane % _HALF) + lane // _HALF


@compiled
def sum_lookups(codes: ByteArray, tables: ByteArray, sums: SumArray, start: int, stop: int) -> None:
    """Add to `sums` [rows, groups · 512] the look-ups of groups `start` to `stop`, by VBMI.

    `codes` [groups, dim, 512] holds the entities' cell numbers, placed by `place_of`; `tables`
    [rows, dim, 64] the rows' values of those cells. All three arrays start on cache lines.
    """
    dim, rows = codes.shape[1], tables.shape[0]
    for group in range(start, stop):
        for row in range(rows):
            for low in range(0, dim, _DIMENSIONS):
                _add_group(
                    codes.ctypes.data + (group * dim + low) * GROUP,
                    tables.ctypes.data + (row * dim + low) * CELLS,
                    min(_DIMENSIONS, dim - low),
                    sums.ctypes.data + (row * sums.shape[1] + group * GROUP) * sums.itemsize,
                )


@compiled
def sum_lookups_plainly(
    codes: ByteArray, tables: ByteArray, sums: SumArray, start: int, stop: int
) -> None:
    """What `sum_lookups` computes, one look-up at a time, on any processor."""
    for group in range(start, stop):
        for within in range(GROUP):
            lane = within % LINE_BYTES
            place = within - lane + 2 * (lane % _HALF) + lane // _HALF
            for row in range(tables.shape[0]):
                total = np.uint32(0)
                for j in range(codes.shape[1]):
                    total += np.uint32(tables[row, j, codes[group, j, place]])
                sums[row, group * GROUP + within] += total


@intrinsic
def _add_group(
    typing_context: Any, codes: Any, tables: Any, dimensions: Any, sums: Any
) -> tuple[Any, Any]:
    """Add the look-ups of one group in one row's tables to the group's 512 sums.

    Takes addresses, and at most 256 dimensions. A register of 64 bytes is read as 32 numbers of 16
    bits, even byte + 256 · odd byte. Two totals are kept: of these numbers, and of the odd bytes.
    The first minus 256 times the second, modulo 2^16, is the sum of the even bytes.
    """
    signature = types.void(types.intp, types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bytes_64 = ir.VectorType(ir.IntType(8), LINE_BYTES)
        pairs = ir.VectorType(ir.IntType(16), _HALF)
        wide = ir.VectorType(ir.IntType(32), _HALF)
        look_up = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(bytes_64, [bytes_64, bytes_64]),
            "llvm.x86.avx512.permvar.qi.512",
        )
        eight = ir.Constant(pairs, [8] * _HALF)
        zero = ir.Constant(pairs, [0] * _HALF)
        code_at, table_at, dimensions, sum_at = arguments
        code_at = builder.inttoptr(code_at, bytes_64.as_pointer())
        table_at = builder.inttoptr(table_at, bytes_64.as_pointer())
        sum_at = builder.inttoptr(sum_at, wide.as_pointer())
        totals = [cgutils.alloca_once(builder, pairs) for _ in range(2 * _VECTORS)]
        for total in totals:
            builder.store(zero, total)

        def add(total: Any, value: Any) -> None:
            builder.store(builder.add(builder.load(total), value), total)

        with cgutils.for_range(builder, dimensions) as loop:
            table = builder.load(builder.gep(table_at, [loop.index]), align=LINE_BYTES)
            first = builder.mul(loop.index, ir.Constant(loop.index.type, _VECTORS))
            for vector in range(_VECTORS):
                place = builder.add(first, ir.Constant(first.type, vector))
                code = builder.load(builder.gep(code_at, [place]), align=LINE_BYTES)
                found = builder.bitcast(builder.call(look_up, [table, code]), pairs)
                add(totals[2 * vector], found)
                add(totals[2 * vector + 1], builder.lshr(found, eight))
        for vector in range(_VECTORS):
            odd = builder.load(totals[2 * vector + 1])
            even = builder.sub(builder.load(totals[2 * vector]), builder.shl(odd, eight))
            for half, part in enumerate((even, odd)):
                place = ir.Constant(ir.IntType(64), 2 * vector + half)
                add_to = builder.gep(sum_at, [place])
                before = builder.load(add_to, align=LINE_BYTES)
                after = builder.add(before, builder.zext(part, wide))
                builder.store(after, add_to, align=LINE_BYTES)
        return context.get_dummy_value()

    return signature, generate
