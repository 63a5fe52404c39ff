"""Witnesses are checked against the graph: facts are facts, and known answers need no guess."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import small_models
import strategies
from conekg.answering import reading
from conekg.answering.answer import Question
from conekg.answering.engine import Answerer
from conekg.answering.explain import explain, sector_cones, variables_of
from conekg.answering.explanation import Witness
from conekg.answering.relation_phrase import Phrase, one_hop
from conekg.errors import ConfigError, QueryTooLargeError, UnknownNameError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.model.catalog import build_model
from conekg.model.cone import ConeConfig
from conekg.model.gqe import GqeConfig
from conekg.model.interface import MAJORITY
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm
from conekg.query.parse import parse_query
from conekg.query.rewrite import NOTHING, push_negation, settle, simplify
from conekg.query.tree import Anchor, And, Not, Or, Project, Query, Universe
from oracle import Oracle
from untrained_run import untrained_run


def make(graph: KnowledgeGraph, max_branches: int = DEFAULT_BRANCH_CAP) -> Answerer:
    config = ConeConfig(dim=6, hidden=5)
    model = build_model("cone", graph.num_entities, graph.num_relations, config, 0)
    return Answerer(graph, model, max_branches=max_branches)


def facts_of(graph: KnowledgeGraph, split: Split) -> set[tuple[int, int, int]]:
    parts = [graph.edges(part) for part in SPLITS[: SPLITS.index(split) + 1]]
    return {tuple(edge) for edge in np.concatenate(parts).tolist()}


def satisfies(
    query: Query, entity_id: int, edges: set[tuple[int, int, int]], oracle: Oracle
) -> bool:
    """Whether the entity is an answer by the edges alone, and by all facts under negations."""
    match query:
        case Anchor(anchor_id):
            return anchor_id == entity_id
        case Universe():
            return True
        case Project(operand, relation_id):
            heads = {h for h, r, t in edges if r == relation_id and t == entity_id}
            return any(satisfies(operand, head, edges, oracle) for head in heads)
        case And(operands):
            return all(satisfies(operand, entity_id, edges, oracle) for operand in operands)
        case Or(operands):
            return any(satisfies(operand, entity_id, edges, oracle) for operand in operands)
        case Not():
            return entity_id in oracle.answer(query)


def triples(witness: Witness, graph: KnowledgeGraph) -> set[tuple[int, int, int]]:
    return {
        (edge.head.entity_id, graph.vocabulary.relation_id(edge.relation), edge.tail.entity_id)
        for edge in witness.edges
    }


@given(given_graph=strategies.graphs_with_queries(), split=st.sampled_from(SPLITS))
def test_witnesses_hold_on_the_graph(
    given_graph: tuple[KnowledgeGraph, Query], split: Split
) -> None:
    graph, query = given_graph
    answerer = make(graph)
    question = Question(query, top_k=graph.num_entities, known_graph=split, keep_contradicted=True)
    explanation = explain(answerer, question, candidates=2)
    facts = facts_of(graph, split)
    oracle = Oracle(facts, graph.num_entities)
    known = oracle.answer(query)
    normal = simplify(push_negation(query))
    assert len(explanation.witnesses) == graph.num_entities
    for witness in explanation.witnesses:
        edges = triples(witness, graph)
        for edge, triple in zip(
            witness.edges,
            [(e.head.entity_id, graph.vocabulary.relation_id(e.relation), e.tail.entity_id)
             for e in witness.edges],
            strict=True,
        ):  # fmt: skip
            assert (edge.kind == "fact") == (triple in facts)
        entity_id = witness.answer.entity_id
        assert witness.answer.known == (entity_id in known)
        # Known answers have a path of facts alone, and it must be found; others have none.
        assert witness.facts_only == witness.answer.known
        if not any(part.kind == "contradicted" for part in witness.parts):
            assert satisfies(normal, entity_id, edges, oracle)
        else:
            assert not witness.facts_only
    json.dumps(explanation.to_json())


@given(strategies.graphs_with_queries())
def test_variables_and_assignments_agree(given_graph: tuple[KnowledgeGraph, Query]) -> None:
    graph, query = given_graph
    question = Question(query, top_k=3, keep_contradicted=True)
    answerer = make(graph)
    explanation = explain(answerer, question, candidates=2)
    (answered,) = answerer.without_empty_parts([answerer.understand(question)])
    left = simplify(push_negation(answered.query))
    form = settle(left) if settle(left) != NOTHING else left
    variables = variables_of(form)
    assert [v.name for v in explanation.variables] == [f"x{i + 1}" for i in range(len(variables))]
    for variable, node in zip(explanation.variables, variables, strict=True):
        assert parse_query(variable.query, graph.vocabulary) == node
        assert 1 <= len(variable.candidates) <= 2
    for witness in explanation.witnesses:
        for edge in witness.edges:
            if edge.head_variable is not None:
                assert witness.assignment[edge.head_variable] == edge.head
            if edge.tail_variable == "answer":
                assert edge.tail.entity_id == witness.answer.entity_id
            else:
                assert witness.assignment[edge.tail_variable] == edge.tail


def test_a_path_on_the_films(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    explanation = explain(answerer, Question("a1.won_by.directed_by"), entities=[4, 5])
    affleck, scott = explanation.witnesses
    assert [(e.head.label, e.relation, e.tail.label, e.kind) for e in affleck.edges] == [
        ("Academy Award", "won_by", "Argo", "fact"),
        ("Argo", "directed_by", "Ben Affleck", "fact"),
    ]
    assert [(e.head_variable, e.tail_variable) for e in affleck.edges] == [
        (None, "x1"),
        ("x1", "answer"),
    ]
    assert affleck.assignment["x1"].name == "f1"
    assert affleck.facts_only
    # One guess is enough for Scott: that Alien won, or that Scott directed another winner.
    assert sorted(edge.kind for edge in scott.edges) == ["fact", "guess"]
    assert scott.weakest is not None
    assert scott.weakest.kind == "guess"
    (variable,) = explanation.variables
    assert (variable.query, variable.reading) == (
        "a1.won_by",
        "things that won Academy Award",
    )
    # With the validation fact, the award for Alien is known.
    known = explain(answerer, Question("a1.won_by.directed_by", known_graph="valid"), entities=[5])
    assert known.witnesses[0].facts_only


def test_a_notebook_shows_the_text_of_an_explanation(film_graph: KnowledgeGraph) -> None:
    explanation = explain(make(film_graph), Question("a1.won_by"), entities=[1])
    page = explanation._repr_html_()
    assert page == f"<pre>{escape(str(explanation))}</pre>"
    assert "Academy Award –won_by→ Argo" in page
    assert "&lt;b&gt;" in replace(explanation, reading="<b>")._repr_html_()


def test_a_run_folder_and_a_text_are_accepted(tmp_path: Path, film_graph: KnowledgeGraph) -> None:
    run = untrained_run(tmp_path / "run", film_graph)
    text = "a1.won_by.directed_by"
    expected = explain(Answerer.open(run), Question(text))
    assert explain(run, text).witnesses[0].edges == expected.witnesses[0].edges
    tree = parse_query(text, film_graph.vocabulary)
    assert explain(str(run), tree).variables == expected.variables


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 2},
        {"only": "predicted"},
        {"exclude": ["f1", "f3"]},
        {"known_graph": "test", "only": "known"},
        {"keep_contradicted": True},
        {"union": "demorgan", "top_k": 3},
    ],
)
def test_options_are_those_of_asking(film_graph: KnowledgeGraph, options: dict[str, Any]) -> None:
    answerer = make(film_graph)
    text = "(a1.won_by | c1.produced) & !c2.produced"
    explanation = explain(answerer, text, **options)
    assert explanation == explain(answerer, Question(text, **options)) != explain(answerer, text)
    explained = [witness.answer.name for witness in explanation.witnesses]
    assert explained == [each.name for each in answerer.ask(text, **options).answers]
    for question in (Question(text), answerer.understand(Question(text))):
        with pytest.raises(ConfigError, match="a Question has its own options"):
            explain(answerer, question, **options)


@pytest.mark.parametrize("options", [{"only": "predicted"}, {"exclude": ("f1", "f3")}])
def test_variables_ignore_filters_of_the_answers(
    film_graph: KnowledgeGraph, options: dict[str, Any]
) -> None:
    """`only` and `exclude` are about the answers, not about the variables on the way."""
    answerer, text = make(film_graph), "a1.won_by.directed_by"
    (usual,) = explain(answerer, Question(text), candidates=20).variables
    assert {"f1", "f3"} == {each.name for each in usual.candidates if each.known}
    (variable,) = explain(answerer, Question(text, **options), candidates=20).variables
    assert variable == usual


def test_negations_are_absent_or_contradicted(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    question = Question("a1.won_by & !c1.produced")
    amour, argo = explain(answerer, question, entities=[3, 1]).witnesses
    assert [part.kind for part in amour.parts] == ["fact", "absent"]
    assert amour.facts_only
    assert [part.kind for part in argo.parts] == ["fact", "contradicted"]
    assert argo.weakest is not None
    assert argo.weakest.query == "!c1.produced"
    assert not argo.facts_only
    (alien,) = explain(answerer, question, entities=[2]).witnesses
    assert [part.kind for part in alien.parts] == ["guess", "contradicted"]
    assert alien.weakest is not None
    assert alien.weakest.kind == "contradicted", (
        "what facts deny is worse than what they leave open"
    )


def test_a_doubtful_condition_that_no_fact_is_against_is_weaker_than_a_better_guess(
    film_graph: KnowledgeGraph,
) -> None:
    """Whichever of the two the model doubts more is the weakest; known answers have no guess."""
    answerer = make(film_graph)
    texts = ["a1.won_by & !c1.produced", "a1.won_by & !c2.produced", "c1.produced & !a1.won_by"]
    seen = set()
    for witness in chain.from_iterable(
        explain(answerer, text, entities=list(range(8))).witnesses for text in texts
    ):
        hop, condition = witness.parts
        assert witness.weakest is not None
        if (hop.kind, condition.kind) == ("guess", "absent"):
            assert witness.weakest is (hop if hop.score < condition.score else condition)
            seen.add(witness.weakest.kind)
        elif (hop.kind, condition.kind) == ("fact", "absent"):
            assert witness.facts_only
            assert witness.weakest is condition, "the graph may lack the fact that is against it"
            seen.add("known")
    assert seen == {"guess", "absent", "known"}


def test_scores_are_the_models(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    (witness,) = explain(answerer, Question("a1.won_by"), entities=[1]).witnesses
    model = answerer.model
    with torch.inference_mode():
        region = model.project(model.anchor(torch.tensor([0])), torch.tensor([0]))
        expected = float(model.logits(region, torch.tensor([[1]])))
    assert witness.edges[0].score == pytest.approx(expected, rel=1e-5)
    assert witness.answer.score == pytest.approx(expected, rel=1e-5)


def test_entities_are_named_or_numbered(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    told = explain(answerer, "a1.won_by", entities=["Alien", 1, "f3"])
    assert [witness.answer.name for witness in told.witnesses] == ["f2", "f1", "f3"]
    with pytest.raises(UnknownNameError, match="Allien"):
        explain(answerer, "a1.won_by", entities=["Allien"])
    with pytest.raises(ConfigError, match="candidates is 0"):
        explain(answerer, "a1.won_by.directed_by", candidates=0)
    with pytest.raises(ConfigError, match="candidates is '3'; it must be a whole number"):
        explain(answerer, "a1.won_by", candidates="3")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="entities is 3; it must be a list"):
        explain(answerer, "a1.won_by", entities=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="entities is 'Alien'; it must be a list"):
        explain(answerer, "a1.won_by", entities="Alien")
    with pytest.raises(ConfigError, match="exclude is 'Alien'"):
        answerer.ask("a1.won_by", exclude="Alien")


@pytest.mark.parametrize("branches", [0, 1.5, True])
def test_an_answerer_needs_a_branch_at_least(film_graph: KnowledgeGraph, branches: int) -> None:
    with pytest.raises(ConfigError, match="max_branches is"):
        make(film_graph, branches)


def test_queries_of_more_branches_than_usual(film_graph: KnowledgeGraph) -> None:
    names = ["f1", "f2", "f3", "d1", "d2", "c1", "c2"]
    text = " & ".join(f"(a1 | {name}).won_by" for name in names)
    patient = make(film_graph, max_branches=128)
    assert len(patient.ask(text).answers) == 8
    assert len(explain(patient, Question(text, top_k=2)).witnesses) == 2
    usual = make(film_graph)
    with pytest.raises(QueryTooLargeError, match="at most 64"):
        usual.ask(text)
    # By De Morgan's law it is one branch.
    by_law = explain(usual, Question(text, top_k=2, union="demorgan"))
    assert len(by_law.witnesses) == 2


def test_negated_intersections_add_no_branches(film_graph: KnowledgeGraph) -> None:
    text = " & ".join(f"!({name}.won_by & a1.won_by)" for name in film_graph.vocabulary.entities)
    explained = explain(make(film_graph), Question(text, top_k=2))
    assert len(explained.witnesses) == 2


def test_negated_intersections_under_projections_add_no_branches(
    film_graph: KnowledgeGraph,
) -> None:
    names = ["f1", "f2", "f3", "d1", "d2", "c1", "c2"]
    negated = " & ".join(f"!({name}.won_by & {name}.produced)" for name in names)
    text = f"(a1.won_by & {negated}).directed_by"
    answerer = make(film_graph)
    explained = explain(answerer, Question(text, top_k=2))
    assert [witness.answer for witness in explained.witnesses] == list(
        answerer.ask(text, top_k=2).answers
    )
    # The variable is ranked as if it were asked for itself.
    (variable,) = explained.variables
    asked = answerer.ask(f"a1.won_by & {negated}", top_k=5)
    assert [one.entity_id for one in variable.candidates] == [
        one.entity_id for one in asked.answers
    ]
    assert [one.score for one in variable.candidates] == pytest.approx(
        [one.score for one in asked.answers]
    )


def test_every_part_is_put_into_words_once(
    film_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    query: Query = Anchor(0)
    for hop in range(40):
        query = query.project(hop % 6)
    hops = []

    def counted(*arguments: Any, **options: Any) -> Phrase:
        hops.append(arguments)
        return one_hop(*arguments, **options)

    monkeypatch.setattr(reading, "one_hop", counted)
    explained = explain(make(film_graph), query)
    assert len(explained.witnesses) == 8
    assert len(explained.variables) == 39
    # Once for the question, and once for the parts of all variables and witnesses together.
    assert len(hops) == 2 * 40


def test_redundant_operators_need_no_support(film_graph: KnowledgeGraph) -> None:
    model = build_model(
        "gqe", film_graph.num_entities, film_graph.num_relations, GqeConfig(dim=6), 0
    )
    text = "a1.won_by & (c1.produced | !c1.produced) & !!*"
    (witness,) = explain(Answerer(film_graph, model), text, entities=["f1"]).witnesses
    assert [part.query for part in witness.parts] == ["a1.won_by"]


def test_operators_that_only_pushing_negations_shows_to_be_redundant_need_no_support(
    film_graph: KnowledgeGraph,
) -> None:
    """With its negation pushed inward the operand of the first hop is `*`, which BetaE lacks."""
    options = small_models.SMALL_OPTIONS["beta"]
    model = build_model("beta", film_graph.num_entities, film_graph.num_relations, options, 0)
    answerer = Answerer(film_graph, model)
    text = "((c1.produced | !(a1.won_by & c2.produced) | a1.won_by) & *).directed_by"
    assert len(explain(answerer, text).witnesses) == len(answerer.ask(text).answers) == 8


def test_queries_without_variables_or_answers(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    everything = explain(answerer, Question("*", top_k=2))
    assert everything.variables == ()
    assert everything.witnesses[0].edges == ()
    assert everything.witnesses[0].weakest is None
    nobody = explain(answerer, Question("a1.won_by", exclude=tuple(range(8))))
    assert nobody.witnesses == ()


def test_sector_cones(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    query = Or((Anchor(0).project(0), Anchor(1).project(2)))
    cones = sector_cones(answerer, query, 3, dimensions=range(6))
    assert [cone.dimension for cone in cones] == list(range(6))
    for cone in cones:
        apart = abs((cone.entity_angle - cone.axis + math.pi) % (2 * math.pi) - math.pi)
        assert cone.inside == (apart <= cone.half_aperture)
        assert 0 <= cone.half_aperture <= math.pi
    chosen = sector_cones(answerer, query, 3, dimensions=[4, 0])
    assert [cone.dimension for cone in chosen] == [4, 0]
    assert set(chosen) <= set(cones)
    plain = build_model("gqe", 8, 6, GqeConfig(dim=4), 0)
    assert sector_cones(Answerer(film_graph, plain), query, 3, dimensions=[0]) == ()


@pytest.mark.parametrize("union", ["dnf", "demorgan"])
def test_sector_cones_are_those_that_a_question_is_ranked_by(
    film_graph: KnowledgeGraph, union: UnionForm
) -> None:
    unions = [~Anchor(i + 1).project(1) | Anchor(0).project(0) for i in range(7)]
    answerer = make(film_graph)
    # By DNF the branches would be 2 and 128.
    query = ~Anchor(1).project(0) | Anchor(2).project(0) if union == "dnf" else And(tuple(unions))
    answers = answerer.ask(query, union=union).answers
    assert {answer.member for answer in answers} == {True, False}
    for answer in answers:
        cones = sector_cones(answerer, query, answer.entity_id, dimensions=range(6), union=union)
        inside = sum(cone.inside for cone in cones)
        assert answer.member == (inside >= MAJORITY * 6)


def test_cones_of_a_branch_that_names_its_answer_are_shown_for_it_alone(
    film_graph: KnowledgeGraph,
) -> None:
    """`(a.r & b) | c.s` is ranked by the cones of `a.r` for b only, even if others are nearer."""
    answerer = make(film_graph)
    first, second = Anchor(0).project(0), Anchor(1).project(2)

    def axes(query: Query, entity_id: int) -> list[float]:
        cones = sector_cones(answerer, query, entity_id, dimensions=range(6))
        return [cone.axis for cone in cones]

    by_first, by_second = (pytest.approx(axes(query, 0)) for query in (first, second))
    near_first = [i for i in range(8) if axes(first | second, i) == by_first]
    assert len(near_first) > 1
    chosen = near_first[0]
    named = (first & Anchor(chosen)) | second
    assert axes(named, chosen) == by_first
    for entity_id in near_first[1:]:
        assert axes(named, entity_id) == by_second


def test_cones_are_not_those_of_a_branch_that_facts_leave_empty(
    film_graph: KnowledgeGraph,
) -> None:
    """That the second film has won is a validation fact."""
    answerer = make(film_graph)
    produced = Anchor(6).project(4)
    query = produced | (Anchor(2) & ~Anchor(0).project(0)).project(2)
    shown = partial(sector_cones, answerer, dimensions=range(6))
    plain = [shown(produced, entity_id) for entity_id in range(8)]
    assert [shown(query, entity_id) for entity_id in range(8)] != plain
    known = [shown(query, entity_id, known_graph="valid") for entity_id in range(8)]
    assert known == plain


def test_variables_that_facts_leave_empty_have_no_candidates(film_graph: KnowledgeGraph) -> None:
    explanation = explain(make(film_graph), "(f1 & !a1.won_by).directed_by.^directed_by")
    assert [variable.candidates for variable in explanation.variables] == [(), ()]
    assert explanation.witnesses == ()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # Argo is known to have won: that branch has no answers, and no variables to list.
        ("c1.produced | (f1 & !a1.won_by).directed_by", "c1.produced"),
        ("a1.won_by.directed_by | (f1 & !a1.won_by).directed_by.^directed_by",
         "a1.won_by.directed_by"),
        ("c1.produced & !(f1 & !a1.won_by).directed_by", "c1.produced"),
        # No facts are needed to know that the United States are not France.
        ("c1.produced | (c1 & c2).produced.directed_by", "c1.produced"),
    ],
)  # fmt: skip
def test_empty_parts_are_not_explained(film_graph: KnowledgeGraph, text: str, left: str) -> None:
    answerer = make(film_graph)
    everyone = list(range(film_graph.num_entities))
    for entities in (None, everyone):
        found = explain(answerer, text, entities=entities)
        expected = explain(answerer, left, entities=entities)
        assert found.variables == expected.variables
        assert found.witnesses == expected.witnesses
        assert (found.explained, expected.explained) == (expected.reading, None)
        assert f"without parts that change no answer: {expected.reading}" in str(found)
    assert found.reading != expected.reading, "the question's own words"


def test_parts_are_empty_by_the_facts_that_count_as_known(film_graph: KnowledgeGraph) -> None:
    """That the second film has won is a validation fact."""
    answerer = make(film_graph)
    query = "c1.produced | (f2 & !a1.won_by).directed_by"
    assert len(explain(answerer, query).variables) == 1
    known = explain(answerer, Question(query, known_graph="valid"))
    assert known.variables == ()
    assert known.explained is not None


def test_unknown_dimensions_and_ids_are_refused(film_graph: KnowledgeGraph) -> None:
    answerer, query = make(film_graph), Anchor(0).project(0)
    for dimension in (6, -1, 1.0, "0"):
        with pytest.raises(ConfigError, match=r"among the dimensions is none .* has 0 to 5"):
            sector_cones(answerer, query, 3, dimensions=[0, dimension])  # type: ignore[list-item]
    for entity_id in (8, -1):
        with pytest.raises(UnknownNameError, match=r"(?s)entity id '-?\d'.*ids 0 to 7"):
            sector_cones(answerer, query, entity_id, dimensions=[0])
    with pytest.raises(UnknownNameError, match="relation id '99'"):
        sector_cones(answerer, Anchor(0).project(99), 3, dimensions=[0])
