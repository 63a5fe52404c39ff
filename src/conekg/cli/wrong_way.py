"""Notes of `conekg ask` on a relation that was probably followed in the wrong direction.

If all facts of France with `country` have France as their tail, the answers to `France.country` are
only guesses, and `France.^country` was probably meant.
"""

from __future__ import annotations

from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.query.render import render_query
from conekg.query.tree import Anchor, Project, Query, inverse_of, subtrees


def wrong_way_notes(query: Query, graph: KnowledgeGraph, known: Split) -> list[str]:
    """A note for each step from an entity whose known facts only go in the other direction."""
    facts = graph.adjacency(known)
    notes = []
    for node in subtrees(query):
        match node:
            case Project(Anchor(entity_id) as anchor, relation_id):
                back = inverse_of(relation_id)
                turned = len(facts.neighbors(entity_id, back))
                if turned and not len(facts.neighbors(entity_id, relation_id)):
                    asked, other = (
                        render_query(step, graph.vocabulary, labels=True)
                        for step in (node, Project(anchor, back))
                    )
                    notes.append(
                        f"no known fact matches {asked}; {other} has {turned:,}: was that meant?"
                    )
            case _:
                pass
    return list(dict.fromkeys(notes))
