"""Calibration: isotonic fits against scipy, errors by hand, and a full fit on a tiny graph."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

import tiny
from conekg.answering import calibration as calibration_module
from conekg.answering.calibration import (
    Calibration,
    CountCurve,
    Curve,
    expected_calibration_error,
    fit_calibration,
    fit_count,
    fit_curve,
    held_out_loss,
    load_calibration,
    pool_adjacent_violators,
    save_calibration,
)
from conekg.answering.calibration import _Sample as Sample
from conekg.errors import QueryError, StoreError
from conekg.model.catalog import build_model
from conekg.query.shape import STRUCTURES
from conekg.query.tree import Not
from conekg.sampling.query_set import QuerySet
from oracle import Oracle

values = st.lists(st.floats(-5, 5), min_size=1, max_size=40)


@given(values)
def test_pooling_is_isotonic_regression(sequence: list[float]) -> None:
    means, sizes = pool_adjacent_violators(np.array(sequence))
    assert sizes.sum() == len(sequence)
    assert (np.diff(means) > 0).all()
    fitted = isotonic_regression(np.array(sequence)).x
    np.testing.assert_allclose(np.repeat(means, sizes), fitted, atol=1e-9)


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=40))
def test_a_curve_rises_and_stays_within_its_points(points: list[tuple[float, bool]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    curve = fit_curve(x, y)
    found = curve(np.linspace(-6, 6, 50))
    assert (np.diff(found) >= -1e-12).all()
    assert found.min() >= -1e-12
    assert found.max() <= 1 + 1e-12


def test_a_curve_recovers_a_rising_relation() -> None:
    generator = np.random.default_rng(0)
    scores = generator.uniform(-4, 4, 20_000)
    truth = 1 / (1 + np.exp(-scores))
    hits = (generator.uniform(size=len(scores)) < truth).astype(float)
    fitted = fit_curve(scores, hits)(scores)
    assert np.abs(fitted - truth).mean() < 0.03
    assert expected_calibration_error(fitted, hits) < 0.01
    assert expected_calibration_error(1 - fitted, hits) > 0.3


def test_expected_calibration_error_by_hand() -> None:
    probabilities = np.array([0.1, 0.1, 0.9, 0.9])
    hits = np.array([0.0, 1.0, 1.0, 1.0])
    # Two bins of half the cases each: |0.1 - 0.5| and |0.9 - 1.0|.
    assert expected_calibration_error(probabilities, hits) == pytest.approx(0.25)
    assert expected_calibration_error(np.array([1.0]), np.array([1.0])) == 0.0
    assert math.isnan(expected_calibration_error(np.empty(0), np.empty(0)))


def test_counts_add_up_and_are_capped() -> None:
    counter = CountCurve(Curve((0.0, 10.0), (0.0, math.log(11))), 2.0)
    assert counter.estimate([10.0], 1000) == pytest.approx(10)
    assert counter.estimate([10.0, 10.0], 1000) == pytest.approx(20)
    assert counter.estimate([10.0, 10.0], 15) == 15
    assert counter.estimate([0.0], 15) == 0


@pytest.mark.parametrize("name", ["cone", "gqe", "box", "beta"])
def test_every_model_is_calibrated(name: str) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model(name, graph.num_entities, graph.num_relations, tiny.CONFIGS[name], 0).eval()
    calibration = fit_calibration(model, graph, queries, depth=10, max_queries=8)
    assert 0 <= calibration.error < 0.5
    assert 0 < calibration.known_kept <= 1
    if name == "gqe":
        assert calibration.count is None, "points have no size"
    if calibration.count is not None:  # of an untrained model, sizes may tell nothing
        assert calibration.count.factor >= 1
    assert calibration.predicted.y[0] >= 0
    assert calibration.predicted.y[-1] <= 1
    supported = sum(
        min(8, len(block))
        for block in queries
        if name in ("cone", "beta") or "n" not in block.shape.name
    )
    assert calibration.num_queries == supported
    again = fit_calibration(model, graph, queries, depth=10, max_queries=8)
    assert again == calibration


def test_hits_are_what_the_larger_graph_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    one_hop = QuerySet("valid", (queries.block("1p"),))
    seen: dict[str, np.ndarray] = {}

    def remember(x: np.ndarray, y: np.ndarray) -> Curve:
        if len(y) >= len(seen.get("y", ())):  # halves are fitted as well
            seen.update(x=x, y=y)
        return fit_curve(x, y)

    monkeypatch.setattr("conekg.answering.calibration.fit_curve", remember)
    # Deep enough to reach every entity: then each hard answer is found exactly once.
    monkeypatch.setattr("conekg.answering.calibration._fit_count", lambda *_: None)
    calibration = fit_calibration(model.eval(), graph, one_hop, depth=graph.num_entities)
    block = one_hop.blocks[0]
    assert seen["y"].sum() == block.hard.lengths.sum()
    assert len(seen["y"]) == len(block) * graph.num_entities - block.easy.lengths.sum()
    assert calibration.known_kept == 1.0  # nothing negated, nothing lost


def test_what_facts_rule_out_is_no_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    block = queries.block("2in")
    seen: list[int] = []
    monkeypatch.setattr(
        calibration_module, "fit_curve", lambda x, y: seen.append(len(x)) or fit_curve(x, y)
    )
    monkeypatch.setattr(calibration_module, "_fit_count", lambda *_: None)
    fit_calibration(
        model.eval(), graph, QuerySet("valid", (block,)), depth=graph.num_entities, max_queries=999
    )
    oracle = Oracle(graph.edges("train").tolist(), graph.num_entities)
    left = 0
    for place in range(len(block)):
        query = block.query(place)
        (negated,) = [part for part in query.operands if isinstance(part, Not)]
        left += graph.num_entities - len(oracle.answer(query) | oracle.answer(negated.operand))
    assert max(seen) == left


def test_sizes_that_tell_the_number_of_answers_are_believed() -> None:
    answers = np.arange(1.0, 201.0)
    curve = fit_count(np.sqrt(answers), answers, np.random.default_rng(0))
    assert curve is not None
    assert 1.0 <= curve.factor < 1.1
    assert curve.estimate([10.0], 1000) == pytest.approx(100, rel=0.1)


def test_sizes_that_tell_nothing_are_not() -> None:
    """The wider, the fewer: no rising curve is as good as always saying the same."""
    answers = np.array([1.0] * 90 + [500.0] * 10)
    assert fit_count(-answers, answers, np.random.default_rng(0)) is None
    assert fit_count(np.array([1.0]), np.array([3.0]), np.random.default_rng(0)) is None


def test_known_answers_of_negations_can_be_lost() -> None:
    graph, queries = tiny.tiny_graph(), tiny.tiny_queries()["valid"]
    model = build_model("cone", graph.num_entities, graph.num_relations, tiny.CONFIGS["cone"], 0)
    negated = QuerySet("valid", (queries.block("2in"),))
    calibration = fit_calibration(model.eval(), graph, negated)
    assert calibration.known_kept < 1.0
    assert calibration.probability(0.0, 0.0, known=True, certain=False) == calibration.known_kept
    assert calibration.probability(0.0, 0.0, known=True, certain=True) == 1.0
    low, high = (calibration.probability(s, 0.0, known=False, certain=False) for s in (-1e9, 1e9))
    assert 0 <= low <= high <= 1


def test_nothing_to_calibrate_with() -> None:
    graph = tiny.tiny_graph()
    model = build_model("gqe", graph.num_entities, graph.num_relations, tiny.CONFIGS["gqe"], 0)
    block = tiny.tiny_queries()["valid"].block("2in")
    assert block.shape == STRUCTURES["2in"]
    with pytest.raises(QueryError, match="can calibrate 'gqe'"):
        fit_calibration(model, graph, QuerySet("valid", (block,)))


CALIBRATION = Calibration(
    predicted=Curve((-1.0, 2.0), (0.0, 0.5)),
    relative=True,
    error=0.25,
    known_kept=0.9,
    count=CountCurve(Curve((1.0,), (2.0,)), 1.25),
    num_queries=12,
)


@pytest.mark.parametrize("calibration", [CALIBRATION, replace(CALIBRATION, count=None)])
def test_saving_and_loading(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    save_calibration(calibration, path)
    assert load_calibration(path) == calibration


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.pop("predicted"),
        lambda content: content.update(format=99),
        lambda content: content.update(error="much"),
        lambda content: content["predicted"].update(x=[2.0, -1.0]),
        lambda content: content["predicted"].update(x=[2.0]),
        lambda content: content.update(count=3),
    ],
)
def test_damaged_files_are_refused(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    save_calibration(CALIBRATION, path)
    content = json.loads(path.read_text())
    damage(content)  # type: ignore[operator]
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError) as caught:
        load_calibration(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text("{")
    with pytest.raises(StoreError):
        load_calibration(path)
    with pytest.raises(StoreError):
        load_calibration(tmp_path / "nothing.json")


def test_scores_are_taken_above_the_background_where_that_tells_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(1)
    backgrounds = generator.normal(0, 20, 4000)
    above = generator.normal(0, 2, 4000)
    hits = (generator.uniform(size=4000) < 1 / (1 + np.exp(-2 * above))).astype(float)
    held_out = np.arange(4000) % 2 == 0
    shifted = held_out_loss(above + backgrounds, hits, held_out)
    assert held_out_loss(above, hits, held_out) < 0.9 * shifted
    assert held_out_loss(above, hits, np.zeros(4000, dtype=bool)) == math.inf
    # Fitting takes what predicts the held-out half better, whichever that is.
    graph = tiny.tiny_graph()
    queries = QuerySet("valid", (tiny.tiny_queries()["valid"].block("1p"),))
    model = build_model("gqe", graph.num_entities, graph.num_relations, tiny.CONFIGS["gqe"], 0)
    owners, none = np.arange(4000), np.empty(0)
    for scores, is_relative in ((above + backgrounds, True), (above, False)):
        sample = Sample(4000, scores, backgrounds, hits, owners, 0, 0, none, none)
        monkeypatch.setattr(calibration_module, "_examine", lambda *_, sample=sample: sample)
        fitted = fit_calibration(model, graph, queries)
        assert fitted.relative == is_relative
        assert fitted.predicted.x == pytest.approx(fit_curve(above, hits).x)
    relative = replace(CALIBRATION, predicted=Curve((0.0, 2.0), (0.0, 1.0)), relative=True)
    assert relative.probability(11.0, 10.0, known=False, certain=False) == 0.5
    absolute = replace(relative, relative=False)
    assert absolute.probability(11.0, 10.0, known=False, certain=False) == 1.0
