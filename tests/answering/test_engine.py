"""Answers agree with the oracle on what is known, and with the model on the ranks."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import small_models
import strategies
from conekg.answering import engine
from conekg.answering.answer import Answer, Only, Question
from conekg.answering.calibration import (
    FILE_NAMES,
    Calibration,
    CountCurve,
    ScoreCurve,
    save_calibration,
)
from conekg.answering.curves import Curve
from conekg.answering.empty_parts import without_empty_parts
from conekg.answering.engine import Answerer, ask
from conekg.answering.explain import explain
from conekg.errors import (
    CheckpointError,
    ConfigError,
    QueryError,
    UnknownNameError,
)
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.model.catalog import build_model
from conekg.model.cone import ConeConfig
from conekg.model.interface import Region
from conekg.model.kernels.few_rows import lay_out_for_few_rows
from conekg.query.branches import union_free_branches
from conekg.query.open_world import certainty_of, contradiction_of
from conekg.query.render import render_query
from conekg.query.rewrite import settle
from conekg.query.shape import grounded
from conekg.query.tree import Anchor, And, Or, Project, Query, Universe, subtrees
from conekg.training.checkpoint import Checkpoint, save_checkpoint
from conekg.training.run import open_run
from oracle import Oracle
from untrained_run import untrained_run

CALIBRATION = Calibration(
    predicted=ScoreCurve(Curve((0.0, 10.0), (0.1, 0.6)), relative=False, error=0.03),
    count=CountCurve(Curve((0.0, 100.0), (0.0, 3.0)), 1.5),
    error=0.02,
    known_kept=0.75,
    num_queries=7,
)


def make(graph: KnowledgeGraph, name: str = "cone", **options: object) -> Answerer:
    config = {"cone": ConeConfig(dim=6, hidden=5)}.get(name, small_models.SMALL_OPTIONS.get(name))
    model = build_model(name, graph.num_entities, graph.num_relations, config, 0)  # type: ignore[arg-type]
    return Answerer(graph, model, CALIBRATION, **options)  # type: ignore[arg-type]


def known_by_oracle(graph: KnowledgeGraph, split: Split, query: Query) -> set[int]:
    parts = [graph.edges(part) for part in SPLITS[: SPLITS.index(split) + 1]]
    return Oracle(np.concatenate(parts).tolist(), graph.num_entities).answer(query)


@given(
    given_graph=strategies.graphs_with_queries(),
    split=st.sampled_from(SPLITS),
    only=st.sampled_from([None, "known", "predicted"]),
    top_k=st.integers(1, 10),
    keep=st.booleans(),
    data=st.data(),
)
def test_answers_are_ranked_and_marked(
    given_graph: tuple[KnowledgeGraph, Query],
    split: Split,
    only: Only | None,
    top_k: int,
    keep: bool,
    data: st.DataObject,
) -> None:
    graph, query = given_graph
    answerer = make(graph)
    exclude = sorted(data.draw(st.sets(st.integers(0, graph.num_entities - 1))))
    answer = answerer.ask(
        query,
        top_k=top_k,
        only=only,
        exclude=exclude,
        known_graph=split,
        keep_contradicted=keep,
    )
    known = known_by_oracle(graph, split, query)
    # Neither `a & !a` has answers, whatever the facts, nor what its tests say of other parts.
    (left,) = without_empty_parts(graph, [(grounded(settle(query)), split)])
    meant = left.shape.ground(left.entity_ids, left.relation_ids)
    contradiction = contradiction_of(meant)
    ruled_out = known_by_oracle(graph, split, contradiction) if contradiction else set()
    certainty = certainty_of(meant)
    certain = known_by_oracle(graph, split, certainty) if certainty else set()
    assert answer.num_contradicted == len(ruled_out)
    allowed = set(range(graph.num_entities)) - set(exclude)
    if not keep:
        allowed -= ruled_out
    allowed &= {"known": known, "predicted": allowed - known}.get(only or "", allowed)
    assert answer.num_known == len(known)
    assert len(answer.answers) == min(top_k, len(allowed))
    scores = [ranked.score for ranked in answer.answers]
    assert scores == sorted(scores, reverse=True)
    assert [ranked.rank for ranked in answer.answers] == list(range(1, len(scores) + 1))
    assert {ranked.entity_id for ranked in answer.answers} <= allowed
    everything = answerer.judge(Question(query, known_graph=split), range(graph.num_entities))
    true_best = sorted((everything[i].score for i in allowed), reverse=True)[:top_k]
    np.testing.assert_allclose(scores, true_best, rtol=1e-4, atol=1e-4)
    for ranked in answer.answers:
        assert ranked.known == (ranked.entity_id in known)
        assert ranked.contradicted == (ranked.entity_id in ruled_out)
        assert ranked.name == graph.vocabulary.entities.name(ranked.entity_id)
        assert ranked.probability is not None
        if ranked.contradicted:
            assert ranked.probability == 0
        elif ranked.known:
            assert ranked.probability == (1.0 if ranked.entity_id in certain else 0.75)
        else:
            expected = np.interp(ranked.score, [0, 10], [0.1, 0.6])
            assert ranked.probability == pytest.approx(expected)
    if len(ruled_out) == graph.num_entities:
        assert answer.estimated_count is answer.estimated_count_factor is None
    else:
        assert answer.estimated_count is not None
        surely = len(certain) + 0.75 * len(known - certain)
        assert surely <= answer.estimated_count <= graph.num_entities - len(ruled_out)
    assert json.loads(json.dumps(answer.to_json()))["query"] == render_query(
        query, graph.vocabulary
    )


@given(
    graph=strategies.graphs(),
    queries=st.lists(strategies.queries(1, 2, max_leaves=3), min_size=1, max_size=6),
    data=st.data(),
)
def test_a_batch_answers_each_question_as_if_alone(
    graph: KnowledgeGraph, queries: list[Query], data: st.DataObject
) -> None:
    answerer = make(graph)
    questions = [
        Question(
            query,
            top_k=data.draw(st.integers(1, 4)),
            known_graph=data.draw(st.sampled_from(SPLITS)),
            union=data.draw(st.sampled_from(["dnf", "demorgan"])),
        )
        for query in queries
    ]
    together = answerer.ask_batch(questions)
    parts = list(answerer.ask_in_parts(questions, 2))
    assert [len(part) for part in parts[:-1]] == [2] * (len(parts) - 1)
    for question, answer, parted in zip(questions, together, chain(*parts), strict=True):
        assert (parted.query, parted.num_known) == (answer.query, answer.num_known)
        assert [ranked.score for ranked in parted.answers] == pytest.approx(
            [ranked.score for ranked in answer.answers], rel=1e-4, abs=1e-4
        )
        (alone,) = answerer.ask_batch([answerer.understand(question)])
        assert answer.num_known == alone.num_known
        assert answer.reading == alone.reading
        counts = [each.estimated_count for each in (answer, alone)]
        assert counts == [None, None] or counts[0] == pytest.approx(counts[1], rel=1e-4)
        np.testing.assert_allclose(
            [ranked.score for ranked in answer.answers],
            [ranked.score for ranked in alone.answers],
            rtol=1e-4,
            atol=1e-4,
        )


def test_seconds_are_those_since_the_batch_was_asked(
    film_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    answerer = make(film_graph)
    clock = SimpleNamespace(perf_counter=iter([10.0, 12.5, 14.0]).__next__)
    monkeypatch.setattr(engine, "time", clock)
    parts = answerer.ask_in_parts([Question(Anchor(0).project(0))] * 3, most=2)
    assert [[answer.seconds for answer in part] for part in parts] == [[2.5, 2.5], [4.0]]


def test_an_empty_batch_has_no_answers(film_graph: KnowledgeGraph) -> None:
    assert make(film_graph).ask_batch([]) == []


def factor_of_all(answer: Answer, factor: float, graph: KnowledgeGraph) -> float:
    """The factor for all answers that follows from one for the missing answers."""
    missing = answer.estimated_count - answer.num_known
    more = answer.num_known + (1 + missing) * factor - 1
    return pytest.approx(min(more, graph.num_entities) / answer.estimated_count)


def test_names_labels_and_text(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    answer = answerer.ask('"Academy Award".won_by.directed_by', top_k=3, exclude=["Argo", 2])
    assert answer.query == "a1.won_by.directed_by"
    assert answer.model == "cone"
    assert answer.known_graph == "train"
    assert answer.calibration_error == 0.03
    assert answer.estimated_count_factor == factor_of_all(answer, 1.5, film_graph)
    assert answer.recall == 1.0
    assert not {1, 2} & {ranked.entity_id for ranked in answer.answers}
    assert answerer.ask("a1.won_by", only="known").num_known == 2
    assert answerer.ask("a1.won_by", only="known", known_graph="valid").num_known == 3


def test_shapes_use_calibration_curves_of_their_own(film_graph: KnowledgeGraph) -> None:
    plain = make(film_graph)
    link = ScoreCurve(Curve((0.0,), (0.25,)), relative=False, error=0.01)
    union = ScoreCurve(Curve((0.0,), (0.5,)), relative=True, error=0.04)
    paths = CountCurve(Curve((0.0,), (math.log(4),)), 1.25)
    links = CountCurve(Curve((0.0,), (math.log(3),)), 1.75)
    own = replace(
        CALIBRATION,
        predicted_of={"e.r": link, "e.r | e.r.r": union},
        count_of={"e.r": links, "e.r.r": paths, "((!e.r) & e.r)": links},
        kept_of={"((!e.r) & e.r)": 0.5},
    )
    answerer = Answerer(film_graph, plain.model, own)
    for text, likely, error, missing, factor in (
        ("a1.won_by", 0.25, 0.01, 2, 1.75),
        ("a1.won_by.directed_by | a1.won_by", 0.5, 0.04, 5, None),
        ("a1.won_by | a1.won_by.directed_by", 0.5, 0.04, 5, None),
    ):
        answer = answerer.ask(text, only="predicted")
        assert answer.answers
        assert {ranked.probability for ranked in answer.answers} == {likely}
        assert answer.calibration_error == error
        most = film_graph.num_entities
        assert answer.estimated_count == pytest.approx(min(answer.num_known + missing, most))
        if factor is None:  # no factor was measured for a sum
            assert answer.estimated_count_factor is None
        else:
            assert answer.estimated_count_factor == factor_of_all(answer, factor, film_graph)
        assert answerer.judge(Question(text), [5])[0].probability in (1.0, likely)
    # Shapes without curves of their own, also by De Morgan's law, use the curves of all shapes.
    for text, form in (("a1.won_by.directed_by", "dnf"), ("a1.won_by | d2.won_by", "demorgan")):
        answer = answerer.ask(text, union=form)
        general = plain.ask(text, union=form)
        assert answer.answers == general.answers
        assert answer.calibration_error == 0.03
    for text, likely in (("a1.won_by & !d2.won_by", 0.5), ("!a1.won_by.directed_by", 0.75)):
        known = answerer.ask(text, only="known").answers
        assert {ranked.probability for ranked in known} == {likely}
    # Of its two known answers, which a negation can make false, one is expected to stay.
    doubted = answerer.ask("a1.won_by & !d2.won_by")
    assert doubted.estimated_count == pytest.approx(2 * 0.5 + 2)
    assert doubted.estimated_count_factor is None
    unknown = answerer.ask("d1.won_by & !d2.won_by")
    assert unknown.estimated_count_factor == factor_of_all(unknown, 1.75, film_graph)
    both = answerer.ask("a1.won_by & d2.won_by")
    assert both.estimated_count_factor == factor_of_all(both, 1.5, film_graph)


def test_contradicted_entities_are_left_out_by_default(film_graph: KnowledgeGraph) -> None:
    """Two films are known to have won, so they contradict the negated question."""
    answerer = make(film_graph)
    winners = {r.name for r in answerer.ask("a1.won_by", only="known").answers}
    assert len(winners) == 2
    everything = film_graph.num_entities
    answer = answerer.ask("!a1.won_by", top_k=everything)
    assert answer.num_contradicted == 2
    assert winners.isdisjoint(ranked.name for ranked in answer.answers)
    assert len(answer.answers) == everything - 2
    kept = answerer.ask("!a1.won_by", top_k=everything, keep_contradicted=True)
    assert {ranked.name for ranked in kept.answers if ranked.contradicted} == winners
    assert {ranked.name for ranked in kept.answers if ranked.probability == 0} == winners


def test_members_by_the_majority_rule(random_graph: KnowledgeGraph) -> None:
    answerer = make(random_graph)
    query = Or((Anchor(0).project(4), Anchor(7).project(3)))
    judged = answerer.judge(Question(query), range(60))
    assert {ranked.member for ranked in judged} == {True, False}
    model = answerer.model
    with torch.inference_mode():
        rows = [
            model.project(model.anchor(torch.tensor([e])), torch.tensor([r]))
            for e, r in ((0, 4), (7, 3))
        ]
        shares = torch.cat([model.inside_fraction_of_all(row) for row in rows])
        logits = torch.cat([model.logits_of_all(row) for row in rows])
    best = logits.argmax(dim=0)
    for entity_id, ranked in enumerate(judged):
        assert ranked.member == bool(shares[best[entity_id], entity_id] >= 5 / 8)
        better = (logits.amax(dim=0) > logits[best[entity_id], entity_id]).sum()
        assert abs(ranked.rank - 1 - int(better)) <= 1  # sums in another order may differ
    assert {ranked.rank for ranked in judged} == set(range(1, 61))
    members = {ranked.entity_id: ranked.member for ranked in judged}
    for answer in answerer.ask_batch([Question(query, top_k=count) for count in (3, 60, 20)]):
        assert all(ranked.member == members[ranked.entity_id] for ranked in answer.answers)
    everything = answerer.ask(Universe(), top_k=60)
    assert all(ranked.member for ranked in everything.answers)
    assert make(random_graph, "gqe").ask(Anchor(0).project(0)).answers[0].member is None


def test_estimates_of_branches_are_added(random_graph: KnowledgeGraph) -> None:
    """A branch's count is at most the entities it names; how far off a sum is was not measured."""

    def always(number: float, factor: float) -> CountCurve:
        return CountCurve(Curve((0.0,), (math.log1p(number),)), factor)

    curves = {"e.r": always(5, 1.5), "e.r.r": always(3, 2.0)}
    named = Anchor(0).project(0) & Anchor(5)
    query = named | Anchor(1).project(2).project(4)
    answerer = make(random_graph)
    answerer.calibration = replace(CALIBRATION, count_of=curves)
    answer = answerer.ask(query)
    assert answer.num_known + 1 + 3 < random_graph.num_entities
    assert answer.estimated_count == pytest.approx(answer.num_known + 1 + 3)
    assert answer.estimated_count_factor is None


