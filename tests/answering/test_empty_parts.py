"""Empty parts against every completion of a small graph, and against bounds computed as sets."""

from __future__ import annotations

from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from conekg.answering.empty_parts import without_empty_parts
from conekg.answering.facts import facts_of
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.query.branches import count_branches
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.rewrite import settle
from conekg.query.shape import grounded
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from oracle import Oracle

NUM_ENTITIES = 3
EDGES = [(head, tail) for head in range(NUM_ENTITIES) for tail in range(NUM_ENTITIES)]
Edges = frozenset[tuple[int, int]]


def with_inverse(edges: Edges) -> list[tuple[int, int, int]]:
    return [triple for head, tail in edges for triple in ((head, 0, tail), (tail, 1, head))]


def graph_of(edges: Edges, later: Edges = frozenset()) -> KnowledgeGraph:
    """A graph of one relation, with some of its edges held out."""
    triples = {"train": edges, "valid": frozenset(), "test": later}
    return KnowledgeGraph(
        "small",
        strategies.plain_vocabulary(NUM_ENTITIES, 1),
        {
            split: np.array(sorted(with_inverse(own)), dtype=np.int32).reshape(-1, 3)
            for split, own in triples.items()
        },
    )


def completions(edges: Edges) -> list[Oracle]:
    missing = [edge for edge in EDGES if edge not in edges]
    subsets = chain.from_iterable(combinations(missing, n) for n in range(len(missing) + 1))
    return [Oracle(with_inverse(edges | set(more)), NUM_ENTITIES) for more in subsets]


def knowns() -> st.SearchStrategy[Edges]:
    """Facts that lack few enough edges for all completions to be tried."""
    return st.frozensets(st.sampled_from(EDGES), min_size=4)


def queries() -> st.SearchStrategy[Query]:
    """Queries in which names meet negations, many of which have empty parts."""
    plain = strategies.queries(NUM_ENTITIES, 2, max_leaves=3)
    name = st.builds(Anchor, st.integers(0, NUM_ENTITIES - 1))
    doubtful = st.builds(lambda a, b: a & ~b, name, plain)
    step = st.builds(Project, doubtful, st.integers(0, 1))
    return st.one_of(
        strategies.queries(NUM_ENTITIES, 2, max_leaves=5),
        doubtful,
        step,
        st.builds(lambda a, b: Or((a, b)), plain, doubtful | step),
        st.builds(
            lambda a, b, c: (a | b) & c, name, plain | doubtful, doubtful | st.builds(Not, plain)
        ),
        st.builds(lambda a, b, c, d: (a | b) & (c | ~d), name, doubtful, name, plain),
        st.builds(lambda a, b, c, d: ~((a | ~b) & (~c | d)), name, plain, plain, name),
        st.builds(lambda a, b: Project(And((a, Not(b))), 0), plain, doubtful | step),
        st.builds(lambda a, b: Project(And((a, Not(Project(Not(b), 1)))), 0), name, doubtful),
    )


def nested_unions() -> st.SearchStrategy[Query]:
    """Unions inside a union that is intersected with something."""
    name = st.builds(Anchor, st.integers(0, NUM_ENTITIES - 1))
    link = st.builds(Project, name, st.integers(0, 1))
    return st.builds(lambda a, b, c, d, e: (((a | b) & c) | d) & ~e, name, name, link, link, link)


@given(knowns(), queries() | nested_unions())
def test_dropping_empty_parts_changes_the_answers_in_no_completion(
    edges: Edges, query: Query
) -> None:
    whole = grounded(settle(query))
    (left,) = without_empty_parts(graph_of(edges), [(whole, "train")])
    shorter = left.shape.ground(left.entity_ids, left.relation_ids)
    assert settle(shorter) == shorter
    assert count_branches(shorter) <= count_branches(settle(query)), "it still fits the cap"
    for world in completions(edges):
        assert world.answer(shorter) == world.answer(query)


@given(knowns(), queries())
def test_what_is_said_to_have_no_answers_has_none_in_any_completion(
    edges: Edges, query: Query
) -> None:
    graph = graph_of(edges)
    (left,) = without_empty_parts(graph, [(grounded(settle(query)), "train")])
    (facts,) = facts_of(graph, [(left, "train")])
    ruled_out, certain = set(facts.contradicted.tolist()), set(facts.certain.tolist())
    for world in completions(edges):
        assert not ruled_out & world.answer(query)
        assert certain <= world.answer(query)


