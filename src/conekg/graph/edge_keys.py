"""Edge keys: one 64-bit number an edge.

Numbers sort and compare several times faster than three columns do. Keys are also what a
graph's fingerprint is made of, so they never change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conekg.errors import DataError


def edge_keys(edges: NDArray[np.int32], num_entities: int) -> NDArray[np.int64]:
    """[n] a number for each of `edges` [n, 3] (head, relation, tail), ordered as (r, h, t).

    All entity ids are below `num_entities`; keys made with the same number can be compared.
    """
    check_size(num_entities, int(edges[:, 1].max(initial=0)) + 1)
    key: NDArray[np.int64] = edges[:, 1].astype(np.int64)
    key *= num_entities
    key += edges[:, 0]
    key *= num_entities
    key += edges[:, 2]
    return key


def check_size(num_entities: int, num_relations: int) -> None:
    """Refuse graphs whose edges do not fit in one 64-bit number each."""
    if num_entities >= 2**31 or num_relations * num_entities**2 >= 2**63:
        raise DataError(
            f"{num_entities:,} entities with {num_relations:,} relations are too many: entities "
            f"must stay below {2**31:,}, relations times the square of entities below {2**63:,}"
        )
