"""Questions that a server asks itself before it listens.

The loops of answering and explaining are compiled when they first run, or loaded if an earlier
process has compiled them. Compiling can take longer than a request may, so no client should cause
it. Each loop is run here by a question that needs it.
"""

from __future__ import annotations

from conekg.answering.answer import Question
from conekg.answering.engine import Answerer
from conekg.answering.explain import explain
from conekg.query.tree import Anchor, And, Not, Or, Project, Query


def rehearse(answerer: Answerer, top_k: int) -> None:
    """Run every loop that may serve a request for up to `top_k` answers."""
    facts = answerer.graph.edges("train")
    head, relation = map(int, facts[0, :2]) if len(facts) else (0, 0)
    start = Project(Anchor(head), relation)
    back = Project(start, relation ^ 1)
    either = Or((start, back))
    queries: list[Query] = [start, either, And((start, back))]
    if answerer.model.can_negate:
        queries.append(And((start, Not(back))))
    # Few answers are searched for in another way than many, and than the few that are known.
    questions = [Question(query, count) for query in queries for count in (1, top_k)]
    answerer.ask_batch([*questions, Question(start, only="known")])
    for query in (start, either):  # one branch is scored by another loop than several
        explain(answerer, query, entities=[head])