@pytest.mark.parametrize("kind", [queries(), nested_unions()], ids=["any", "nested"])
@given(edges=knowns(), data=st.data())
def test_each_branch_left_of_a_union_may_have_answers_where_it_stands(
    kind: st.SearchStrategy[Query], edges: Edges, data: st.DataObject
) -> None:
    query = data.draw(kind)
    facts = Oracle(with_inverse(edges), NUM_ENTITIES)
    (left,) = without_empty_parts(graph_of(edges), [(grounded(settle(query)), "train")])
    shorter = left.shape.ground(left.entity_ids, left.relation_ids)
    if bounds(facts, shorter).possible:  # else the whole query is ruled out
        assert not empty_branches(facts, shorter, facts.everything)


def empty_branches(facts: Oracle, query: Query, among: set[int]) -> list[Query]:
    """The branches of unions that have none of the entities that are wanted where they stand."""
    match query:
        case And(operands):
            possibles = [bounds(facts, operand).possible for operand in operands]
            found = []
            for place, operand in enumerate(operands):
                others = possibles[:place] + possibles[place + 1 :]
                found += empty_branches(facts, operand, among.intersection(*others))
            return found
        case Or(operands):
            empty = [each for each in operands if not among & bounds(facts, each).possible]
            return empty + [
                each for operand in operands for each in empty_branches(facts, operand, among)
            ]
        case Project(operand) | Not(operand):
            return empty_branches(facts, operand, facts.everything)
        case _:
            return []


class Bounds(NamedTuple):
    certain: set[int]
    possible: set[int]


def bounds(facts: Oracle, query: Query) -> Bounds:
    """What is an answer in all completions, and what may be one in some, part by part."""
    match query:
        case Anchor() | Universe():
            return Bounds(facts.answer(query), facts.answer(query))
        case Project(operand, relation_id):
            certain, possible = bounds(facts, operand)
            tails = (facts.tails.get((head, relation_id), set()) for head in certain)
            return Bounds(set().union(*tails), facts.everything if possible else set())
        case And(operands) | Or(operands):
            combine = set.intersection if isinstance(query, And) else set.union
            certains, possibles = zip(*(bounds(facts, each) for each in operands), strict=True)
            return Bounds(combine(*certains), combine(*possibles))
        case Not(operand):
            certain, possible = bounds(facts, operand)
            return Bounds(facts.everything - possible, facts.everything - certain)


