"""Whether something can be written, before it is made."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conekg.errors import StoreError
from conekg.graph import place
from conekg.graph.place import check_place, place_of, sync_tree, write_atomically, written_whole


def test_checking_a_place_in_missing_folders_makes_nothing(tmp_path: Path) -> None:
    check_place(tmp_path / "a" / "b" / "run")
    assert not list(tmp_path.iterdir())


def test_nothing_can_be_put_under_a_file(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(StoreError, match=r"cannot be written: .*notes\.txt is a file") as caught:
        check_place(file / "deep" / "run")
    assert str(file / "deep" / "run") in caught.value.message
    assert file.read_text() == "mine"


def test_a_folder_that_cannot_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(place.tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(StoreError, match=f"Read-only file system in {tmp_path}"):
        check_place(tmp_path / "run")


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "graph")
    assert place_of(tmp_path / "link") == tmp_path / "disk" / "graph"
    (tmp_path / "file").write_text("mine")
    (tmp_path / "bad").symlink_to(tmp_path / "file" / "graph")
    with pytest.raises(StoreError, match="is a file"):
        check_place(tmp_path / "bad")


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    with written_whole(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_threads_that_write_one_file_do_not_mix_their_contents(tmp_path: Path) -> None:
    path, both = tmp_path / "file", threading.Barrier(2, timeout=20)

    def write(text: bytes) -> None:
        with written_whole(path) as file:
            both.wait()
            file.write(text)
            both.wait()

    texts = [b"a" * 9, b"b" * 5]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, texts))
    assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_file_that_is_not_finished_leaves_the_old_one(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def stop() -> None:
        with written_whole(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        stop()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with written_whole(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_file_reaches_the_disk_before_its_name_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.read_bytes()))
    write_atomically(path, b"new")
    assert synced == [b"old", b"new"]  # the content, then the folder
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_that_a_link_leads_to_reaches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "file")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    write_atomically(tmp_path / "link", b"new")
    assert synced[-1] == (tmp_path / "disk").stat().st_ino


def test_all_that_is_in_a_folder_reaches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("content")
    (tmp_path / "file").touch()
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    sync_tree(tmp_path)
    paths = [tmp_path, *tmp_path.rglob("*")]
    assert len(paths) == 5
    assert sorted(synced) == sorted(path.stat().st_ino for path in paths)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
