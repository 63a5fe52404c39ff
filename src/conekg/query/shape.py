"""Shapes: queries without their ids, and the fourteen structures that the literature names.

A shape's template is an ordinary tree in which ids are replaced by slots, numbered 0, 1, ... in
reading order (post-order, left to right), for entities and relations separately. A batch of
queries of one shape is then two integer matrices with one row per query and one column per slot.
Sampling writes these matrices; the symbolic engine and the models read them.
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
        # Plans and programs are cached by shape, so the tree is walked only for the first hash.
        return hash(self.template)

    @cached_property
    def num_anchors(self) -> int:
        """The number of entity slots."""
        return len(slots_of(self.template)[0])

    @cached_property
    def num_relations(self) -> int:
        """The number of relation slots."""
        return len(slots_of(self.template)[1])

    @cached_property
    def is_path(self) -> bool:
        """Whether this is a chain of projections from one anchor: 1p, 2p, 3p and so on."""
        node = self.template
        while isinstance(node, Project):
            node = node.operand
        return isinstance(node, Anchor)

    @cached_property
    def name(self) -> str:
        """The name in the literature (`2in`) if there is one, otherwise the shape spelled out."""
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
    """The shape and the ids of a query; `Shape.ground` is the inverse.

    >>> shape, entity_ids, relation_ids = grounded(Project(Anchor(7), 3))
    >>> shape.name, entity_ids, relation_ids
    ('1p', [7], [3])
    """
    codes, entity_ids, relation_ids = _walk(query)
    return Grounded(_shape_of_codes(codes), entity_ids, relation_ids)


def shape_of(query: Query) -> Shape:
    """The shape of a query; the same object for queries of one shape, as long as it is cached.

    >>> shape_of(Project(Anchor(7), 3)).name
    '1p'
    """
    return _shape_of_codes(_walk(query)[0])


def slots_of(query: Query) -> tuple[list[int], list[int]]:
    """The entity ids and the relation ids of a query in slot order.

    >>> slots_of(Anchor(3).project(7) & ~Anchor(5).project(9))
    ([3, 5], [7, 9])
    """
    return _walk(query)[1:]


def check_whole(kind: str, ids: Sequence[object]) -> None:
    """Raise QueryError if one of the ids in a query is not a whole number."""
    for value in ids:
        if type(value) is int:  # nearly always true, and faster than isinstance
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise QueryError(
                f"{value!r} in a query is no {kind} id",
                hint="ids are whole numbers; parse_query looks names up",
            )


_ANCHOR, _UNIVERSE, _PROJECT, _NOT = range(4)
"""Codes of nodes. The code of an intersection of n operands is 2n, of a union 2n + 1; n is at
least 2. Half of a code, rounded down, is the number of operands of its node.
"""


def _walk(query: Query) -> tuple[tuple[int, ...], list[int], list[int]]:
    """The codes of a query's nodes in post-order, its entity ids and its relation ids.

    The codes alone determine the shape; the ids are in slot order.
    """
    codes: list[int] = []
    entity_ids: list[int] = []
    relation_ids: list[int] = []
    pending = [query]
    while pending:  # parents before children, right before left: the reverse of post-order
        match node := pending.pop():
            case Project():
                codes.append(_PROJECT)
                relation_ids.append(node.relation_id)
                pending.append(node.operand)
            case Anchor():
                codes.append(_ANCHOR)
                entity_ids.append(node.entity_id)
            case And():
                codes.append(2 * len(node.operands))
                pending += node.operands
            case Not():
                codes.append(_NOT)
                pending.append(node.operand)
            case Or():
                codes.append(2 * len(node.operands) + 1)
                pending += node.operands
            case Universe():
                codes.append(_UNIVERSE)
            case _:
                raise not_a_query(node)
    codes.reverse()
    entity_ids.reverse()
    relation_ids.reverse()
    return tuple(codes), entity_ids, relation_ids


@lru_cache(maxsize=4096)
def _shape_of_codes(codes: tuple[int, ...]) -> Shape:
    anchor_slots, relation_slots = count(), count()
    stack: list[Query] = []
    for code in codes:
        if code == _ANCHOR:
            stack.append(Anchor(next(anchor_slots)))
        elif code == _UNIVERSE:
            stack.append(Universe())
        elif code == _PROJECT:
            stack.append(Project(stack.pop(), next(relation_slots)))
        elif code == _NOT:
            stack.append(Not(stack.pop()))
        else:
            operands = tuple(stack[-(code // 2) :])
            stack[-len(operands) :] = [Or(operands) if code % 2 else And(operands)]
    (template,) = stack
    return Shape(template)


_WORDS = {_ANCHOR: "e", _UNIVERSE: "*", _PROJECT: "r", _NOT: "!"}
_CODES = {word: code for code, word in _WORDS.items()}


def encode_shape(shape: Shape) -> str:
    """A shape in postfix notation, as stored in query set files; `decode_shape` is the inverse.

    >>> encode_shape(STRUCTURES["2in"])  # an intersection of a path and a negated path
    'e r e r ! &2'
    """
    codes, _, _ = _walk(shape.template)
    return " ".join(_WORDS.get(code) or f"{'&|'[code % 2]}{code // 2}" for code in codes)


def decode_shape(text: str) -> Shape:
    """The shape that `encode_shape` writes as `text`; `ValueError` if there is none.

    >>> decode_shape(encode_shape(STRUCTURES["2in"])).name
    '2in'
    """
    codes: list[int] = []
    stack_size = 0
    for word in text.split():
        code = _code_of(word)
        if code // 2 > stack_size:
            raise ValueError(f"{word!r} lacks operands in the shape {text!r}")
        stack_size += 1 - code // 2
        codes.append(code)
    if stack_size != 1:
        raise ValueError(f"the shape {text!r} is of {stack_size} queries, not of one")
    return _shape_of_codes(tuple(codes))


def _code_of(word: str) -> int:
    """The code that `encode_shape` writes as this word."""
    if word in _CODES:
        return _CODES[word]
    if word[0] in "&|" and word[1:].isdigit() and int(word[1:]) >= 2:
        return 2 * int(word[1:]) + "&|".index(word[0])
    raise ValueError(f"unknown word {word!r} in a shape")


def spell(query: Query) -> str:
    """A shape without ids, written in the path algebra, with parentheses around every operator.

    >>> spell((Anchor(0).project(1) & ~Anchor(2).project(3)).project(4))
    '(e.r & (!e.r)).r'
    """
    return fold(query, _write)


@lru_cache(maxsize=4096)
def outline(shape: Shape) -> str:
    """A shape spelled out with sorted operands, so that `a & b` and `b & a` have one outline.

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

UNION_OF_FORM = {"2u-DM": "2u", "up-DM": "up"}
"""The De Morgan forms, each with the union that it rewrites."""

_NAMES: dict[Shape, str] = {shape: name for name, shape in STRUCTURES.items()}

POSITIVE_STRUCTURES = ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up")
"""Structures without negation, in the column order of the paper's Table 1."""

NEGATION_STRUCTURES = ("2in", "3in", "inp", "pin", "pni")
"""Structures with negation, in the column order of the paper's Table 2."""

TRAINED_STRUCTURES = ("1p", "2p", "3p", "2i", "3i", "2in", "3in", "inp", "pin", "pni")
"""Structures that the paper trains on; the other four only test generalisation."""
