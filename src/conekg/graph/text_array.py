"""Arrow arrays of texts: conversion, repeated texts, and access to the underlying bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def as_texts(values: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values as one Arrow array of large strings."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values if values.type == pa.large_string() else values.cast(pa.large_string())
    return pa.array(values, type=pa.large_string())


def true_indices(mask: pa.Array) -> NDArray[np.int64]:
    """The indices at which an Arrow array of booleans is true."""
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def first_repeated(texts: pa.Array) -> str:
    """The first text that occurs more than once; there must be one.

    >>> first_repeated(as_texts(["a", "b", "c", "b"]))
    'b'
    """
    counts = pc.value_counts(texts)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    return str(repeated.field("values")[0].as_py())


def flat_bytes(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets [n + 1], and the bytes of all texts; text i is `data[offsets[i] : offsets[i + 1]]`.

    The bytes are not copied. `texts` must be an array of large strings.
    """
    assert texts.type == pa.large_string()
    if len(texts) == 0:
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    _, offset_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64, count=len(texts) + 1 + texts.offset)
    offsets = offsets[texts.offset :]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer else np.empty(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]
