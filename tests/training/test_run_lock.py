"""Only one process can lock a run, and the lock ends with the process."""

import os
import signal
import subprocess
import sys

import pytest

from conekg.errors import CheckpointError
from conekg.graph import lock
from conekg.training.run_lock import held_for_training

HOLD = """
import sys, time
from pathlib import Path
from conekg.training.run_lock import held_for_training
with held_for_training(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    return tmp_path


def test_a_run_that_another_process_trains_is_refused_until_it_is_killed(folder):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match="is already being trained") as caught:
            held_for_training(folder).__enter__()
        assert str(folder) in caught.value.message
        assert "another folder" in caught.value.hint
        other.kill()
    with held_for_training(folder):
        pass
    assert [path.name for path in folder.iterdir()] == ["run.json"], "nothing is left behind"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not a Unix")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_lock(folder):
    """For example the worker processes of a library, which inherit the open file."""
    with held_for_training(folder):
        child = os.fork()
        if not child:
            signal.pause()
    try:
        with held_for_training(folder):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_errors_in_the_block_are_not_swallowed(folder):
    with pytest.raises(OSError, match="disk"), held_for_training(folder):
        raise OSError("disk")


def test_without_locks_of_the_system_nothing_is_locked(folder, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with held_for_training(folder), held_for_training(folder):
        pass
    monkeypatch.setattr(lock, "fcntl", None)
    with held_for_training(folder), held_for_training(folder):
        pass