@given(knowns(), queries())
def test_all_that_the_bounds_of_the_parts_rule_out_is_ruled_out(edges: Edges, query: Query) -> None:
    graph = graph_of(edges)
    expected = bounds(Oracle(with_inverse(edges), NUM_ENTITIES), query)
    (left,) = without_empty_parts(graph, [(grounded(settle(query)), "train")])
    (facts,) = facts_of(graph, [(left, "train")])
    assert set(range(NUM_ENTITIES)) - expected.possible <= set(facts.contradicted.tolist())
    assert expected.certain <= set(facts.certain.tolist())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # Argo has won, and is known to have; Alien may have.
        ("(f1 & !a1.won_by).directed_by", "!*"),
        ("(f2 & !a1.won_by).directed_by", "(f2 & !a1.won_by).directed_by"),
        ("((f1 | f3) & !a1.won_by).directed_by", "!*"),
        # A branch that has nothing in common with what its union is intersected with.
        ("((f1 | f2) & !a1.won_by).directed_by", "(f2 & !a1.won_by).directed_by"),
        ("(f1 | c1.produced) & !a1.won_by", "c1.produced & !a1.won_by"),
        ("(f1 | f2) & (d1 | c1.produced) & !a1.won_by", "f2 & c1.produced & !a1.won_by"),
        ("(c1.produced & f1 | f2) & !a1.won_by", "f2 & !a1.won_by"),
        ("(((f1 | f2) & c1.produced) | d1) & !a1.won_by", "(f2 & c1.produced | d1) & !a1.won_by"),
        ("((f1 | f3) & c1.produced | d1) & !a1.won_by", "d1 & !a1.won_by"),
        (
            "(((f1 | f2) & c1.produced | d1) & f3.^won_by | f2) & !a1.won_by",
            "((f2 & c1.produced | d1) & f3.^won_by | f2) & !a1.won_by",
        ),
        # Not past a step: other films may have won and have the same director.
        ("((f1 | f2).directed_by | d1) & !a1.won_by", "((f1 | f2).directed_by | d1) & !a1.won_by"),
        ("(d1 | !a1.won_by) & (f3 | c1.produced)", "(d1 | !a1.won_by) & c1.produced"),
        ("(d1 | !a1.won_by) & (f2 | c1.produced)", "(d1 | !a1.won_by) & (f2 | c1.produced)"),
        # A step from nothing leads nowhere; an intersection with nothing is nothing.
        ("(f1 & !a1.won_by).directed_by.^directed_by", "!*"),
        ("((f1 & !a1.won_by).directed_by & d1).^directed_by", "!*"),
        # A union loses the branch, a negation of nothing is everything.
        ("c1.produced | (f1 & !a1.won_by)", "c1.produced"),
        ("c1.produced | (f1 & !a1.won_by).directed_by", "c1.produced"),
        ("c1.produced & !(f1 & !a1.won_by).directed_by", "c1.produced"),
        ("f1 & !(f3 & !(f1 & !a1.won_by).directed_by)", "f1"),
        # Two steps are known, so the first film's director did make a film.
        ("(d1 & !a1.won_by.directed_by).^directed_by", "!*"),
        # That a part is empty may follow from another empty part.
        ("(d1 & !(c1.produced & !(f1 & !a1.won_by).directed_by).directed_by).^directed_by", "!*"),
        # A missing fact could make the negated part false, and so Argo an answer.
        (
            "(f1 & !(a1.won_by & !c2.produced)).directed_by",
            "(f1 & !(a1.won_by & !c2.produced)).directed_by",
        ),
        # No fact could: the United States are not France.
        ("(f1 & !(a1.won_by & !c2)).directed_by", "!*"),
        # A part that is not negated may be true of any entity.
        ("(d1 & a1.won_by).directed_by", "(d1 & a1.won_by).directed_by"),
    ],
)
def test_films(film_graph: KnowledgeGraph, text: str, left: str) -> None:
    query = settle(parse_query(text, film_graph.vocabulary))
    (found,) = without_empty_parts(film_graph, [(grounded(query), "train")])
    shorter = found.shape.ground(found.entity_ids, found.relation_ids)
    assert render_query(shorter, film_graph.vocabulary) == left


def test_negations_alone_may_be_empty() -> None:
    """All entities are known to be reached, so none is left from which to go on."""
    graph = graph_of(frozenset({(0, 1), (1, 2), (2, 0)}))
    unreached = ~Universe().project(0)
    asked = [Project(unreached, 0), Anchor(0) | unreached, ~(unreached & ~Anchor(0).project(0))]
    found = without_empty_parts(graph, [(grounded(query), "train") for query in asked])
    assert found == [grounded(query) for query in (~Universe(), Anchor(0), Universe())]


def test_each_query_is_judged_by_its_own_facts() -> None:
    """A held-out fact leaves a part empty only where it counts as known."""
    graph = graph_of(frozenset({(0, 1)}), later=frozenset({(0, 2)}))
    first, second = (grounded(Project(Anchor(i) & ~Anchor(0).project(0), 0)) for i in (1, 2))
    asked = [(query, split) for query in (first, second) for split in SPLITS]
    found = without_empty_parts(graph, asked)
    nothing = grounded(Not(Universe()))
    assert found == [nothing, nothing, nothing, second, second, nothing]


def test_a_query_without_empty_parts_is_returned_itself(film_graph: KnowledgeGraph) -> None:
    split: Split = "train"
    asked = [(grounded(parse_query(text, film_graph.vocabulary)), split) for text in (
        "a1.won_by", "f1 & !a1.won_by", "(c1.produced & !a1.won_by).directed_by", "!f1.directed_by",
    )]  # fmt: skip
    found = without_empty_parts(film_graph, asked)
    assert all(left is query for left, (query, _) in zip(found, asked, strict=True))
    assert without_empty_parts(film_graph, []) == []
