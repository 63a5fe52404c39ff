"""Answers as they are written, from drafts made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from conekg.answering.answer import Answer, Question
from conekg.answering.calibration import Calibration, CountCurve, ScoreCurve
from conekg.answering.curves import Curve
from conekg.answering.facts import Facts
from conekg.answering.ranking import Ranking
from conekg.answering.understand import Understood, understand
from conekg.answering.writing import AnswerWriter, Draft, Estimate
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.model.catalog import build_model

CALIBRATION = Calibration(
    predicted=ScoreCurve(Curve((0.0, 10.0), (0.0, 0.5)), relative=True, error=0.03),
    count=CountCurve(Curve((0.0, 1.0), (0.0, math.log(3))), 1.5),
    error=0.02,
    known_kept=0.75,
    num_queries=7,
)


def asked(graph: KnowledgeGraph, text: str) -> Understood:
    model = build_model("cone", graph.num_entities, graph.num_relations, {"dim": 4, "hidden": 4})
    return understand(Question(text), graph, model, 64)


def ids(*some: int) -> np.ndarray:
    return np.array(some, dtype=np.int32)


FACTS = Facts(known=ids(1, 3), contradicted=ids(0, 2), certain=ids(3))
DRAFT = Draft(
    Ranking(np.array([3, 5, 0, 1]), np.array([9.0, 8.0, 7.0, 6.0])),
    inside=[True, False, False, True],
    backgrounds=np.array([0.0, 2.0, 0.0, 0.0]),
    missing=Estimate(2.0, 1.5),
)


def written(graph: KnowledgeGraph, writer: AnswerWriter, draft: Draft, facts: Facts) -> Answer:
    item = asked(graph, "a1.won_by & !c1.produced")
    return writer.answer(item, draft, facts, model="cone", recall=0.9, seconds=1.5)


def test_entities_get_their_names_and_what_is_known_of_them(film_graph: KnowledgeGraph) -> None:
    answer = written(film_graph, AnswerWriter(film_graph, CALIBRATION, 64), DRAFT, FACTS)
    assert [ranked.rank for ranked in answer.answers] == [1, 2, 3, 4]
    assert [ranked.name for ranked in answer.answers] == ["f3", "d2", "a1", "f1"]
    assert [ranked.label for ranked in answer.answers][:2] == ["Amour", "Ridley Scott"]
    assert [ranked.standing for ranked in answer.answers] == [
        "known", "predicted", "contradicted", "known",
    ]  # fmt: skip
    # Certain; by its score of 8 above a background of 2; ruled out; known, but in doubt.
    likely = [ranked.probability for ranked in answer.answers]
    assert likely == pytest.approx([1.0, 0.3, 0.0, 0.75])
    assert [ranked.member for ranked in answer.answers] == [True, False, False, True]
    assert (answer.num_known, answer.num_contradicted) == (2, 2)
    assert (answer.model, answer.recall, answer.seconds) == ("cone", 0.9, 1.5)
    assert answer.calibration_error == 0.03


def test_the_number_of_answers_counts_doubtful_ones_in_part(film_graph: KnowledgeGraph) -> None:
    writer = AnswerWriter(film_graph, CALIBRATION, 64)
    doubted = written(film_graph, writer, DRAFT, FACTS)
    assert doubted.estimated_count == pytest.approx(1 + 0.75 + 2)
    assert doubted.estimated_count_factor is None
    sure = written(film_graph, writer, DRAFT, replace(FACTS, certain=FACTS.known))
    assert sure.estimated_count == pytest.approx(2 + 2)
    assert sure.estimated_count_factor == pytest.approx((2 + 3 * 1.5 - 1) / 4)
    many = written(film_graph, writer, replace(DRAFT, missing=Estimate(99.0, 2.0)), FACTS)
    assert many.estimated_count == 6, "no more than facts leave possible"
    none = written(film_graph, writer, replace(DRAFT, missing=None), FACTS)
    assert none.estimated_count is None


def test_where_facts_rule_out_all_entities_there_is_nothing_to_estimate(
    film_graph: KnowledgeGraph,
) -> None:
    writer = AnswerWriter(film_graph, CALIBRATION, 64)
    empty = Facts(ids(), contradicted=ids(*range(film_graph.num_entities)), certain=ids())
    answer = written(film_graph, writer, DRAFT, empty)
    assert answer.num_contradicted == film_graph.num_entities
    assert answer.estimated_count is answer.estimated_count_factor is None


def test_without_a_calibration_there_are_scores_alone(film_graph: KnowledgeGraph) -> None:
    writer = AnswerWriter(film_graph, None, 64)
    answer = written(film_graph, writer, replace(DRAFT, inside=None), FACTS)
    assert [ranked.score for ranked in answer.answers] == [9.0, 8.0, 7.0, 6.0]
    assert {ranked.probability for ranked in answer.answers} == {None}
    assert {ranked.member for ranked in answer.answers} == {None}
    assert answer.estimated_count is answer.calibration_error is None
    assert writer.missing(asked(film_graph, "a1.won_by"), np.array([1.0]), FACTS) is None


def test_missing_answers_are_added_over_branches(film_graph: KnowledgeGraph) -> None:
    writer = AnswerWriter(film_graph, CALIBRATION, 64)
    unknown = Facts(ids(), ids(), ids())
    one = asked(film_graph, "a1.won_by")
    assert writer.outlines(one) == ("e.r",)
    assert writer.missing(one, np.array([1.0]), unknown) == Estimate(pytest.approx(2), 1.5)
    two = asked(film_graph, "a1.won_by | f1.directed_by")
    assert writer.missing(two, np.array([1.0, 1.0]), unknown) == Estimate(pytest.approx(4), None)
    named = asked(film_graph, "(a1.won_by & f1) | f1.directed_by")
    assert writer.missing(named, np.array([1.0, 1.0]), unknown) == Estimate(pytest.approx(3), None)
    # Of the branch that names the first film, nothing is missing if that film is known.
    assert writer.missing(named, np.array([1.0, 1.0]), FACTS) == Estimate(pytest.approx(2), None)
    assert writer.missing(one, np.empty(0), unknown) is None, "the model has no sizes"
    rare = replace(CALIBRATION, count=None)
    assert AnswerWriter(film_graph, rare, 64).missing(one, np.array([1.0]), unknown) is None
