"""Hypothesis strategies for all layers: names, small graphs, queries of any shape.

Graphs are so small that answer sets are neither always empty nor always all entities, and queries
are so short that the simple, slow oracle is quick enough.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from hypothesis import strategies as st

from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.shape import Shape, shape_of
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe

MAX_ENTITIES = 8
MAX_RELATION_NAMES = 3
MAX_TRIPLES = 24


def names() -> st.SearchStrategy[str]:
    """Names as they occur in real data: identifiers, paths, prose, quotes, any script."""
    awkward = st.sampled_from(
        ["/m/02x", "concept:team:lakers", "Côte d'Ivoire", 'say "hi"', "back\\slash", "a.b", "*",
         "exists", "SELECT", "?x", ":x", "x y", "日本", "हिन्दी", "tab\there", "^up", "(", "-1"]
    )  # fmt: skip
    # Neither surrogates, which text files cannot have, nor control characters, which end names.
    any_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
    return awkward | any_text


def vocabularies() -> st.SearchStrategy[Vocabulary]:
    """Vocabularies as large as the largest graphs, with distinct, often awkward, names."""
    relation_names = names().filter(lambda name: not name.startswith("^"))

    def table(kind: str, name: st.SearchStrategy[str], size: int) -> st.SearchStrategy[NameTable]:
        many = st.lists(name, min_size=size, max_size=size, unique=True)
        return many.map(lambda found: NameTable(kind, found))

    return st.builds(
        Vocabulary,
        table("entity", names(), MAX_ENTITIES),
        table("relation", relation_names, MAX_RELATION_NAMES),
    )


@cache
def plain_vocabulary(
    num_entities: int = MAX_ENTITIES, num_relation_names: int = MAX_RELATION_NAMES
) -> Vocabulary:
    """Entities e0, e1, ... and relations r0, r1, ..."""
    return Vocabulary(
        NameTable("entity", [f"e{i}" for i in range(num_entities)]),
        NameTable("relation", [f"r{i}" for i in range(num_relation_names)]),
    )


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """Small graphs: distinct triples, each in one of the three splits, with their inverses.

    Hypothesis draws only sizes and a seed for the triples: it takes long for each number, and it
    prefers short lists, so most graphs would have hardly any edge. With the same seed, a smaller
    number of triples gives the first ones of a larger number.
    """
    num_entities = draw(st.integers(1, MAX_ENTITIES))
    num_names = draw(st.integers(1, MAX_RELATION_NAMES))
    limits = (num_entities, num_names, num_entities)
    count = draw(st.integers(0, MAX_TRIPLES))
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    chosen = generator.permutation(math.prod(limits))
    dealt = generator.integers(0, len(SPLITS), len(chosen))[:count]
    triples = np.stack(np.unravel_index(chosen[:count], limits), axis=1)
    edges = {}
    for split in SPLITS:
        own = triples[dealt == SPLITS.index(split)].tolist()
        both = [edge for h, r, t in own for edge in ((h, 2 * r, t), (t, 2 * r + 1, h))]
        edges[split] = np.array(both, dtype=np.int32).reshape(-1, 3)
    return KnowledgeGraph("random", plain_vocabulary(num_entities, num_names), edges)


@cache  # hypothesis validates each new strategy object, which takes half the time of a draw
def queries(
    num_entities: int = MAX_ENTITIES,
    num_relations: int = 2 * MAX_RELATION_NAMES,
    *,
    max_leaves: int = 6,
    universe: bool = True,
    union: bool = True,
    negation: bool = True,
) -> st.SearchStrategy[Query]:
    """Queries of any shape with at most `max_leaves` entities; operators can be excluded."""
    anchors = st.builds(Anchor, st.integers(0, num_entities - 1))
    relation_ids = st.integers(0, num_relations - 1)
    leaves = anchors | st.builds(Universe) if universe else anchors

    def extend(below: st.SearchStrategy[Query]) -> st.SearchStrategy[Query]:
        several = st.lists(below, min_size=2, max_size=3).map(tuple)
        grown = st.builds(Project, below, relation_ids) | st.builds(And, several)
        if union:
            grown |= st.builds(Or, several)
        if negation:
            grown |= st.builds(Not, below)
        return grown

    return st.recursive(leaves, extend, max_leaves=max_leaves)


def shapes(*, negation: bool = True) -> st.SearchStrategy[Shape]:
    """Shapes of random queries."""
    return queries(negation=negation).map(shape_of)


@st.composite
def graphs_with_queries(
    draw: st.DrawFn, *, max_leaves: int = 6, negation: bool = True
) -> tuple[KnowledgeGraph, Query]:
    """A small graph and a query that uses its entities and relations."""
    graph = draw(graphs())
    query = draw(
        queries(graph.num_entities, graph.num_relations, max_leaves=max_leaves, negation=negation)
    )
    return graph, query
