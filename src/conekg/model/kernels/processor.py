"""How loops are compiled for the processor by numba: vector widths, cache lines, prefetching."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]

_Function = TypeVar("_Function", bound=Callable[..., Any])

LINE = 16
"""Floats of a cache line."""
LINE_BYTES = 64


def has_feature(name: str) -> bool:
    """Whether the processor has the instructions that LLVM calls `name`, such as `avx512f`."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return f"+{name}" in features.split(",")


def compiled(function: _Function) -> _Function:
    """Compile a function: sums in any order, without the interpreter lock, cached on disk."""
    # The Python error model would test every divisor and keep the loop from vectorising.
    decorate = numba.njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
    result: _Function = decorate(function)
    return result


def inlined(function: _Function) -> _Function:
    """Inline a function into compiled callers: each call would count references to its arrays."""
    decorate = numba.njit(nogil=True, fastmath=True, error_model="numpy", inline="always")
    result: _Function = decorate(function)
    return result


def on_cache_lines(array: FloatArray) -> FloatArray:
    """A contiguous copy that starts on a cache line: loads across two cost a tenth of the speed."""
    copy: FloatArray = empty_on_cache_lines(array.shape, np.float32)
    copy[...] = array
    return copy


def empty_on_cache_lines(shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
    """An uninitialised contiguous array that starts on a cache line."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    memory = np.empty(size + LINE_BYTES, dtype=np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + size].view(kind).reshape(shape)


@intrinsic
def prefer_wide_vectors(typing_context: Any) -> Any:
    """Let the compiled caller use the widest vectors that the processor has.

    Compilers avoid vectors of 512 bits because older processors then run the surrounding code
    more slowly. These loops are almost all the work; wide vectors cut their time to three quarters.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # `set.add` bypasses the attributes' own `add`, which accepts no target-specific ones.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once where the processor can.

    In a sum of two products the compiler chooses which product is rounded on its own. The choice
    may depend on an entity's place in its tile: equal entities would have unequal distances.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FloatType()
        fuse = builder.module.declare_intrinsic(
            "llvm.fmuladd", [kind], ir.FunctionType(kind, [kind] * 3)
        )
        return builder.call(fuse, arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


def emit_fetch(builder: Any, pointer: Any) -> None:
    """Prefetch the cache line of a pointer; an address beyond the end of memory is ignored."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [number] * 3)
    )
    read, second_level, data = number(0), number(2), number(1)
    builder.call(fetch, [builder.bitcast(pointer, byte), read, second_level, data])


@intrinsic
def fetch(typing_context: Any, table: Any, row: Any, column: Any) -> Any:
    """Prefetch the cache line that holds `table[row, column]`, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        emit_fetch(builder, cgutils.get_item_pointer(context, builder, kind, array, arguments[1:]))
        return context.get_dummy_value()

    return types.none(table, row, column), generate
