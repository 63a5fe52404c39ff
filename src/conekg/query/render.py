"""Renders a query as text: in the canonical path algebra, or as a first-order formula.

Both can be read back exactly: `parse_query` of either text gives the tree that was rendered,
including the order and nesting of operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import assert_never

from conekg.errors import UnknownNameError
from conekg.graph.vocabulary import NameTable, Vocabulary, check_vocabulary, directed
from conekg.query.shape import check_whole, slots_of
from conekg.query.tokens import as_written, quote
from conekg.query.tree import (
    Anchor,
    And,
    Descent,
    Not,
    Or,
    Project,
    Query,
    Universe,
    descend,
    fold,
    fold_each,
)


def render_query(query: Query, vocabulary: Vocabulary, *, labels: bool = False) -> str:
    """The query in the path algebra, with as few parentheses and quotes as possible.

    With `labels`, an entity's label is written instead of its name if only that entity has it; a
    relation's label also only if it is shorter, such as the last part of an IRI. Raises
    `UnknownNameError` if the vocabulary lacks an id, `QueryError` if an id is not a whole number.

    >>> names = Vocabulary(NameTable("entity", ["South Asia"]), NameTable("relation", ["part_of"]))
    >>> render_query(Not(Project(Anchor(0), 1)), names)
    '!"South Asia".^part_of'
    """
    check_renderable(query, vocabulary)
    return fold(query, _path_writer(vocabulary, labels)).text


def check_renderable(query: Query, vocabulary: Vocabulary) -> None:
    """Raise `ConfigError` unless this is a vocabulary, `QueryError` unless this is a query.

    Whether the vocabulary has the ids of the query is not checked here.
    """
    check_vocabulary(vocabulary)
    for kind, ids in zip(("entity", "relation"), slots_of(query), strict=True):
        check_whole(kind, ids)


def render_parts(query: Query, vocabulary: Vocabulary) -> list[str]:
    """The text of `render_query` for every node, in the order of `subtrees`, by a single walk."""
    return [part.text for part in fold_each(query, _path_writer(vocabulary, labels=False))]


def _path_writer(
    vocabulary: Vocabulary, labels: bool
) -> Callable[[Query, tuple[_Text, ...]], _Text]:
    """A function for `fold` that writes a node, given the texts of its operands."""

    def write(node: Query, parts: tuple[_Text, ...]) -> _Text:
        match node:
            case Anchor(entity_id):
                return _Text(as_written(name_of(vocabulary.entities, entity_id, labels)), _PATH)
            case Universe():
                return _Text("*", _PATH)
            case Project(_, relation_id):
                step = _relation(vocabulary, relation_id, labels)
                return _Text(f"{parts[0].within(_PATH)}.{step}", _PATH)
            case Not():
                return _Text(f"!{parts[0].within(_NOT)}", _NOT)
            case And():
                # An intersection within an intersection keeps its parentheses, so that reading
                # the text gives the same nesting.
                return _Text(" & ".join(part.within(_NOT) for part in parts), _AND)
            case Or():
                return _Text(" | ".join(part.within(_AND) for part in parts), _OR)
        assert_never(node)

    return write


def render_formula(query: Query, vocabulary: Vocabulary, *, labels: bool = False) -> str:
    """The query as a first-order formula: `?x: exists y. ... & relation(y, ?x)`.

    Entities are always quoted, so that no name is read as a variable. Raises the same errors as
    `render_query`.

    >>> names = Vocabulary(NameTable("entity", ["Asia"]), NameTable("relation", ["part_of"]))
    >>> render_formula(Project(Project(Anchor(0), 1), 1), names)
    '?x: exists y. part_of(y, "Asia") & part_of(?x, y)'
    """
    check_renderable(query, vocabulary)
    return f"?x: {descend(_FormulaWriter(vocabulary, labels).write(query, '?x')).text}"


def name_of(table: NameTable, index: int, labels: bool) -> str:
    """The name of an id; with `labels`, its label if that label identifies this id."""
    if labels:
        label = table.label(index)
        try:
            if table.id_of(label) == index:
                return label
        except UnknownNameError:  # several ids share the label
            pass
    return table.name(index)


_PATH, _NOT, _AND, _OR, _EXISTS = range(5)
"""Kinds of text by precedence, from tightest to loosest. A looser text inside a tighter one needs
parentheses."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a part of a query, with the precedence of its outermost operator."""

    text: str
    precedence: int

    def within(self, loosest: int) -> str:
        """The text, in parentheses if its precedence is looser than `loosest`."""
        return self.text if self.precedence <= loosest else f"({self.text})"


