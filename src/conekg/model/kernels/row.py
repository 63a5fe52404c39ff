"""Rows of any width in Triton kernels, as a few pieces of widths that are powers of two.

The size of a tensor in a Triton kernel is a power of two: a row of 800 coordinates in one
tensor would leave 224 of 1,024 lanes idle, in pieces of 512, 256 and 32 none. A row is a tuple
of its pieces; kernels get the widths as a compile-time constant.
"""

from __future__ import annotations

import triton
import triton.language as tl

_MOST_PIECES = 3
"""More would cost more instructions than the idle lanes they save."""
_COLUMNS_OF_A_THREAD = 16
"""Kernels hold half a dozen rows at once, and a thread has 255 registers for its columns."""
_FEWEST_WARPS, _MOST_WARPS = 2, 16


def row_pieces(dim: int) -> tuple[int, ...]:
    """Decreasing powers of two that together cover `dim` columns with few to spare.

    >>> row_pieces(800), row_pieces(64), row_pieces(7)
    ((512, 256, 32), (64,), (4, 2, 1))
    """
    pieces: list[int] = []
    left = dim
    while left > 0:
        whole = 1 << (left.bit_length() - 1)
        last = len(pieces) == _MOST_PIECES - 1
        pieces.append(triton.next_power_of_2(left) if last else whole)
        left -= pieces[-1]
    return tuple(pieces)


def row_warps(dim: int) -> int:
    """How many warps of 32 threads share a row of `dim` columns.

    >>> row_warps(800), row_warps(1600), row_warps(7)
    (2, 4, 2)
    """
    wanted: int = triton.next_power_of_2(triton.cdiv(dim, 32 * _COLUMNS_OF_A_THREAD))
    return min(max(wanted, _FEWEST_WARPS), _MOST_WARPS)


@triton.jit
def columns(PIECES: tl.constexpr, piece: tl.constexpr):
    """The column numbers of a row's piece."""
    start = 0
    for earlier in tl.static_range(piece):
        start += PIECES[earlier]
    return start + tl.arange(0, PIECES[piece])


@triton.jit
def load_row(pointer, dim, PIECES: tl.constexpr):
    """The row of `dim` columns at `pointer`; columns beyond are zero."""
    row = ()
    for piece in tl.static_range(len(PIECES)):
        column = columns(PIECES, piece)
        row = row + (tl.load(pointer + column, mask=column < dim, other=0.0),)
    return row


@triton.jit
def store_row(pointer, row, dim, PIECES: tl.constexpr):
    """Write a row of `dim` columns to `pointer`."""
    for piece in tl.static_range(len(PIECES)):
        column = columns(PIECES, piece)
        tl.store(pointer + column, row[piece], mask=column < dim)


@triton.jit
def zero_row(like, PIECES: tl.constexpr):
    """A row of zeros, as wide as another row."""
    row = ()
    for piece in tl.static_range(len(PIECES)):
        row = row + (tl.zeros_like(like[piece]),)
    return row


@triton.jit
def add_scaled(row, factor, other, PIECES: tl.constexpr):
    """row + factor · other."""
    total = ()
    for piece in tl.static_range(len(PIECES)):
        total = total + (row[piece] + factor * other[piece],)
    return total


@triton.jit
def scaled(row, factor, PIECES: tl.constexpr):
    """factor · row."""
    product = ()
    for piece in tl.static_range(len(PIECES)):
        product = product + (factor * row[piece],)
    return product
