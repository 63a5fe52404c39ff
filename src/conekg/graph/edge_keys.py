"""Edge keys: one 64-bit number per edge.

Single numbers sort and compare several times faster than three columns do. A graph's
fingerprint is a hash of its keys, so how they are computed must never change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conekg.errors import DataError


def edge_keys(edges: NDArray[np.int32], num_entities: int) -> NDArray[np.int64]:
    """[n] the key of each of `edges` [n, 3] (head, relation, tail), as (r * n + h) * n + t.

    Keys sort by relation, head, then tail. All entity ids must be below n = `num_entities`; only
    keys made with the same n can be compared.
    """
    check_size(num_entities, int(edges[:, 1].max(initial=0)) + 1)
    key: NDArray[np.int64] = edges[:, 1].astype(np.int64)
    key *= num_entities
    key += edges[:, 0]
    key *= num_entities
    key += edges[:, 2]
    return key


def check_size(num_entities: int, num_relations: int) -> None:
    """Raise `DataError` for a graph so large that edge keys would not fit in 64 bits."""
    if num_entities >= 2**31 or num_relations * num_entities**2 >= 2**63:
        raise DataError(
            f"{num_entities:,} entities with {num_relations:,} relations are too many: entities "
            f"must stay below {2**31:,}, relations times the square of entities below {2**63:,}"
        )
