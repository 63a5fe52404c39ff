"""Calibrations: their curves, the outlines of regions, and the file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conekg.answering.calibration import (
    Calibration,
    CountCurve,
    ScoreCurve,
    calibration_of,
    load_calibration,
    outlines,
    save_calibration,
)
from conekg.answering.curves import Curve
from conekg.errors import StoreError
from conekg.query.shape import STRUCTURES, shape_of
from conekg.query.tree import Anchor

CALIBRATION = Calibration(
    predicted=ScoreCurve(Curve((-1.0, 2.0), (0.0, 0.5)), relative=True, error=0.5),
    count=CountCurve(Curve((1.0,), (2.0,)), 1.25),
    error=0.25,
    known_kept=0.9,
    num_queries=12,
    predicted_of={"e.r": ScoreCurve(Curve((3.0,), (0.25,)), relative=False, error=0.125)},
    count_of={"e.r": CountCurve(Curve((1.0,), (3.0,)), 1.125)},
    kept_of={"((!e.r) & e.r)": 0.75},
)

NOT_RISING = "a curve needs rising knots"
NOT_FINITE = "a curve has a knot that is no finite number"


@pytest.mark.parametrize("calibration", [CALIBRATION, replace(CALIBRATION, count=None)])
def test_saving_and_loading(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    save_calibration(calibration, path)
    assert load_calibration(path) == calibration


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda content: content.pop("predicted"), "it lacks 'predicted'"),
        (lambda content: content.update(format=99), "calibration format 99; this version reads 2"),
        (lambda content: content.update(error="much"), "'error' is 'much', not a number"),
        (lambda content: content["predicted"]["curve"].update(x=[2.0, -1.0]), NOT_RISING),
        (lambda content: content["predicted"]["curve"].update(y=[0.5, 0.0]), NOT_RISING),
        (lambda content: content["predicted"]["curve"].update(y=[0.0]), NOT_RISING),
        (lambda content: content["predicted"]["curve"].update(x=[], y=[]), NOT_RISING),
        (lambda content: content["predicted"]["curve"].update(x=[math.nan, math.nan]), NOT_FINITE),
        (lambda content: content["predicted"]["curve"].update(y=[0.0, math.inf]), NOT_FINITE),
        (lambda content: content["predicted_of"]["e.r"]["curve"].update(x=[2.0, 1.0]), NOT_RISING),
        (lambda content: content.update(count=3), "'count' is 3, not an object"),
        (
            lambda content: content.update(num_queries=math.inf),
            "'num_queries' is inf, not a whole number",
        ),
        (lambda content: content.update(count_of=[1, 2]), r"'count_of' is \[1, 2\], not an object"),
        (lambda content: content["count_of"]["e.r"].pop("factor"), "it lacks 'factor'"),
        (lambda content: content.update(kept_of={"e.r": []}), r"'e.r' is \[\], not a number"),
        (lambda content: content.update(weights=7), "'weights' is 7, not a string"),
    ],
)
def test_damaged_files_are_refused(damage: object, told: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    save_calibration(CALIBRATION, path)
    content = json.loads(path.read_text())
    damage(content)  # type: ignore[operator]
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=f": {told}\n") as caught:
        load_calibration(path)
    assert str(path) in caught.value.message
    assert "fit it again with `conekg calibrate`" in str(caught.value.hint)


def test_files_of_format_1_have_one_curve_for_all_shapes(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    curve = {"x": [-1.0, 2.0], "y": [0.0, 0.5]}
    count = {"log_count": {"x": [1.0], "y": [2.0]}, "factor": 1.25}  # of all answers
    old = {"format": 1, "predicted": curve, "relative": True, "error": 0.25, "known_kept": 0.9}
    path.write_text(json.dumps({**old, "count": count, "num_queries": 12, "weights": "some"}))
    scores = ScoreCurve(Curve((-1.0, 2.0), (0.0, 0.5)), relative=True, error=0.25)
    bare = Calibration(scores, None, error=0.25, known_kept=0.9, num_queries=12, weights="some")
    assert load_calibration(path) == bare


def test_files_of_format_2_may_lack_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    save_calibration(CALIBRATION, path)
    content = json.loads(path.read_text())
    assert content["format"] == 2
    del content["weights"]
    path.write_text(json.dumps(content))
    assert load_calibration(path) == CALIBRATION


def test_a_calibration_without_weights_is_that_of_the_best(tmp_path: Path) -> None:
    run: Any = SimpleNamespace(folder=tmp_path, weights_name={"best": "a", "last": "b"}.get)
    assert calibration_of(run, "best") is None
    for weights, of_best, of_last in ((None, True, False), ("a", True, False), ("b", False, True)):
        save_calibration(replace(CALIBRATION, weights=weights), tmp_path / "calibration.json")
        assert (calibration_of(run, "best") is not None) == of_best
        assert (calibration_of(run, "last") is not None) == of_last


def test_each_checkpoint_has_its_own_file(tmp_path: Path) -> None:
    """Also if the last weights are the best ones, so that both files would fit."""
    run: Any = SimpleNamespace(folder=tmp_path, weights_name={"best": "a", "last": "a"}.get)
    names = {"best": "calibration.json", "last": "calibration-last.json"}
    for number, name in enumerate(names.values()):
        saved = replace(CALIBRATION, weights="a", num_queries=number)
        save_calibration(saved, tmp_path / name)
    found = [calibration_of(run, "best"), calibration_of(run, "last")]
    assert [calibration and calibration.num_queries for calibration in found] == [0, 1]
    (tmp_path / names["last"]).write_text("{")
    assert calibration_of(run, "best") == found[0]
    with pytest.raises(StoreError, match="not a readable calibration"):
        calibration_of(run, "last")


def test_curves_of_a_shape_take_precedence() -> None:
    """Score curves are looked up by all regions in any order, count curves by each region."""
    own = ScoreCurve(Curve((0.0,), (0.5,)), relative=False, error=0.1)
    both = "e.r | e.r.r"
    calibration = replace(CALIBRATION, predicted_of={both: own}, kept_of={both: 0.5})
    for regions in (("e.r", "e.r.r"), ("e.r.r", "e.r")):
        assert calibration.scores(regions) is own
        assert calibration.kept(regions) == 0.5
    for regions in (("e.r",), ("e.r", "e.r"), ("e.r", "e.r.r", "e.r.r")):
        assert calibration.scores(regions) is CALIBRATION.predicted
        assert calibration.kept(regions) == CALIBRATION.known_kept
    assert calibration.sizes("e.r") is CALIBRATION.count_of["e.r"]
    assert calibration.sizes("e.r.r") is CALIBRATION.count


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    for content in (b"", b"{", b"[]", b"\xff\xfe", b"[" * 200_000):
        path.write_bytes(content)
        with pytest.raises(StoreError, match="not a readable calibration: it ") as caught:
            load_calibration(path)
        assert caught.value.path == str(path)
        assert "conekg calibrate" in str(caught.value.hint)
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        load_calibration(tmp_path / "nothing.json")


@pytest.mark.parametrize("key", ["predicted", "relative", "error"])
def test_what_a_file_of_format_1_lacks_is_named(tmp_path: Path, key: str) -> None:
    path = tmp_path / "calibration.json"
    content = {"format": 1, "predicted": {"x": [1.0], "y": [0.5]}, "relative": True, "error": 0.25}
    del content[key]
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=f"it lacks '{key}'"):
        load_calibration(path)


def test_counts_are_read_off_a_curve_of_logarithms() -> None:
    counter = CountCurve(Curve((0.0, 10.0), (0.0, math.log(11))), 2.0)
    assert counter.missing(10.0) == pytest.approx(10)
    assert counter.missing(5.0) == pytest.approx(math.sqrt(11) - 1)
    assert counter.missing(0.0) == 0


def test_outlines_ignore_the_order_of_operands() -> None:
    a, b = Anchor(1).project(0), Anchor(2).project(1).project(0)
    for union in ("dnf", "demorgan"):
        both = {outlines(shape_of(query), union, 64) for query in (a & b, b & a)}
        assert both == {("(e.r & e.r.r)",)}
    assert outlines(STRUCTURES["up"], "dnf", 64) == ("e.r.r", "e.r.r")
    assert outlines(shape_of(b | b), "dnf", 64) == ("e.r.r", "e.r.r")
    assert outlines(shape_of(a | b), "demorgan", 64) == ("(!((!e.r) & (!e.r.r)))",)
