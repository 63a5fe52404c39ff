"""Features of the processor, as the system and the compiler list them; alignment of copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numba.core.registry import cpu_target

from conekg.model.kernels.processor import has_feature, on_cache_lines

CPUINFO = Path("/proc/cpuinfo")


@pytest.mark.skipif(not CPUINFO.is_file(), reason="the system lists no features")
@pytest.mark.parametrize("name", ["avx2", "avx512f", "avx512vbmi"])
def test_a_feature_that_is_found_is_listed_by_the_system(name: str) -> None:
    """The reverse need not hold: NUMBA_CPU_FEATURES can hide features."""
    assert name in CPUINFO.read_text().split() or not has_feature(name)


def test_features_are_those_that_the_compiler_lists_with_a_plus() -> None:
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    for word in filter(None, features.split(",")):
        assert has_feature(word[1:]) == word.startswith("+")
    assert not has_feature("")
    assert not has_feature("no such feature")


@pytest.mark.parametrize("shape", [(1,), (3, 6, 50), (7, 13)])
def test_copies_start_on_cache_lines(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    copy = on_cache_lines(array.T)
    np.testing.assert_array_equal(copy, array.T)
    assert copy.ctypes.data % 64 == 0
    assert copy.flags.c_contiguous