def test_a_branch_that_names_a_known_answer_lacks_none(film_graph: KnowledgeGraph) -> None:
    """Argo is known to have won, so whether it has adds nothing to the estimate; Alien may have."""
    answerer = make(film_graph)
    always = CountCurve(Curve((0.0,), (math.log(2),)), 1.5)
    answerer.calibration = replace(CALIBRATION, count=always)
    plain, known, unsure = (
        answerer.ask(text).estimated_count
        for text in (
            "f1.directed_by",
            "f1.directed_by | (a1.won_by & f1)",
            "f1.directed_by | (a1.won_by & f2)",
        )
    )
    assert plain == pytest.approx(1 + 1)
    assert known == pytest.approx(2 + 1)
    assert unsure == pytest.approx(1 + 2)


def test_without_a_count_curve_for_a_branch_there_is_no_estimate(
    random_graph: KnowledgeGraph,
) -> None:
    """A sum without that branch would be too small."""
    links = CountCurve(Curve((0.0,), (1.0,)), 1.5)
    answerer = make(random_graph)
    answerer.calibration = replace(CALIBRATION, count=None, count_of={"e.r": links})
    assert answerer.ask("e0.r0 | e1.r2").estimated_count is not None
    answer = answerer.ask("e0.r0 | e1.r2.r4")
    assert (answer.estimated_count, answer.estimated_count_factor) == (None, None)


