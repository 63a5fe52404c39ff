"""Mirrored facts: held-out facts whose reverse is a training fact.

If a graph has a relation and its inverse under two names, or a symmetric relation, many held-out
facts are training facts with head and tail swapped. A model then seems to predict facts that it
was in effect trained on. This module finds such relations; nothing is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import Split

_MIN_TOTAL_SHARE = 0.1
"""The user is warned if at least this share of all held-out facts is mirrored."""
_MIN_RELATION_SHARE = 0.5
"""A relation mirrors another if it does so for at least this share of the other's held-out facts;
a smaller share may be coincidence."""
_MIN_COUNT = 5
"""The fewest mirrored facts of two relations that count as more than coincidence."""
_MAX_SHOWN = 3
"""The most pairs of relations that the note names."""


def mirrored_note(parts: Mapping[Split, IntArray], relations: pa.Array) -> str | None:
    """A warning if many held-out triples [n, 3] are mirrored in training; None if few are."""
    none = np.empty((0, 3), dtype=np.int32)
    held_out = np.concatenate([parts.get("valid", none), parts.get("test", none)])
    pairs = Counter(map(tuple, _mirrors(parts["train"], held_out).tolist()))
    counts = np.bincount(held_out[:, 1], minlength=len(relations))
    regular = {
        pair: n
        for pair, n in pairs.items()
        if n >= max(_MIN_COUNT, _MIN_RELATION_SHARE * counts[pair[0]])
    }
    number = sum(regular.values())
    if not number or number < _MIN_TOTAL_SHARE * len(held_out):
        return None
    unordered: Counter[tuple[int, ...]] = Counter()  # (a, b) and (b, a) are one pair
    for pair, n in regular.items():
        unordered[tuple(sorted(pair))] += n
    phrases = [
        f"{relations[one].as_py()!r} "
        + ("holds both ways" if one == other else f"is {relations[other].as_py()!r} backwards")
        for (one, other), _ in unordered.most_common(_MAX_SHOWN)
    ]
    if len(unordered) > _MAX_SHOWN:
        phrases.append(f"and {len(unordered) - _MAX_SHOWN} more")
    return (
        f"{number:,} of {len(held_out):,} held-out facts are training facts told backwards, which "
        f"makes evaluation too easy: {', '.join(phrases)}; for a fair one leave one direction out, "
        "or hold both out together"
    )


def _mirrors(train: IntArray, held_out: IntArray) -> IntArray:
    """[m, 2] for each mirrored held-out triple, its relation and that of a mirroring triple."""
    held_out = held_out[held_out[:, 0] != held_out[:, 2]]
    size = int(max(train[:, [0, 2]].max(initial=0), held_out[:, [0, 2]].max(initial=0))) + 1
    wanted, index_of = np.unique(_pair_keys(held_out[:, [2, 0]], size), return_inverse=True)
    if not len(wanted):
        return np.empty((0, 2), dtype=np.int32)
    keys = _pair_keys(train[:, [0, 2]], size)
    indices = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    is_mirror = wanted[indices] == keys
    mirror_relation = np.full(len(wanted), -1, dtype=np.int32)
    mirror_relation[indices[is_mirror]] = train[is_mirror, 1]
    pairs = np.stack([held_out[:, 1], mirror_relation[index_of]], axis=1)
    mirrored: IntArray = pairs[pairs[:, 1] >= 0]
    return mirrored


def _pair_keys(pairs: IntArray, size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """[n] one number for each pair of entities [n, 2], whose ids are below `size`."""
    return pairs[:, 0].astype(np.int64) * size + pairs[:, 1]
