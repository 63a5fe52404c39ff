"""Shapes: queries with their ids removed, and the names the literature gives to fourteen.

A shape's template is an ordinary tree whose entity and relation ids are slots,
numbered 0, 1, ... in reading order (post-order, left to right). A batch of
queries of one shape is then two integer matrices, one row a query, one column a
slot; this is what sampling writes, the symbolic engine and the models read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import assert_never

from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe, fold, relabel


@dataclass(frozen=True)
class Shape:
    """A query template; equal templates are equal shapes."""

    template: Query

    @cached_property
    def num_anchors(self) -> int:
        """How many entity slots a query of this shape fills."""
        return len(slots_of(self.template)[0])

    @cached_property
    def num_relations(self) -> int:
        """How many relation slots a query of this shape fills."""
        return len(slots_of(self.template)[1])

    @cached_property
    def name(self) -> str:
        """The literature's name (`2in`) where there is one, otherwise the shape spelled out."""
        return _NAMES.get(self) or spell(self.template)

    def ground(self, entity_ids: Sequence[int], relation_ids: Sequence[int]) -> Query:
        """The query of this shape with the given ids in its slots."""
        return relabel(
            self.template,
            entity=lambda slot: int(entity_ids[slot]),
            relation=lambda slot: int(relation_ids[slot]),
        )


@lru_cache(maxsize=1024)
def shape_of(query: Query) -> Shape:
    """The shape of a query; of those last asked for it is remembered.

    >>> shape_of(Project(Anchor(7), 3)).name
    '1p'
    """
    anchor_slots, relation_slots = count(), count()
    return Shape(
        relabel(
            query,
            entity=lambda _: next(anchor_slots),
            relation=lambda _: next(relation_slots),
        )
    )


def slots_of(query: Query) -> tuple[list[int], list[int]]:
    """The entity ids and the relation ids of a query in slot order."""
    entity_ids: list[int] = []
    relation_ids: list[int] = []

    def collect(node: Query, _: tuple[None, ...]) -> None:
        match node:
            case Anchor(entity_id):
                entity_ids.append(entity_id)
            case Project(_, relation_id):
                relation_ids.append(relation_id)
            case _:
                pass

    fold(query, collect)
    return entity_ids, relation_ids


def spell(query: Query) -> str:
    """A shape without ids, written in the path algebra: `(e.r & !e.r).r`."""

    def write(node: Query, parts: tuple[str, ...]) -> str:
        match node:
            case Anchor():
                return "e"
            case Universe():
                return "*"
            case Project():
                return f"{parts[0]}.r"
            case And():
                return f"({' & '.join(parts)})"
            case Or():
                return f"({' | '.join(parts)})"
            case Not():
                return f"(!{parts[0]})"
        assert_never(node)

    return fold(query, write)


def _path(length: int) -> Query:
    query: Query = Anchor(0)
    for _ in range(length):
        query = Project(query, 0)
    return query


def _structures() -> dict[str, Shape]:
    p1, p2, p3 = _path(1), _path(2), _path(3)
    trees: dict[str, Query] = {
        "1p": p1,
        "2p": p2,
        "3p": p3,
        "2i": And((p1, p1)),
        "3i": And((p1, p1, p1)),
        "ip": Project(And((p1, p1)), 0),
        "pi": And((p2, p1)),
        "2in": And((p1, Not(p1))),
        "3in": And((p1, p1, Not(p1))),
        "inp": Project(And((p1, Not(p1))), 0),
        "pin": And((p2, Not(p1))),
        "pni": And((Not(p2), p1)),
        "2u": Or((p1, p1)),
        "up": Project(Or((p1, p1)), 0),
        "2u-DM": Not(And((Not(p1), Not(p1)))),
        "up-DM": Project(Not(And((Not(p1), Not(p1)))), 0),
    }
    return {name: shape_of(tree) for name, tree in trees.items()}


STRUCTURES: dict[str, Shape] = _structures()
"""The fourteen structures of BetaE and ConE and the two De Morgan forms, by name."""

_NAMES: dict[Shape, str] = {shape: name for name, shape in STRUCTURES.items()}

POSITIVE_STRUCTURES = ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up")
"""Structures without negation, in the column order of the paper's Table 1."""

NEGATION_STRUCTURES = ("2in", "3in", "inp", "pin", "pni")
"""Structures with negation, in the column order of the paper's Table 2."""

TRAINED_STRUCTURES = ("1p", "2p", "3p", "2i", "3i", "2in", "3in", "inp", "pin", "pni")
"""Structures the paper trains on; the other four test generalisation."""
