"""Renders a query as SPARQL that any engine can run over the same facts.

Positive parts come before negated ones, because SPARQL variables must be bound before they are
filtered. `?x a owl:Thing` stands for the set of all entities; an engine can answer such queries
only if its data has that triple for each entity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import assert_never

from conekg.graph.vocabulary import Vocabulary
from conekg.query.iri import NAMESPACE, written_iri
from conekg.query.render import check_renderable
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
)


def render_sparql(query: Query, vocabulary: Vocabulary) -> str:
    """The query as SPARQL that selects `?x`; read back, it has the same answers.

    Raises the same errors as `render_query`.

    >>> from conekg.graph.vocabulary import NameTable, Vocabulary
    >>> names = Vocabulary(NameTable("entity", ["France"]), NameTable("relation", ["borders"]))
    >>> print(render_sparql(Anchor(0).project(0), names))
    PREFIX : <urn:conekg:>
    SELECT DISTINCT ?x WHERE {
      :France :borders ?x .
    }
    """
    check_renderable(query, vocabulary)
    lines = descend(_SparqlWriter(vocabulary).group(query, "?x"))
    body = "\n".join(_indented(lines))
    prefixes = [f"PREFIX : <{NAMESPACE}>"]
    if "owl:Thing" in body:
        prefixes.append("PREFIX owl: <http://www.w3.org/2002/07/owl#>")
    return "\n".join([*prefixes, "SELECT DISTINCT ?x WHERE {", body, "}"])


class _SparqlWriter:
    """Writes the lines of a pattern that binds a variable to the answers of a query."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._fresh: Iterator[str] = (f"?y{number}" for number in count(1))

    def group(self, query: Query, variable: str) -> Descent[list[str]]:
        """The lines between two braces."""
        conditions = query.operands if isinstance(query, And) else (query,)
        lines: list[str] = []
        for condition in conditions:
            if not isinstance(condition, Not):
                lines += yield self._binding(condition, variable)
        if not lines:
            lines.append(f"{variable} a owl:Thing .")
        for condition in conditions:
            if isinstance(condition, Not):
                negated: list[str] = yield self.group(condition.operand, variable)
                lines += ["FILTER NOT EXISTS {", *_indented(negated), "}"]
        return lines

    def _binding(self, query: Query, variable: str) -> Descent[list[str]]:
        """The lines for one condition within a group."""
        match query:
            case Anchor(entity_id):
                return [f"VALUES {variable} {{ {self._entity(entity_id)} }}"]
            case Universe():
                return [f"{variable} a owl:Thing ."]
            case Project(operand, relation_id):
                step: list[str] = yield self._step(operand, relation_id, variable)
                return step
            case Or(operands):
                lines: list[str] = []
                for operand in operands:
                    choice: list[str] = yield self.group(operand, variable)
                    lines += ["} UNION {" if lines else "{", *_indented(choice)]
                return [*lines, "}"]
            case And() | Not():
                whole: list[str] = yield self.group(query, variable)
                return ["{", *_indented(whole), "}"]
        assert_never(query)

    def _step(self, operand: Query, relation_id: int, variable: str) -> Descent[list[str]]:
        """The lines for a projection: those of its operand, then one triple."""
        below: list[str] = []
        if isinstance(operand, Anchor):
            head = self._entity(operand.entity_id)
        else:
            head = next(self._fresh)
            if not isinstance(operand, Universe):  # for `*` the triple alone binds its head
                below = yield self.group(operand, head)
        relation = written_iri(self._vocabulary.relations.name(relation_id >> 1))
        first, second = (variable, head) if relation_id & 1 else (head, variable)
        return [*below, f"{first} {relation} {second} ."]

    def _entity(self, entity_id: int) -> str:
        return written_iri(self._vocabulary.entities.name(entity_id))


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
