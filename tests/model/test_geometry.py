"""Geometries have the numbers that kernels hard-code."""

from __future__ import annotations

import pytest

from conekg.model.geometry import Geometry
from conekg.model.kernels import tile


def test_numbers_are_those_that_kernels_are_written_for() -> None:
    assert {kind.name: kind.value for kind in Geometry} == {
        "CONE": 0,
        "BOX": 1,
        "POINT": 2,
        "INNER": 3,
    }


def test_kernels_are_handed_plain_numbers() -> None:
    """Compilers would treat an enumeration differently, or reject it."""
    assert (tile.CONE, tile.BOX, tile.POINT) == (0, 1, 2)
    assert {type(code) for code in (tile.CONE, tile.BOX, tile.POINT)} == {int}


def test_triton_kernels_are_handed_plain_numbers_too() -> None:
    pytest.importorskip("triton")
    from conekg.model.kernels import geometry

    codes = (geometry.CONE, geometry.BOX, geometry.POINT, geometry.INNER)
    assert codes == (0, 1, 2, 3)
    assert {type(code) for code in codes} == {int}


def test_all_but_inner_products_are_sums() -> None:
    assert [kind for kind in Geometry if not kind.is_sum] == [Geometry.INNER]
