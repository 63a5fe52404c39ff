import importlib.util
import json
import sys

import pytest

from conekg.errors import CheckpointError
from conekg.training import tracking
from conekg.training.tracking import Tracker, read_metrics


def test_lines_are_events(tmp_path):
    with Tracker(tmp_path) as tracker:
        tracker.log("train", 1, {"path": 0.5})
        tracker.log("valid", 2, {"score": 0.25})
        assert len(read_metrics(tmp_path)) == 2  # flushed before it is closed
    assert read_metrics(tmp_path) == [
        {"step": 1, "kind": "train", "path": 0.5},
        {"step": 2, "kind": "valid", "score": 0.25},
    ]
    assert list((tmp_path / "tensorboard").iterdir())


def test_resuming_removes_later_steps_and_a_line_that_was_cut_short(tmp_path):
    with Tracker(tmp_path) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, {"path": 1.0 / step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "ki')
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2, 3]
    with Tracker(tmp_path, from_step=2) as tracker:
        tracker.log("train", 3, {"path": 9.0})
    assert [line["path"] for line in read_metrics(tmp_path)] == [1.0, 0.5, 9.0]


@pytest.mark.parametrize(
    "line",
    [
        b'{"step": 2, "ki',
        b"\xff",
        b"[2]",
        b"2",
        b'{"kind": "train", "path": 0.5}',
        b'{"step": "2", "kind": "train"}',
        b'{"step": 2, "kind": 3}',
        b'{"step": 2, "kind": "train", "path": [0.5]}',
    ],
)
def test_a_damaged_line_is_named_by_its_number(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    good = b'{"step": 1, "kind": "train", "path": 0.5}\n'
    content = good + line + b"\n" + good
    path.write_bytes(content)
    for read in (read_metrics, lambda folder: Tracker(folder, from_step=9)):
        with pytest.raises(CheckpointError, match=r"metrics\.jsonl is damaged: line 2") as caught:
            read(tmp_path)
        assert "remove the line" in caught.value.hint
    assert path.read_bytes() == content, "nothing is lost"


def test_tensorboard_events_before_the_checkpoint_are_kept(tmp_path, monkeypatch):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    # Files are read in the order of their names: second, process, and number in the process. Two of
    # one second would be read the wrong way round if they were the ninth and the tenth.
    monkeypatch.setattr(writer, "_global_uid", writer.AtomicCounter(0))
    with Tracker(tmp_path) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, {"path": 1.0 / step})
    with Tracker(tmp_path, from_step=2) as tracker:
        tracker.log("train", 4, {"path": 9.0})
    read = events.EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert [(e.step, e.value) for e in read.Scalars("train/path")] == [(1, 1.0), (2, 0.5), (4, 9.0)]


def test_tensorboard_is_optional(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        tracking.importlib.util,
        "find_spec",
        lambda name: None if name == "tensorboard" else real(name),
    )
    with Tracker(tmp_path) as tracker:
        tracker.log("train", 1, {"path": 0.5})
    assert not (tmp_path / "tensorboard").exists()
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["path"] == 0.5


def test_a_folder_called_tensorboard_is_not_taken_for_the_package(tmp_path, monkeypatch):
    """As in a run's folder, if Python runs there and TensorBoard is not installed."""
    (tmp_path / "tensorboard").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(tmp_path)])
        patch.delitem(sys.modules, "tensorboard", raising=False)
        assert importlib.util.find_spec("tensorboard") is not None
        with Tracker(tmp_path / "tensorboard") as tracker:
            tracker.log("train", 1, {"path": 0.5})
    assert [path.name for path in (tmp_path / "tensorboard").iterdir()] == ["metrics.jsonl"]


def test_no_metrics_yet(tmp_path):
    assert read_metrics(tmp_path) == []


def test_metrics_that_cannot_be_read_are_named_by_their_path(tmp_path):
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(CheckpointError, match=r"cannot read .*metrics\.jsonl: Is a directory"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_can_be_read_back(tmp_path, value):
    with Tracker(tmp_path) as tracker:
        tracker.log("train", 1, {"path": value})
    assert repr(read_metrics(tmp_path)[0]["path"]) == repr(value)