def test_a_score_is_taken_above_the_background_of_its_own_branch(
    random_graph: KnowledgeGraph,
) -> None:
    """The mean score of arbitrary entities differs from branch to branch."""
    scores = ScoreCurve(Curve((-100.0, 100.0), (0.0, 1.0)), relative=True, error=0.0)
    answerer = make(random_graph)
    answerer.calibration = replace(CALIBRATION, predicted=scores)
    model = answerer.model
    with torch.inference_mode():
        heads, relations = torch.tensor([0, 1]), torch.tensor([0, 2])
        logits = model.logits_of_all(model.project(model.anchor(heads), relations)).numpy()
    best, usual = logits.argmax(axis=0), logits.mean(axis=1)
    assert set(best) == {0, 1}
    assert abs(usual[0] - usual[1]) > 0.01
    question = Question("e0.r0 | e1.r1", top_k=60, only="predicted")
    asked = answerer.ask(question).answers
    judged = answerer.judge(question, [ranked.entity_id for ranked in asked])
    for ranked in (*asked, *judged):
        above = ranked.score - usual[best[ranked.entity_id]]
        assert ranked.probability == pytest.approx((above + 100) / 200, abs=1e-5)


@pytest.mark.parametrize(("share", "member"), [(5 / 8, True), (0.6249, False)])
def test_five_eighths_of_the_dimensions_make_a_member(
    random_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, share: float, member: bool
) -> None:
    answerer = make(random_graph)

    def all_alike(_: Region, ids: torch.Tensor) -> torch.Tensor:
        return torch.full(ids.shape, share)

    monkeypatch.setattr(answerer.model, "inside_fraction", all_alike)
    assert {one.member for one in answerer.ask(Anchor(0).project(0)).answers} == {member}


