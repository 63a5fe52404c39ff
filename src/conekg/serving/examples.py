"""Example questions for the page: chosen for the built-in graph, sampled for any other."""

from __future__ import annotations

import numpy as np

from conekg.answering.reading import read_query
from conekg.errors import UnknownNameError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.shape import shape_of
from conekg.query.tree import Query, has_negation
from conekg.sampling.query_set import QuerySet
from conekg.serving.schemas import Example

GEOGRAPHY = (
    "France.borders",
    "China.borders & India.borders",
    "Germany.borders & !German.^speaks",
    '("South America".^in_subregion & !Spanish.^speaks).capital',
    "(Portugal | Brazil).speaks",
)
"""Questions about the built-in graph whose answers are common knowledge."""

SHAPES = ("1p", "2p", "2i", "2in", "up", "pin")
"""Shapes of sampled examples: one of each that the run has queries of."""


def examples_of(
    graph: KnowledgeGraph, query_set: QuerySet | None = None, *, can_negate: bool = True
) -> tuple[Example, ...]:
    """Example questions about a graph, without those with negation unless `can_negate`."""
    found: list[Query] = []
    if graph.name == "geography":
        found = _chosen(graph)
    if not found and query_set is not None:
        found = _sampled(query_set)
    return tuple(_example(graph, query) for query in found if can_negate or not has_negation(query))


def _chosen(graph: KnowledgeGraph) -> list[Query]:
    try:
        return [parse_query(text, graph.vocabulary) for text in GEOGRAPHY]
    except UnknownNameError:  # another graph that happens to be called geography
        return []


def _sampled(query_set: QuerySet) -> list[Query]:
    """For each shape, the query with the fewest answers, as those are quickest to read."""
    queries = []
    for block in query_set:
        if block.shape.name in SHAPES and len(block):
            sizes = block.easy.lengths + block.hard.lengths
            queries.append(block.query(int(np.argmin(sizes))))
    return sorted(queries, key=lambda query: SHAPES.index(shape_of(query).name))


def _example(graph: KnowledgeGraph, query: Query) -> Example:
    return Example(
        query=render_query(query, graph.vocabulary),
        reading=read_query(query, graph.vocabulary),
        shape=shape_of(query).name,
    )
