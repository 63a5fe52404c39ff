"""Mirrored facts: those held out that a training fact tells the other way round.

Relations that come with their inverses, and those that hold both ways, give half of what is held
out away: a model that has learnt so much seems to predict facts that it was told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import Split

_WORTH_TELLING = 0.1
"""The share of all held-out facts from which on mirrored ones are worth a word."""
_MIRRORED = 0.5
"""The share of a relation's held-out facts that one relation mirrors if that is no coincidence."""
_FEWEST = 5
"""Mirrored facts of two relations from which on it can be none."""
_SHOWN = 3


def mirrored_note(parts: Mapping[Split, IntArray], relations: pa.Array) -> str | None:
    """What to know of triples [n, 3] that are split and mirrored; None where too few are."""
    none = np.empty((0, 3), dtype=np.int32)
    held_out = np.concatenate([parts.get("valid", none), parts.get("test", none)])
    pairs = Counter(map(tuple, _mirrors(parts["train"], held_out).tolist()))
    counts = np.bincount(held_out[:, 1], minlength=len(relations))
    regular = {
        pair: n for pair, n in pairs.items() if n >= max(_FEWEST, _MIRRORED * counts[pair[0]])
    }
    number = sum(regular.values())
    if not number or number < _WORTH_TELLING * len(held_out):
        return None
    both: Counter[tuple[int, ...]] = Counter()
    for pair, n in regular.items():
        both[tuple(sorted(pair))] += n
    told = [
        f"{relations[one].as_py()!r} "
        + ("holds both ways" if one == other else f"is {relations[other].as_py()!r} backwards")
        for (one, other), _ in both.most_common(_SHOWN)
    ]
    if len(both) > _SHOWN:
        told.append(f"and {len(both) - _SHOWN} more")
    return (
        f"{number:,} of {len(held_out):,} held-out facts are training facts told backwards, which "
        f"makes evaluation too easy: {', '.join(told)}; for a fair one leave one direction out, or "
        "hold both out together"
    )


def _mirrors(train: IntArray, held_out: IntArray) -> IntArray:
    """[m, 2] of each held-out triple that is mirrored its relation and that of a mirror."""
    held_out = held_out[held_out[:, 0] != held_out[:, 2]]
    size = int(max(train[:, [0, 2]].max(initial=0), held_out[:, [0, 2]].max(initial=0))) + 1
    wanted, place_of = np.unique(_ends(held_out[:, [2, 0]], size), return_inverse=True)
    if not len(wanted):
        return np.empty((0, 2), dtype=np.int32)
    keys = _ends(train[:, [0, 2]], size)
    places = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    is_mirror = wanted[places] == keys
    mirror = np.full(len(wanted), -1, dtype=np.int32)
    mirror[places[is_mirror]] = train[is_mirror, 1]
    found = np.stack([held_out[:, 1], mirror[place_of]], axis=1)
    mirrored: IntArray = found[found[:, 1] >= 0]
    return mirrored


def _ends(ends: IntArray, size: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """[n] a number for each of two entities [n, 2] in a row."""
    return ends[:, 0].astype(np.int64) * size + ends[:, 1]