def test_equal_scores_rank_by_id(random_graph: KnowledgeGraph) -> None:
    answerer = make(random_graph)
    model = answerer.model
    with torch.no_grad():
        model.entity[:] = model.entity[0]
    answerer = Answerer(random_graph, model, CALIBRATION)
    judged = answerer.judge(Question("e0.r1"), [3, 0, 59, 17])
    assert [ranked.rank for ranked in judged] == [4, 1, 60, 18]
    asked = answerer.ask("e0.r1", top_k=60).answers
    assert [ranked.entity_id for ranked in asked] == list(range(60))


@pytest.mark.parametrize(
    "text",
    [
        "a1.won_by & !a1.won_by",
        "(a1.won_by & !a1.won_by).directed_by",
        "a1.won_by & !*",
        "(c1 & c2).produced.directed_by",
    ],
)
def test_a_contradictory_query_has_no_answers(film_graph: KnowledgeGraph, text: str) -> None:
    answer = make(film_graph).ask(text, top_k=film_graph.num_entities)
    assert answer.answers == ()
    assert answer.num_contradicted == film_graph.num_entities
    assert answer.estimated_count is answer.estimated_count_factor is None


def test_redundant_parts_change_nothing(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    plain = answerer.ask("a1.won_by")
    for text in (
        "a1.won_by | a1.won_by",
        "a1.won_by & *",
        "a1.won_by & (a1.won_by | !a1.won_by)",
        "a1.won_by | (c1 & c2).produced",
        "((a1 | c1) & !c1).won_by",
        # That the first film has won is known.
        "a1.won_by | (f1 & !a1.won_by)",
        "a1.won_by | (f1 & !a1.won_by).directed_by",
        "a1.won_by & !(f1 & !a1.won_by).directed_by",
    ):
        answer = answerer.ask(text)
        assert answer.answers == plain.answers
        assert answer.estimated_count == plain.estimated_count


@pytest.mark.parametrize("name", ["cone", "beta"])
def test_nothing_follows_from_what_facts_leave_empty(film_graph: KnowledgeGraph, name: str) -> None:
    answerer = make(film_graph, name)
    for text in ("(f1 & !a1.won_by).directed_by", "(f1 & f2).directed_by", "f1 & !a1.won_by"):
        answer = answerer.ask(text)
        assert answer.answers == ()
        assert answer.num_contradicted == film_graph.num_entities
        assert answer.estimated_count is answer.estimated_count_factor is None
        assert all(judged.contradicted for judged in answerer.judge(Question(text), range(8)))
    # The second film is known to have won only if the validation facts count.
    unsure = "(f2 & !a1.won_by).directed_by"
    assert answerer.ask(unsure).num_contradicted == 0
    assert answerer.ask(unsure, known_graph="valid").num_contradicted == film_graph.num_entities
    kept = answerer.ask(unsure, known_graph="valid", keep_contradicted=True).answers
    assert {ranked.standing for ranked in kept} == {"contradicted"}
    # They are ranked as if that fact were not known.
    assert [(ranked.name, ranked.score) for ranked in kept] == [
        (ranked.name, ranked.score) for ranked in answerer.ask(unsure).answers
    ]


@given(given_graph=strategies.graphs_with_queries(), data=st.data())
def test_naming_an_entity_asks_about_it_and_does_not_change_its_score(
    given_graph: tuple[KnowledgeGraph, Query], data: st.DataObject
) -> None:
    graph, query = given_graph
    # A branch of names alone keeps one of them to rank by.
    branches = union_free_branches(settle(query))
    assume(all(any(isinstance(n, Project) for n in subtrees(branch)) for branch in branches))
    answerer = make(graph)
    wanted, other = (data.draw(st.integers(0, graph.num_entities - 1)) for _ in range(2))
    (alone,) = answerer.judge(Question(query), [wanted])
    asked = answerer.ask(And((query, Anchor(wanted))), top_k=graph.num_entities).answers
    if alone.contradicted:
        assert asked == ()
    else:
        (named,) = asked
        assert (named.entity_id, named.known) == (wanted, alone.known)
        assert named.score == pytest.approx(alone.score, abs=1e-4)
    # Each branch of a union scores only the entity that it names.
    choice = Or((And((query, Anchor(wanted))), And((Anchor(0).project(0), Anchor(other)))))
    (judged,) = answerer.judge(Question(choice), [wanted])
    if wanted != other and not alone.contradicted:
        assert judged.score == pytest.approx(alone.score, abs=1e-4)
    (but,) = answerer.judge(Question(And((query, ~Anchor(other)))), [wanted])
    if wanted == other:
        assert but.contradicted
    elif not alone.contradicted:
        assert but.score == pytest.approx(alone.score, abs=1e-4)


def test_models_without_size_estimate_nothing(random_graph: KnowledgeGraph) -> None:
    plain = Answerer(random_graph, make(random_graph, "gqe").model)
    answer = plain.ask("e0.r1")
    assert answer.estimated_count is None
    assert answer.calibration_error is None
    assert answer.answers[0].probability is None


def test_entities_to_judge_must_exist(film_graph: KnowledgeGraph) -> None:
    with pytest.raises(UnknownNameError, match="entity ids 0 to 7"):
        make(film_graph).judge(Question("a1.won_by"), [99])


@pytest.mark.parametrize("most", [0, -1, 2.0, None])
def test_parts_hold_one_answer_at_least(film_graph: KnowledgeGraph, most: Any) -> None:
    with pytest.raises(ConfigError, match=r"most is .*; it must be a whole number, 1 or more"):
        next(make(film_graph).ask_in_parts([Question("a1.won_by")], most))


def test_a_batch_raises_the_error_of_a_bad_question(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    with pytest.raises(QueryError, match=r"expected a relation, found '\(' at column 4"):
        answerer.ask_batch([Question("a1.won_by"), Question("a1.(")])
    assert answerer.ask_batch([]) == []


def test_a_query_of_any_depth(film_graph: KnowledgeGraph) -> None:
    query: Query = Anchor(0)
    for step in range(40):
        query = And((query.project(step % 6), Universe()))
    assert len(make(film_graph).ask(query).answers) == 8


@pytest.mark.parametrize("name", ["cone", "gqe", "box", "beta"])
def test_training_a_model_further_does_not_change_answers(
    random_graph: KnowledgeGraph, name: str
) -> None:
    options = {"cone": ConeConfig(dim=6, hidden=5)}.get(name, small_models.SMALL_OPTIONS.get(name))
    graph = random_graph
    model = build_model(name, graph.num_entities, graph.num_relations, options, 0).train()  # type: ignore[arg-type]
    answerer = Answerer(graph, model)
    query = Anchor(0).project(0).project(2)
    answers = answerer.ask(query, top_k=5).answers
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight))
    assert answerer.ask(query, top_k=5).answers == answers
    judged = answerer.judge(Question(query), [answers[0].entity_id])
    assert judged[0].rank == 1
    assert judged[0].score == pytest.approx(answers[0].score, rel=1e-5)
    assert model.training, "nor is the model that was given switched to answering"


