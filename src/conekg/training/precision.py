"""How matrix products are taken: the one meaning of a recipe's `precision`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

Precision = Literal["float32", "tf32", "bfloat16"]


@contextmanager
def matrix_precision(precision: Precision, device: torch.device) -> Iterator[None]:
    """Take matrix products on a GPU in the given precision, sums in float32.

    On a CPU, where reduced precision is slower, every choice means float32. Weights,
    moments, angles and distances are float32 always.
    """
    if precision == "float32" or device.type != "cuda":
        yield
    elif precision == "bfloat16":
        with torch.autocast("cuda", torch.bfloat16):
            yield
    else:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
