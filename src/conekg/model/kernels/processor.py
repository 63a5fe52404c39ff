"""What the processor can do that functions are compiled for."""

from __future__ import annotations

from numba.core.registry import cpu_target


def has_feature(name: str) -> bool:
    """Whether the processor has some instructions, by the name that LLVM gives them: `avx512f`."""
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return f"+{name}" in features.split(",")