def test_a_wide_model_of_a_run_answers_several_questions_at_once(
    tmp_path: Path, film_graph: KnowledgeGraph
) -> None:
    """The model is wide enough for layers that are packed for few rows."""
    config = ConeConfig(dim=800, hidden=1600)
    model = build_model("cone", film_graph.num_entities, film_graph.num_relations, config, 0)
    lay_out_for_few_rows(model)
    text = "(a1.won_by | a1.won_by.directed_by).directed_by"
    for answerer in (Answerer(film_graph, model), Answerer(film_graph, model, copy=False)):
        answers = answerer.ask_batch([Question(text)] * 3)
        assert answers[0].answers == answers[2].answers
    assert answerer.model is model


def test_a_question_brings_its_own_options(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    question = Question("a1.won_by", top_k=3, exclude=["f1"])
    for answer in (answerer.ask(question), ask(answerer, question)):
        assert answer.answers == answerer.ask_batch([question])[0].answers
        assert len(answer.answers) == 3
    assert answerer.ask(question, exclude=[]).answers == answer.answers, "nothing is no option"
    for excluded in (["f2"], np.array([1, 2])):
        with pytest.raises(ConfigError, match="a Question has its own options"):
            answerer.ask(question, exclude=excluded)
    with pytest.raises(ConfigError, match="a Question has its own options"):
        answerer.ask(question, top_k=2)


def test_options_are_those_of_a_question(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    text = "(a1.won_by | c1.produced) & !c2.produced"
    options: dict[str, Any] = {
        "top_k": 3,
        "only": "known",
        "exclude": ["f2"],
        "known_graph": "test",
        "union": "demorgan",
        "keep_contradicted": True,
    }
    assert {"query", *options} == {field.name for field in fields(Question)}
    plain = ask(answerer, text).answers
    for name, value in options.items():
        (expected,) = answerer.ask_batch([Question(text, **{name: value})])
        assert expected.answers != plain, name
        for asking in (answerer.ask, partial(ask, answerer)):
            assert asking(text, **{name: value}).answers == expected.answers, name


def test_a_batch_is_any_iterable_of_questions(film_graph: KnowledgeGraph) -> None:
    answerer = make(film_graph)
    texts = ("a1.won_by", "c1.produced")
    drawn = answerer.ask_batch(Question(text) for text in texts)
    assert [answer.query for answer in drawn] == list(texts)


@pytest.mark.parametrize("asked", ["a1.won_by", Question("a1.won_by"), Anchor(0), None])
def test_a_batch_that_is_not_a_list_is_refused(film_graph: KnowledgeGraph, asked: Any) -> None:
    with pytest.raises(ConfigError, match="which takes a list of Questions; ask takes one"):
        make(film_graph).ask_batch(asked)


def test_a_list_of_texts_is_refused_as_a_query(film_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match="ask_batch takes several"):
        make(film_graph).ask(["a1.won_by"])  # type: ignore[arg-type]


@pytest.mark.parametrize(("entities", "relations"), [(-1, 0), (1, 0), (0, -2), (0, 2)])
def test_a_model_of_another_graph_is_refused(
    film_graph: KnowledgeGraph, entities: int, relations: int
) -> None:
    """Otherwise some questions would fail, or be answered with entities that do not exist."""
    sizes = (film_graph.num_entities + entities, film_graph.num_relations + relations)
    model = build_model("gqe", *sizes, {"dim": 4}, 0)
    told = "the model has {} entities and {} relations, .* the graph {} and {};".format(
        *sizes, film_graph.num_entities, film_graph.num_relations
    )
    with pytest.raises(ConfigError, match=told):
        Answerer(film_graph, model)


def test_the_repr_names_the_model_and_the_graph(film_graph: KnowledgeGraph) -> None:
    shown = repr(make(film_graph))
    assert shown.startswith("<Answerer by 'cone' of <KnowledgeGraph 'films': 8 entities")
    assert shown.endswith("with probabilities>")


def test_a_folder_that_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nothing does not exist") as caught:
        ask(tmp_path / "nothing", "a1.won_by")
    assert "`conekg fit TRIPLES --out RUN` makes a run" in str(caught.value.hint)


@pytest.mark.parametrize(("run", "given"), [(None, "None"), (3, "of type int")])
def test_a_run_that_is_not_a_path_is_refused(run: Any, given: str) -> None:
    for use in (ask, explain):
        with pytest.raises(ConfigError, match=f"the folder of the run is {given}; it must be a"):
            use(run, "a1.won_by")


def test_an_unknown_checkpoint_is_refused(tmp_path: Path, film_graph: KnowledgeGraph) -> None:
    run = untrained_run(tmp_path / "run", film_graph)
    with pytest.raises(ConfigError, match="'first' is asked for; there are 'best' and 'last'"):
        Answerer.open(run, which="first")  # type: ignore[arg-type]


def test_asking_a_run(tmp_path: Path, film_graph: KnowledgeGraph) -> None:
    run = untrained_run(tmp_path / "run", film_graph)
    answer = ask(run, "a1.won_by", top_k=2)
    assert len(answer.answers) == 2
    assert ask(open_run(run), "a1.won_by", top_k=2).answers == answer.answers
    assert answer.calibration_error is None
    save_calibration(CALIBRATION, run / "calibration.json")
    opened = Answerer.open(run, device="cpu")
    assert ask(opened, "a1.won_by").calibration_error == 0.03


def test_a_calibration_is_of_one_checkpoint(tmp_path: Path, film_graph: KnowledgeGraph) -> None:
    run = open_run(untrained_run(tmp_path / "run", film_graph))
    save_calibration(
        replace(CALIBRATION, weights=run.weights_name()), run.folder / FILE_NAMES["best"]
    )
    assert Answerer.open(run.folder).calibration is not None
    changed = run.load_model()
    with torch.no_grad():
        changed.entity += 1.0
    other = Checkpoint(
        step=5, parameters=dict(changed.state_dict()), optimizer={}, best_score=None, seconds=1.0
    )
    save_checkpoint(run.checkpoint_folder("last"), other)
    assert Answerer.open(run.folder).calibration is not None
    assert Answerer.open(run.folder, which="last").calibration is None
    own = replace(CALIBRATION, weights=run.weights_name("last"))
    save_calibration(own, run.folder / FILE_NAMES["last"])
    assert Answerer.open(run.folder, which="last").calibration == own
    assert Answerer.open(run.folder).calibration is not None, "each checkpoint keeps its own"
    (run.folder / FILE_NAMES["last"]).write_text("{")
    assert Answerer.open(run.folder).calibration is not None, "whatever became of the other"
    (run.folder / FILE_NAMES["last"]).unlink()
    # Calibrations of older versions do not name their weights, which were the best ones.
    save_calibration(CALIBRATION, run.folder / FILE_NAMES["best"])
    assert Answerer.open(run.folder).calibration is not None
    assert Answerer.open(run.folder, which="last").calibration is None
    save_checkpoint(run.checkpoint_folder("best"), other)
    save_calibration(replace(CALIBRATION, weights="older"), run.folder / FILE_NAMES["best"])
    assert Answerer.open(run.folder).calibration is None
