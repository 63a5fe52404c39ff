"""What `conekg ask` says where a question follows a relation against all facts of its entity.

`France.country` is a question like any other, and its answers are guesses; who wrote it may
have meant `France.^country`.
"""

from __future__ import annotations

from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.query.render import render_query
from conekg.query.tree import Anchor, Project, Query, inverse_of, subtrees


def wrong_way_notes(query: Query, graph: KnowledgeGraph, known: Split) -> list[str]:
    """A note for each step from an entity that its known facts only take the other way."""
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
