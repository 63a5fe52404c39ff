"""The oracle: exact answers computed with Python sets from the edge triples.

It is slow and simple on purpose and shares no code with the engine, so that a mistake in one of
them shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable

from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe

Triple = tuple[int, int, int]


class Oracle:
    """Answers queries on a graph given as (head, relation, tail) triples."""

    def __init__(self, triples: Iterable[Triple], num_entities: int) -> None:
        self.everything = set(range(num_entities))
        self.tails: dict[tuple[int, int], set[int]] = {}
        for head, relation, tail in triples:
            self.tails.setdefault((int(head), int(relation)), set()).add(int(tail))

    def answer(self, query: Query) -> set[int]:
        """The entities that answer the query."""
        match query:
            case Anchor(entity_id):
                return {entity_id}
            case Universe():
                return set(self.everything)
            case Project(operand, relation_id):
                heads = self.answer(operand)
                return set().union(*(self.tails.get((h, relation_id), set()) for h in heads))
            case And(operands):
                return set.intersection(*map(self.answer, operands))
            case Or(operands):
                return set.union(*map(self.answer, operands))
            case Not(operand):
                return self.everything - self.answer(operand)
