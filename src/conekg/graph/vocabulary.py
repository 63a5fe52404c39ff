"""Names and ids: which entity or relation is number 17, and what did the user mean by "Frnce".

Relation ids come in pairs: 2k is the k-th named relation, 2k+1 its inverse,
written `^name`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from conekg.errors import UnknownNameError


class NameTable:
    """An immutable list of distinct names, each with an id (its place) and a readable label."""

    def __init__(
        self, kind: str, names: Sequence[str], labels: Sequence[str] | None = None
    ) -> None:
        self.kind = kind
        self._names = list(names)
        self._labels = self._names if labels is None else list(labels)
        self._ids = {name: index for index, name in enumerate(self._names)}

    def __len__(self) -> int:
        return len(self._names)

    def name(self, index: int) -> str:
        """The unique name of an id."""
        return self._names[index]

    def label(self, index: int) -> str:
        """The readable label of an id; its name where it has no label."""
        return self._labels[index]

    def id_of(self, text: str) -> int:
        """The id of a name, or of a label that only one id has."""
        index = self._ids.get(text)
        if index is None:
            raise UnknownNameError(self.kind, text, suggestions=self.suggest(text))
        return index

    def suggest(self, text: str, limit: int = 3) -> tuple[str, ...]:
        """Names close to `text`, nearest first."""
        return tuple(difflib.get_close_matches(text, self._names, n=limit))


@dataclass(frozen=True)
class Vocabulary:
    """The entity names and the relation names of a graph; inverses are not named here."""

    entities: NameTable
    relations: NameTable

    @property
    def num_relations(self) -> int:
        """How many relation ids there are, inverses counted."""
        return 2 * len(self.relations)

    def relation_name(self, relation_id: int) -> str:
        """The name of a relation id, `^name` for an inverse."""
        name = self.relations.name(relation_id >> 1)
        return f"^{name}" if relation_id & 1 else name

    def relation_id(self, text: str) -> int:
        """The id of `name` or `^name`."""
        inverse = text.startswith("^")
        return 2 * self.relations.id_of(text[inverse:]) + inverse
