"""Explaining: what each variable of a query stood for, and why an entity is an answer.

A witness assigns an entity to every variable. Facts are free and guesses cost what
the model's one-hop projection says, so the cheapest assignment prefers facts; for an
answer that the known graph holds, it consists of facts alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from conekg.answering.answer import Question
from conekg.answering.engine import Answerer, Understood
from conekg.answering.explanation import Explanation, SectorCone
from conekg.query.tree import Query


def explain(
    answerer: Answerer,
    question: Question | Understood,
    *,
    entities: Sequence[int] | None = None,
    candidates: int = 5,
) -> Explanation:
    """The variables of the question's query and a witness for each of its top answers.

    `entities` explains these entity ids instead of the top answers; `candidates` is how
    many entities each variable lists.
    """


def sector_cones(
    answerer: Answerer, query: Query, entity_id: int, *, dimensions: Sequence[int] | None = None
) -> tuple[SectorCone, ...]:
    """The query's cones with the entity's angles in them; empty for models without cones.

    By default the eight dimensions whose cones are narrowest and so say most.
    """
