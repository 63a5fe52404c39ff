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
from typing import NamedTuple, assert_never

import numpy as np

from conekg.errors import QueryError
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Query,
    Universe,
    fold,
    not_a_query,
    relabel,
)


@dataclass(frozen=True)
class Shape:
    """A query template; equal templates are equal shapes."""

    template: Query

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Shapes are what plans and programs are found by: their trees are walked once.
        return hash(self.template)

    @cached_property
    def num_anchors(self) -> int:
        """How many entity slots a query of this shape fills."""
        return len(slots_of(self.template)[0])

    @cached_property
    def num_relations(self) -> int:
        """How many relation slots a query of this shape fills."""
        return len(slots_of(self.template)[1])

    @cached_property
    def is_path(self) -> bool:
        """Whether this is hops from one anchor and nothing else: 1p, 2p, 3p and so on."""
        node = self.template
        while isinstance(node, Project):
            node = node.operand
        return isinstance(node, Anchor)

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


class Grounded(NamedTuple):
    """A query as its shape and the ids in its slots."""

    shape: Shape
    entity_ids: list[int]
    relation_ids: list[int]


def grounded(query: Query) -> Grounded:
    """The shape and the ids of a query; `Shape.ground` is the way back.

    >>> shape, entity_ids, relation_ids = grounded(Project(Anchor(7), 3))
    >>> shape.name, entity_ids, relation_ids
    ('1p', [7], [3])
    """
    signs, entity_ids, relation_ids = _walk(query)
    return Grounded(_shape_of_signs(signs), entity_ids, relation_ids)


def shape_of(query: Query) -> Shape:
    """The shape of a query; queries of one shape get the same object as long as it is remembered.

    >>> shape_of(Project(Anchor(7), 3)).name
    '1p'
    """
    return _shape_of_signs(_walk(query)[0])


def slots_of(query: Query) -> tuple[list[int], list[int]]:
    """The entity ids and the relation ids of a query in slot order."""
    return _walk(query)[1:]


def check_whole(kind: str, ids: Sequence[object]) -> None:
    """Raise QueryError where one of the ids that stand in a query is no whole number."""
    for value in ids:
        if type(value) is int:  # as nearly all are
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise QueryError(
                f"{value!r} in a query is no {kind} id",
                hint="ids are whole numbers; parse_query looks names up",
            )


_ANCHOR, _UNIVERSE, _PROJECT, _NOT = range(4)
"""Signs of nodes; 2n and 2n + 1 are an intersection and a union of n operands, two at least.

Half a sign, rounded down, is how many operands its node has.
"""


def _walk(query: Query) -> tuple[tuple[int, ...], list[int], list[int]]:
    """The signs of a query's nodes in post-order, which are its shape, and the ids in its slots."""
    signs: list[int] = []
    entity_ids: list[int] = []
    relation_ids: list[int] = []
    pending = [query]
    while pending:  # parents before children, right before left: post-order backwards
        match node := pending.pop():
            case Project():
                signs.append(_PROJECT)
                relation_ids.append(node.relation_id)
                pending.append(node.operand)
            case Anchor():
                signs.append(_ANCHOR)
                entity_ids.append(node.entity_id)
            case And():
                signs.append(2 * len(node.operands))
                pending += node.operands
            case Not():
                signs.append(_NOT)
                pending.append(node.operand)
            case Or():
                signs.append(2 * len(node.operands) + 1)
                pending += node.operands
            case Universe():
                signs.append(_UNIVERSE)
            case _:
                raise not_a_query(node)
    signs.reverse()
    entity_ids.reverse()
    relation_ids.reverse()
    return tuple(signs), entity_ids, relation_ids


@lru_cache(maxsize=4096)
def _shape_of_signs(signs: tuple[int, ...]) -> Shape:
    anchor_slots, relation_slots = count(), count()
    done: list[Query] = []
    for sign in signs:
        if sign == _ANCHOR:
            done.append(Anchor(next(anchor_slots)))
        elif sign == _UNIVERSE:
            done.append(Universe())
        elif sign == _PROJECT:
            done.append(Project(done.pop(), next(relation_slots)))
        elif sign == _NOT:
            done.append(Not(done.pop()))
        else:
            operands = tuple(done[-(sign // 2) :])
            done[-len(operands) :] = [Or(operands) if sign % 2 else And(operands)]
    (template,) = done
    return Shape(template)


_WORDS = {_ANCHOR: "e", _UNIVERSE: "*", _PROJECT: "r", _NOT: "!"}
_SIGNS = {word: sign for sign, word in _WORDS.items()}


def encode_shape(shape: Shape) -> str:
    """A shape in postfix words, as files of query sets have it; `decode_shape` is the way back.

    >>> encode_shape(STRUCTURES["2in"])  # an intersection of a path and a negated one
    'e r e r ! &2'
    """
    signs, _, _ = _walk(shape.template)
    return " ".join(_WORDS.get(sign) or f"{'&|'[sign % 2]}{sign // 2}" for sign in signs)


def decode_shape(text: str) -> Shape:
    """The shape that `encode_shape` wrote; `ValueError` where it did not write this."""
    signs: list[int] = []
    done = 0
    for word in text.split():
        sign = _sign_of(word)
        if sign // 2 > done:
            raise ValueError(f"{word!r} lacks operands in the shape {text!r}")
        done += 1 - sign // 2
        signs.append(sign)
    if done != 1:
        raise ValueError(f"the shape {text!r} is of {done} queries, not of one")
    return _shape_of_signs(tuple(signs))


def _sign_of(word: str) -> int:
    """The sign that `encode_shape` writes as this word."""
    if word in _SIGNS:
        return _SIGNS[word]
    if word[0] in "&|" and word[1:].isdigit() and int(word[1:]) >= 2:
        return 2 * int(word[1:]) + "&|".index(word[0])
    raise ValueError(f"unknown word {word!r} in a shape")


def spell(query: Query) -> str:
    """A shape without ids, written in the path algebra: `(e.r & !e.r).r`."""
    return fold(query, _write)


@lru_cache(maxsize=4096)
def outline(shape: Shape) -> str:
    """A shape spelled out with its operands in alphabetical order: the same for `a & b` as `b & a`.

    >>> outline(STRUCTURES["pni"]), outline(shape_of(Anchor(1).project(0) & ~Anchor(2)))
    ('((!e.r.r) & e.r)', '((!e) & e.r)')
    """
    return fold(shape.template, lambda node, parts: _write(node, tuple(sorted(parts))))


def _write(node: Query, parts: tuple[str, ...]) -> str:
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
