"""What compiled loops ask of the processor: how they are compiled, vectors, cache lines."""

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
    """Whether the processor has some instructions, by the name that LLVM gives them: `avx512f`."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return f"+{name}" in features.split(",")


def compiled(function: _Function) -> _Function:
    """The function in machine code: sums in any order, no lock, kept on disk."""
    # The Python error model would test every divisor and keep the loop from vectorising.
    decorate = numba.njit(nogil=True, fastmath=True, error_model="numpy", cache=True)
    result: _Function = decorate(function)
    return result


def inlined(function: _Function) -> _Function:
    """The function copied into its callers: a call per tile would count array references."""
    decorate = numba.njit(nogil=True, fastmath=True, error_model="numpy", inline="always")
    result: _Function = decorate(function)
    return result


def on_cache_lines(array: FloatArray) -> FloatArray:
    """A contiguous copy that starts on a cache line: loads that straddle two cost a tenth."""
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

    Compilers shun 512 bits for the sake of the code around, which ran slower then on older
    processors. These loops are all there is: they took three quarters of the time by them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Past `add`, which knows only LLVM's own attributes and not those of its targets.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once where the processor can.

    Of a sum of two products the compiler would round either one twice, and which may depend
    on an entity's place in its tile: equal entities would not be equally far then.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FloatType()
        fuse = builder.module.declare_intrinsic(
            "llvm.fmuladd", [kind], ir.FunctionType(kind, [kind] * 3)
        )
        return builder.call(fuse, arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


def emit_fetch(builder: Any, pointer: Any) -> None:
    """Ask for the cache line of a pointer; one beyond the end of the memory is ignored."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [number] * 3)
    )
    read, second_level, data = number(0), number(2), number(1)
    builder.call(fetch, [builder.bitcast(pointer, byte), read, second_level, data])


@intrinsic
def fetch(typing_context: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask the memory for the line that holds `table[row, column]`, and do not wait for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        emit_fetch(builder, cgutils.get_item_pointer(context, builder, kind, array, arguments[1:]))
        return context.get_dummy_value()

    return types.none(table, row, column), generate
