"""Checkpoints are written in the background complete and in order, and errors are raised."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from conekg.errors import CheckpointError
from conekg.training import checkpoint_writer
from conekg.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from conekg.training.checkpoint_writer import CheckpointWriter


class Gate:
    """Writes checkpoints once it is open, and records which."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.written: list[tuple[str, int]] = []

    def __call__(self, folder: Path, checkpoint: Checkpoint) -> None:
        assert self.is_open.wait(30)
        save_checkpoint(folder, checkpoint)
        self.written.append((folder.name, checkpoint.step))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", gate)
    yield gate
    gate.is_open.set()


def refuse(folder: Path, checkpoint: Checkpoint) -> None:
    raise CheckpointError(f"no room for step {checkpoint.step} in {folder.name}")


def checkpoint_at(step: int) -> Checkpoint:
    return Checkpoint(step, {"w": torch.full((2, 2), float(step))}, {"w:m": torch.ones(3) * step})


def test_later_changes_of_the_tensors_are_not_written(tmp_path: Path, gate: Gate) -> None:
    given = checkpoint_at(1)
    with CheckpointWriter() as writer:
        writer.save(tmp_path / "best", tmp_path / "last", checkpoint=given)
        given.parameters["w"].fill_(torch.nan)  # as training goes on
        given.optimizer["w:m"].zero_()
        assert gate.written == []
        gate.is_open.set()
    assert gate.written == [("best", 1), ("last", 1)]
    for name in ("best", "last"):
        found = load_checkpoint(tmp_path / name)
        assert found.step == 1
        assert torch.equal(found.parameters["w"], torch.ones(2, 2))
        assert torch.equal(found.optimizer["w:m"], torch.ones(3))


def test_a_checkpoint_waits_for_the_one_before(tmp_path: Path, gate: Gate) -> None:
    with CheckpointWriter() as writer:
        writer.save(tmp_path / "last", checkpoint=checkpoint_at(1))
        opener = threading.Timer(0.2, gate.is_open.set)
        opener.start()
        writer.save(tmp_path / "last", checkpoint=checkpoint_at(2))
        assert gate.written[0] == ("last", 1)
        writer.wait()
        assert gate.written == [("last", 1), ("last", 2)]
        writer.wait()
        opener.join()
    assert load_checkpoint(tmp_path / "last").step == 2


def test_an_error_is_raised_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", refuse)

    def ask_at_the_end() -> None:
        with CheckpointWriter() as writer:
            writer.save(tmp_path / "last", checkpoint=checkpoint_at(1))

    def ask_before_the_next() -> None:
        with CheckpointWriter() as writer:
            writer.save(tmp_path / "last", checkpoint=checkpoint_at(1))
            writer.save(tmp_path / "last", checkpoint=checkpoint_at(2))

    def ask_now_and_then() -> None:
        with CheckpointWriter() as writer:
            writer.save(tmp_path / "last", checkpoint=checkpoint_at(1))
            while True:
                writer.check()

    for ask in (ask_at_the_end, ask_before_the_next, ask_now_and_then):
        with pytest.raises(CheckpointError, match="no room for step 1 in last"):
            ask()


def test_if_the_best_cannot_be_written_the_last_is_not_written_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last checkpoint records the best score, whose weights would be missing."""

    def refuse_the_best(folder: Path, checkpoint: Checkpoint) -> None:
        if folder.name == "best":
            refuse(folder, checkpoint)
        save_checkpoint(folder, checkpoint)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", refuse_the_best)
    with CheckpointWriter() as writer:
        writer.save(tmp_path / "best", tmp_path / "last", checkpoint=checkpoint_at(1))
        with pytest.raises(CheckpointError, match="no room for step 1 in best"):
            writer.wait()
    assert not (tmp_path / "last").exists()


def test_checking_for_errors_does_not_wait(tmp_path: Path, gate: Gate) -> None:
    with CheckpointWriter() as writer:
        writer.check()
        writer.save(tmp_path / "last", checkpoint=checkpoint_at(1))
        writer.check()
        assert gate.written == []
        gate.is_open.set()


def test_an_error_in_the_block_is_raised_after_the_checkpoint_is_written(
    tmp_path: Path, gate: Gate
) -> None:
    def fail() -> None:
        with CheckpointWriter() as writer:
            writer.save(tmp_path / "best", tmp_path / "last", checkpoint=checkpoint_at(1))
            threading.Timer(0.2, gate.is_open.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert gate.written == [("best", 1), ("last", 1)]
