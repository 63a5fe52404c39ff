"""The witness search against trying every assignment."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given

import strategies
from conekg.answering.index import EntityIndex
from conekg.answering.witness import WitnessSearch, walk
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.model.catalog import build_model
from conekg.model.cone import ConeConfig
from conekg.model.interface import QueryModel
from conekg.query.rewrite import push_negation, simplify
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from oracle import Oracle


class BruteForce:
    """The cheapest cost of an answer over all assignments; shares no code with the search."""

    def __init__(self, model: QueryModel, graph: KnowledgeGraph) -> None:
        self.model = model
        self.num_entities = graph.num_entities
        self.facts = {tuple(edge) for edge in graph.edges("train").tolist()}
        self.logits: dict[tuple[int, int], list[float]] = {}
        self.oracle = Oracle(self.facts, graph.num_entities)

    def hop(self, head: int, relation: int, tail: int) -> float:
        if (head, relation, tail) in self.facts:
            return 0.0
        if (head, relation) not in self.logits:
            self.logits[head, relation] = self.one_hop(head, relation)
        return 1.0 + math.log1p(math.exp(-self.logits[head, relation][tail]))

    def one_hop(self, head: int, relation: int) -> list[float]:
        region = self.model.project(
            self.model.anchor(torch.tensor([head])), torch.tensor([relation])
        )
        logits: list[float] = self.model.logits_of_all(region)[0].tolist()
        return logits

    def cost(self, query: Query, entity_id: int) -> float:
        """Infinite where only a contradiction would do."""
        match query:
            case Universe():
                return 0.0
            case Anchor() | Not():
                return 0.0 if entity_id in self.oracle.answer(query) else math.inf
            case And(operands):
                return sum(self.cost(operand, entity_id) for operand in operands)
            case Or(operands):
                return min(self.cost(operand, entity_id) for operand in operands)
            case Project(operand, relation):
                return min(
                    self.cost(operand, head) + self.hop(head, relation, entity_id)
                    for head in range(self.num_entities)
                )


@given(strategies.graphs_with_queries(max_leaves=3))
def test_the_cheapest_assignment_is_found(given_graph: tuple[KnowledgeGraph, Query]) -> None:
    graph, query = given_graph
    query = simplify(push_negation(query))
    config = ConeConfig(dim=3, hidden=3)
    model = build_model("cone", graph.num_entities, graph.num_relations, config, 0).double().eval()
    search = WitnessSearch(model, EntityIndex(model), graph.adjacency("train"), query)
    cell = search.search(range(graph.num_entities))
    brute = BruteForce(model, graph)
    with torch.inference_mode():
        for entity_id in range(graph.num_entities):
            best = brute.cost(query, entity_id)
            found = float(cell.costs[entity_id])
            if math.isinf(best):
                assert found >= 100
            elif _has_universe_hop(query):
                # Of "anything" only likely heads are tried, so the cheapest may be missed.
                assert found >= best - 1e-9
            else:
                np.testing.assert_allclose(found, best, rtol=1e-9, atol=1e-9)


def _has_universe_hop(query: Query) -> bool:
    """Whether some projection starts from anything at all, directly or within operators."""
    match query:
        case Anchor() | Universe():
            return False
        case Project(operand, _):
            return not isinstance(operand, Anchor) and _mentions_universe(operand)
        case Not():
            return False
        case And(operands) | Or(operands):
            return any(_has_universe_hop(operand) for operand in operands)


def _mentions_universe(query: Query) -> bool:
    match query:
        case Universe():
            return True
        case Anchor() | Not():
            return False
        case Project(operand, _):
            return _mentions_universe(operand)
        case And(operands) | Or(operands):
            return any(_mentions_universe(operand) for operand in operands)


def test_steps_lead_from_the_anchor_to_the_answer(film_graph: KnowledgeGraph) -> None:
    model = build_model("cone", 8, 6, ConeConfig(dim=4, hidden=4), 0).eval()
    query = Anchor(0).project(0).project(2)
    search = WitnessSearch(model, EntityIndex(model), film_graph.adjacency("train"), query)
    steps = list(walk(search.search([4]), 0))
    assert [(step.origin_id, step.entity_id, step.holds) for step in steps] == [
        (0, 1, True),
        (1, 4, True),
    ]


def test_of_equally_cheap_origins_the_model_chooses(random_graph: KnowledgeGraph) -> None:
    config = ConeConfig(dim=6, hidden=5)
    model = build_model("cone", random_graph.num_entities, random_graph.num_relations, config, 0)
    adjacency = random_graph.adjacency("train")
    brute = BruteForce(model.eval(), random_graph)
    several = 0
    for relation in range(random_graph.num_relations):
        # Whatever has such an edge: every head of a fact is as cheap an origin as another.
        query = Project(Universe(), relation)
        search = WitnessSearch(model, EntityIndex(model), adjacency, query)
        entity_ids = sorted(brute.oracle.answer(query))
        cell = search.search(entity_ids)
        for candidate, entity_id in enumerate(entity_ids):
            heads = [h for h, r, t in brute.facts if (r, t) == (relation, entity_id)]
            if not 1 < len(heads) <= 2:
                continue
            several += 1
            (step,) = walk(cell, candidate)
            assert step.holds
            assert step.score == pytest.approx(
                max(brute.one_hop(head, relation)[entity_id] for head in heads), rel=1e-4
            )
    assert several > 50