def _relation(vocabulary: Vocabulary, relation_id: int, labels: bool) -> str:
    """A relation as written in a query, with `^` if it is an inverse."""
    name = as_written(vocabulary.relations.name(relation_id >> 1))
    if labels:
        label = as_written(name_of(vocabulary.relations, relation_id >> 1, labels))
        name = min(name, label, key=len)  # `capital` reads better in a path than "has capital"
    return directed(name, relation_id)


class _FormulaWriter:
    """Writes a query as a condition on a variable; each projection introduces a new variable."""

    def __init__(self, vocabulary: Vocabulary, labels: bool) -> None:
        self._vocabulary = vocabulary
        self._labels = labels
        self._fresh = _variable_names()

    def write(self, query: Query, variable: str) -> Descent[_Text]:
        """The formula that says that `variable` is an answer of `query`."""
        match query:
            case Or(operands):
                parts: list[_Text] = []
                for operand in operands:
                    parts.append((yield self.write(operand, variable)))
                return _Text(" | ".join(part.within(_AND) for part in parts), _OR)
            case Not(operand):
                negated: _Text = yield self.write(operand, variable)
                return _Text(f"!{negated.within(_NOT)}", _NOT)
            case _:
                introduced: list[str] = []
                conjuncts: list[str] = yield self._conjuncts(query, variable, introduced)
                body = " & ".join(conjuncts)
                if introduced:
                    return _Text(f"exists {', '.join(introduced)}. {body}", _EXISTS)
                return _Text(body, _AND if len(conjuncts) > 1 else _PATH)

    def _conjuncts(self, query: Query, variable: str, introduced: list[str]) -> Descent[list[str]]:
        """The conjuncts of the condition on `variable`, each in parentheses where needed.

        New variables are appended to `introduced`.
        """
        match query:
            case Anchor(entity_id):
                return [f"{variable} = {self._entity(entity_id)}"]
            case Universe():
                return [f"*({variable})"]
            case Project(Anchor(entity_id), relation_id):
                return [self._atom(self._entity(entity_id), relation_id, variable)]
            case Project(operand, relation_id):
                inner = next(self._fresh)
                introduced.append(inner)
                below: list[str] = []
                if not isinstance(operand, Universe):
                    below = yield self._conjuncts(operand, inner, introduced)
                return [*below, self._atom(inner, relation_id, variable)]
            case And(operands):
                conjuncts: list[str] = []
                for operand in operands:
                    if isinstance(operand, And):
                        grouped: _Text = yield self.write(operand, variable)
                        conjuncts.append(grouped.within(_NOT))
                    else:
                        conjuncts += yield self._conjuncts(operand, variable, introduced)
                return conjuncts
            case Or() | Not():
                whole: _Text = yield self.write(query, variable)
                return [whole.within(_NOT)]
        assert_never(query)

    def _atom(self, head: str, relation_id: int, tail: str) -> str:
        """`relation(head, tail)`; an inverse relation is written forward with its ends swapped."""
        first, second = (tail, head) if relation_id & 1 else (head, tail)
        return f"{_relation(self._vocabulary, relation_id & ~1, self._labels)}({first}, {second})"

    def _entity(self, entity_id: int) -> str:
        return quote(name_of(self._vocabulary.entities, entity_id, self._labels))


def _variable_names() -> Iterator[str]:
    """y, z, w, v, u, y1, z1, ..."""
    for round_number in count():
        for letter in "yzwvu":
            yield f"{letter}{round_number or ''}"
