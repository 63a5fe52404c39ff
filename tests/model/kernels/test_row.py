"""Rows in pieces: every column is covered once, few lanes idle, nothing is written beyond."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("triton")

import triton
import triton.language as tl

from conekg.model.kernels.row import (
    add_scaled,
    load_row,
    row_pieces,
    scaled,
    store_row,
    zero_row,
)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@given(st.integers(1, 5000))
def test_pieces_cover_a_row_with_few_columns_to_spare(dim: int) -> None:
    pieces = row_pieces(dim)
    assert 1 <= len(pieces) <= 3
    assert all(piece & (piece - 1) == 0 for piece in pieces)
    assert list(pieces) == sorted(pieces, reverse=True)
    spare = sum(pieces) - dim
    assert 0 <= spare < dim / 7 + 1


def test_the_papers_dimensions_leave_no_lane_idle() -> None:
    assert row_pieces(800) == (512, 256, 32)
    assert row_pieces(400) == (256, 128, 16)


@triton.jit
def _combine_kernel(first_ptr, second_ptr, out_ptr, dim, PIECES: tl.constexpr):
    row = tl.program_id(0) * dim
    first = load_row(first_ptr + row, dim, PIECES)
    second = load_row(second_ptr + row, dim, PIECES)
    total = add_scaled(zero_row(first, PIECES), 2.0, first, PIECES)
    store_row(
        out_ptr + row, add_scaled(total, -1.0, scaled(second, 3.0, PIECES), PIECES), dim, PIECES
    )


@pytest.mark.parametrize("dim", [1, 3, 7, 32, 45, 100])
def test_rows_side_by_side_are_combined_column_by_column(dim: int) -> None:
    generator = torch.Generator().manual_seed(dim)
    first, second = torch.randn(2, 4, dim, generator=generator).to(DEVICE)
    out = torch.full((5, dim), 7.0, device=DEVICE)
    _combine_kernel[(4,)](first, second, out, dim, PIECES=row_pieces(dim))
    torch.testing.assert_close(out[:4], 2 * first - 3 * second)
    assert (out[4] == 7.0).all()
