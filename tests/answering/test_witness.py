"""The witness search against a brute-force search over all assignments."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given

import small_models
import strategies
from conekg.answering import witness
from conekg.answering.index import EntityIndex
from conekg.answering.witness import WitnessSearch, walk
from conekg.graph.adjacency import Adjacency
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.model.catalog import build_model
from conekg.model.cone import ConeConfig
from conekg.model.interface import QueryModel, Region
from conekg.query.rewrite import push_negation, simplify
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from oracle import Oracle

TELLING = ConeConfig(dim=3, hidden=3, gamma=2.0, initial_scale=3.0)
"""Options of a model whose logits are around zero, so that guesses clearly differ in cost."""


class BruteForce:
    """The cheapest cost of an answer over all assignments; shares no code with the search."""

    def __init__(self, model: QueryModel, graph: KnowledgeGraph) -> None:
        self.model = model
        self.num_entities = graph.num_entities
        self.facts = {tuple(edge) for edge in graph.edges("train").tolist()}
        self.logits: dict[tuple[int, int], list[float]] = {}
        self.regions: dict[Query, list[float]] = {}
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

    def contradiction(self, query: Query, entity_id: int) -> float:
        if query not in self.regions:
            self.regions[query] = small_models.score_queries(self.model, [query])[0].tolist()
        return 100.0 + math.log1p(math.exp(-self.regions[query][entity_id]))

    def cost(self, query: Query, entity_id: int) -> float:
        """The cost of an entity as an answer; at least 100 if that needs a contradiction."""
        match query:
            case Universe():
                return 0.0
            case Anchor() | Not():
                holds = entity_id in self.oracle.answer(query)
                return 0.0 if holds else self.contradiction(query, entity_id)
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
    model = build_model("cone", graph.num_entities, graph.num_relations, TELLING, 0).double().eval()
    search = WitnessSearch(model, EntityIndex(model), graph.adjacency("train"), query)
    cell = search.search(range(graph.num_entities))
    brute = BruteForce(model, graph)
    with torch.inference_mode():
        for entity_id in range(graph.num_entities):
            best = brute.cost(query, entity_id)
            found = float(cell.costs[entity_id])
            if not isinstance(query, Project):
                assert cell.facts[entity_id] == (entity_id in brute.oracle.answer(query))
            if _has_universe_hop(query):
                # For `*` only likely heads are tried, so the cheapest may be missed.
                assert found >= best - 1e-9
            else:
                np.testing.assert_allclose(found, best, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("at_once", [1, 40, 100])
def test_edges_are_scored_a_bounded_number_at_once(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """All heads with all tails at once would fill the memory."""
    graph = random_graph
    model = build_model("cone", graph.num_entities, graph.num_relations, TELLING, 0).double().eval()
    query = Universe().project(2).project(1)
    ids = range(0, graph.num_entities, 2)
    search = WitnessSearch(model, EntityIndex(model), graph.adjacency("train"), query)
    whole = search.search(ids)
    logits, sizes = model.logits, []

    def remember(region: Region, candidates: torch.Tensor) -> torch.Tensor:
        scores = logits(region, candidates)
        sizes.append(tuple(scores.shape))
        return scores

    monkeypatch.setattr(model, "logits", remember)
    monkeypatch.setattr(witness, "_EDGES_AT_ONCE", at_once)
    cell = search.search(ids)
    np.testing.assert_allclose(cell.costs, whole.costs, rtol=1e-12)
    np.testing.assert_array_equal(cell.choices, whole.choices)
    assert len(sizes) > 2
    assert all(heads == 1 or heads * tails <= at_once for heads, tails in sizes)


def _has_universe_hop(query: Query) -> bool:
    """Whether some projection's operand contains `*` outside negations."""
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


def test_steps_come_in_the_order_of_operands(film_graph: KnowledgeGraph) -> None:
    """For a union, the steps of the cheaper operand: that Alien won is not a known fact."""
    model = build_model("cone", 8, 6, ConeConfig(dim=4, hidden=4), 0).eval()
    won, produced = Anchor(0).project(0), Anchor(6).project(4)
    argo, alien, amour = 1, 2, 3

    def origins(query: Query, entity_id: int) -> list[int | None]:
        search = WitnessSearch(model, EntityIndex(model), film_graph.adjacency("train"), query)
        return [step.origin_id for step in walk(search.search([entity_id]), 0)]

    assert origins(And((produced, won)), argo) == [6, 0]
    assert origins(And((won, produced)), argo) == [0, 6]
    assert origins(Or((won, produced)), alien) == [6]
    assert origins(Or((won, produced)), amour) == [0]
    by_its_director = Anchor(alien).project(2).project(3)
    assert origins(Or((won, by_its_director)), alien) == [alien, 5]


