"""Explanations as plain, frozen values: variables, witness paths, and the weakest part.

`explain` makes them; they can be turned into JSON directly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from typing import Literal

from conekg.answering.answer import RankedAnswer
from conekg.lines import one_line

EdgeKind = Literal["fact", "guess"]
PartKind = Literal["fact", "guess", "absent", "contradicted"]


@dataclass(frozen=True, slots=True)
class EntityName:
    """An entity with its id, its unique name and its readable label."""

    entity_id: int
    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Variable:
    """An inner node of the query, in words, with its best entities."""

    name: str
    """`x1`, `x2`, ... from the anchors towards the answer."""
    query: str
    """The sub-query that this variable answers, in canonical text."""
    reading: str
    candidates: tuple[RankedAnswer, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One hop of a witness path, in the direction of the query."""

    head: EntityName
    relation: str
    """The relation's name; `^name` if the query follows it backwards."""
    relation_label: str
    tail: EntityName
    kind: EdgeKind
    score: float
    """The model's logit for this single hop, also if it is a fact."""
    head_variable: str | None
    """The variable that `head` stands for; None if it is a named entity of the query."""
    tail_variable: str
    """The variable that `tail` stands for; `answer` at the end of the path."""


@dataclass(frozen=True, slots=True)
class Part:
    """One hop or one negated condition of the query, and whether the known facts support it.

    A hop is a `fact` or a `guess`. A negated condition is `absent` if no known fact contradicts
    it, else `contradicted`. A named entity is a `fact` if the witness has that entity in its
    place, else `contradicted`.
    """

    query: str
    """The part of the query, in canonical text."""
    reading: str
    kind: PartKind
    score: float
    """The model's logit for the hop, or for the negated condition."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Why one entity is an answer: an assignment of all variables, edge by edge."""

    answer: RankedAnswer
    edges: tuple[Edge, ...]
    """From the anchors to the answer, in the order of the query."""
    assignment: dict[str, EntityName]
    """The entity chosen for each variable on the way."""
    parts: tuple[Part, ...]
    weakest: Part | None
    """The least supported part: a contradiction, else the lowest scoring of the guesses and of the
    conditions that no fact is against, else of the facts. None if the query (`*`) has no parts."""
    facts_only: bool
    """Whether every edge is a fact and nothing is contradicted."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The best entities of a query's variables, and a witness for each answer."""

    query: str
    reading: str
    variables: tuple[Variable, ...]
    witnesses: tuple[Witness, ...]
    explained: str | None = None
    """In plain words the query without parts that change no answer, such as those that facts leave
    empty; variables and witnesses are about it. None if they are about the whole query."""

    def __str__(self) -> str:
        lines = [one_line(self.reading), *shortened_lines(self)]
        for witness in self.witnesses:
            lines.append(one_line(f"{witness.answer.rank}. {witness.answer.label}"))
            lines += witness_lines(
                witness, lambda entity: entity.label, lambda edge: edge.relation_label
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows: the same text."""
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, object]:
        """The explanation as plain dictionaries, tuples, strings and numbers, for `json.dumps`."""
        return asdict(self)


def shortened_lines(explanation: Explanation) -> list[str]:
    """The line that says what is explained instead of the whole query; none if it is the whole."""
    if explanation.explained is None:
        return []
    return [f"without parts that change no answer: {one_line(explanation.explained)}"]


def witness_lines(
    witness: Witness, title: Callable[[EntityName], str], relation_title: Callable[[Edge], str]
) -> list[str]:
    """One line per edge and per negated condition, with entities and relations by their titles."""
    lines = []
    for edge in witness.edges:
        link = f"{title(edge.head)} –{relation_title(edge)}→ {title(edge.tail)}"
        lines.append(f"  {edge.kind:5}  {one_line(link)}  ({edge.score:.2f})")
    for part in witness.parts:
        if part.kind in ("absent", "contradicted"):
            against = "no fact" if part.kind == "absent" else "a fact"
            lines.append(f"  {against} against: {one_line(part.reading)}  ({part.score:.2f})")
    return lines


@dataclass(frozen=True, slots=True)
class SectorCone:
    """One dimension of a query's cone and of an entity; angles in radians."""

    dimension: int
    axis: float
    """In [-π, π)."""
    half_aperture: float
    """Half of the cone's opening, in [0, π]."""
    entity_angle: float
    inside: bool
