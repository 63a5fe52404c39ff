"""While one process holds a lock, other processes wait or fail."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conekg.graph import lock
from conekg.graph.lock import locked

HOLD = """
import sys
from pathlib import Path
from conekg.graph.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["file", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "place"
    path.touch() if request.param == "file" else path.mkdir()
    return path


def test_a_lock_held_by_another_process_is_waited_for_or_refused(place: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError):
            locked(place).__enter__()
        told: list[str] = []

        def let_go_after_a_while() -> None:
            told.append("waiting")
            if len(told) == 3:
                other.stdin.close()  # type: ignore[union-attr]

        with locked(place, let_go_after_a_while):
            assert other.wait(timeout=30) == 0
            with pytest.raises(BlockingIOError):
                locked(place).__enter__()
    assert len(told) >= 3
    with locked(place, lambda: told.append("free")):
        pass
    assert set(told) == {"waiting"}


def test_a_file_is_locked_where_locks_need_a_descriptor_open_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is so on NFS, where an exclusive lock needs a descriptor that is open for writing."""
    system = lock.fcntl
    assert system is not None
    real = system.flock

    def lock_for_writers(descriptor: int, operation: int) -> None:
        mode = system.fcntl(descriptor, system.F_GETFL) & os.O_ACCMODE
        if operation & system.LOCK_EX and mode == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real(descriptor, operation)

    monkeypatch.setattr(system, "flock", lock_for_writers)
    path = tmp_path / "file"
    path.write_text("content")
    with locked(path), pytest.raises(BlockingIOError):
        locked(path).__enter__()
    assert path.read_text() == "content"


def test_a_read_only_file_is_locked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "file", os.open
    path.touch()

    def open_to_read(path: Path, flags: int) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, flags)

    monkeypatch.setattr(lock.os, "open", open_to_read)
    with locked(path), pytest.raises(BlockingIOError):
        locked(path).__enter__()


def test_an_error_inside_the_block_releases_the_lock(place: Path) -> None:
    with pytest.raises(OSError, match="disk"), locked(place):
        raise OSError("disk")
    with locked(place):
        pass


def test_a_lock_leaves_no_file_open(place: Path) -> None:
    def free_descriptor() -> int:
        descriptor = os.open(place, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    before = free_descriptor()
    with locked(place):
        assert free_descriptor() != before
    assert free_descriptor() == before


def test_without_lock_support_the_block_runs_without_a_lock(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    assert lock.fcntl is not None
    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with locked(place), locked(place):
        pass
    monkeypatch.setattr(lock, "fcntl", None)
    with locked(place), locked(place):
        pass