def test_what_follows_from_facts_has_a_path_of_facts(random_graph: KnowledgeGraph) -> None:
    """Also if other entities are searched with it, and if the model scores the path badly."""
    model = build_model("cone", 60, random_graph.num_relations, TELLING, 0).double().eval()
    oracle = Oracle(random_graph.edges("train").tolist(), 60)
    index, several = EntityIndex(model), 0
    for anchor in range(0, 60, 9):
        query = Anchor(anchor).project(anchor % 10).project(1).project(4)
        search = WitnessSearch(model, index, random_graph.adjacency("train"), query)
        cell = search.search(range(60))
        known = sorted(oracle.answer(query))
        several += len(known)
        for entity_id in known:
            assert cell.costs[entity_id] == 0
            steps = list(walk(cell, entity_id))
            assert len(steps) == 3
            assert all(step.holds for step in steps)
        assert np.flatnonzero(cell.costs < 1).tolist() == known
    assert several > 5


GUESSED = Or((Anchor(1).project(2), Anchor(10).project(2)))
"""A union of two links without known facts; their likely answers differ."""


@cache
def star_graph() -> tuple[Adjacency, BruteForce]:
    """A graph with facts from thirty entities to entity 0; none is among the likeliest guesses."""
    model = build_model("cone", 100, 4, TELLING, 0).double().eval()
    heads = by_score(model, GUESSED)[30:60]
    edges = [edge for head in heads for edge in ((head, 0, 0), (0, 1, head))]
    told = np.array(edges, dtype=np.int32)
    nothing = np.empty((0, 3), dtype=np.int32)
    graph = KnowledgeGraph(
        "star",
        strategies.plain_vocabulary(100, 2),
        {"train": told, "valid": nothing, "test": nothing},
    )
    return graph.adjacency("train"), BruteForce(model, graph)


def by_score(model: QueryModel, query: Query) -> list[int]:
    """All entities, best first."""
    with torch.inference_mode():
        best_first: list[int] = (-small_models.score_queries(model, [query])[0]).argsort().tolist()
    return best_first


def test_the_likeliest_of_many_factual_origins_are_tried() -> None:
    adjacency, brute = star_graph()
    query = GUESSED.project(0)
    cell = WitnessSearch(brute.model, EntityIndex(brute.model), adjacency, query).search([0])
    with torch.inference_mode():
        by_facts = min(brute.cost(GUESSED, head) for head, _, tail in brute.facts if tail == 0)
    assert cell.costs[0] == pytest.approx(by_facts, rel=1e-9)
    assert cell.facts[0]


@pytest.mark.parametrize(("num_answers", "of_its_own"), [(1, 8), (16, 8), (32, 4), (100, 1)])
def test_more_answers_have_fewer_origins_of_their_own(num_answers: int, of_its_own: int) -> None:
    """All answers share sixteen origins besides."""
    adjacency, brute = star_graph()
    query = GUESSED.project(0)
    search = WitnessSearch(brute.model, EntityIndex(brute.model), adjacency, query)
    (origins,) = search.search(range(num_answers)).operands
    best_first = by_score(brute.model, GUESSED)
    tried = best_first[:16] + best_first[30 : 30 + of_its_own]
    assert origins.entity_ids.tolist() == sorted(tried)


@pytest.mark.parametrize("operand", [GUESSED, Anchor(0).project(1)])
def test_without_facts_the_best_entities_of_the_operand_are_tried(operand: Query) -> None:
    """Sixteen of its known answers, and sixteen of all entities."""
    adjacency, brute = star_graph()
    index, query = EntityIndex(brute.model), operand.project(2)
    known = brute.oracle.answer(operand)
    best_first = by_score(brute.model, operand)
    tried = best_first[:16] + [head for head in best_first if head in known][:16]
    for entity_id in (5, 6):
        (cost,) = WitnessSearch(brute.model, index, adjacency, query).search([entity_id]).costs
        with torch.inference_mode():
            expected = min(brute.cost(operand, h) + brute.hop(h, 2, entity_id) for h in tried)
        assert cost == pytest.approx(expected, rel=1e-9)


def test_for_a_universe_the_likeliest_head_is_tried() -> None:
    adjacency, brute = star_graph()
    query = Project(Universe(), 2)
    search = WitnessSearch(brute.model, EntityIndex(brute.model), adjacency, query)
    for entity_id in (5, 6):
        (step,) = walk(search.search([entity_id]), 0)
        assert not step.holds
        assert step.origin_id == by_score(brute.model, Anchor(entity_id).project(3))[0]


def test_ties_between_origins_are_broken_by_the_model(random_graph: KnowledgeGraph) -> None:
    config = ConeConfig(dim=6, hidden=5)
    model = build_model("cone", random_graph.num_entities, random_graph.num_relations, config, 0)
    adjacency = random_graph.adjacency("train")
    brute = BruteForce(model.eval(), random_graph)
    several = 0
    for relation in range(random_graph.num_relations):
        # With `*` as the operand, every head of a fact is an equally cheap origin.
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
