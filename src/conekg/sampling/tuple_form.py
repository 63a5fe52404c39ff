"""Tuple forms: the nested tuples of the public query files to matrices of ids, and back.

`query.tuples` reads a single tuple of unknown structure into a tree. Here the structure is
known, and hundreds of thousands of tuples are converted at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from conekg.errors import QueryError
from conekg.graph.adjacency import IntArray
from conekg.query.tuples import NEGATION, UNION, Nested

_MARKS = {"n": NEGATION, "u": UNION}


class TupleForm:
    """A structure such as `(("e", ("r",)), ("e", ("r", "n")))` and the tuples that have it.

    The letters say what a tuple holds at their position: `e` an entity, `r` a relation, `n` the
    mark of a complement, `u` the mark of a union. From left to right, entities and relations are
    in slot order.
    """

    def __init__(self, structure: Nested) -> None:
        self.structure = structure
        letters = list(_flat(structure, structure))
        self._width = len(letters)
        self._anchor_places = [i for i, (letter, _) in enumerate(letters) if letter == "e"]
        self._relation_places = [i for i, (letter, _) in enumerate(letters) if letter == "r"]

    def read(self, tuples: Iterable[Nested]) -> tuple[IntArray, IntArray]:
        """[queries, anchors] and [queries, relations] of the given tuples."""
        rows = [self._items(nested) for nested in tuples]
        try:
            ids = np.array(rows, dtype=np.int32).reshape(len(rows), self._width)
        except OverflowError as error:
            raise QueryError(f"a query tuple holds an id that is too large: {error}") from error
        return (
            np.ascontiguousarray(ids[:, self._anchor_places]),
            np.ascontiguousarray(ids[:, self._relation_places]),
        )

    def write(self, anchors: IntArray, relations: IntArray) -> list[Nested]:
        """The tuple of each row."""
        return [
            _filled(self.structure, iter(entity_ids), iter(relation_ids))
            for entity_ids, relation_ids in zip(anchors.tolist(), relations.tolist(), strict=True)
        ]

    def _items(self, nested: Nested) -> list[Any]:
        items = []
        for letter, item in _flat(self.structure, nested):
            expected = _MARKS.get(letter)
            if type(item) is not int or (item < 0 if expected is None else item != expected):
                raise QueryError(
                    f"{item!r} in the query tuple {nested!r} where its structure "
                    f"{self.structure!r} has {letter!r}"
                )
            items.append(item)
        return items


def _filled(part: Any, entity_ids: Iterator[int], relation_ids: Iterator[int]) -> Any:
    """A part of a structure with its letters replaced by ids, from left to right."""
    if isinstance(part, tuple):
        return tuple([_filled(item, entity_ids, relation_ids) for item in part])
    if part == "e":
        return next(entity_ids)
    return next(relation_ids) if part == "r" else _MARKS[part]


def _flat(structure: Any, nested: Any) -> Iterable[tuple[str, Any]]:
    """The letters of a structure from left to right, each with the tuple's item at its position."""
    if not isinstance(structure, tuple):
        yield structure, nested
        return
    if not isinstance(nested, tuple) or len(nested) != len(structure):
        raise QueryError(f"the query tuple part {nested!r} does not have the form {structure!r}")
    for part, item in zip(structure, nested, strict=True):
        yield from _flat(part, item)
