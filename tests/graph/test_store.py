from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conekg.errors import StoreError
from conekg.graph import store as store_module
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.store import HEADER, check_replaceable, is_store, load_graph, save_graph

REBUILD = "the store is damaged; build the graph again with `conekg graph build`"


@pytest.fixture
def store(film_graph: KnowledgeGraph, tmp_path: Path) -> Path:
    return save_graph(film_graph, tmp_path / "films")


def test_a_graph_comes_back_as_it_was(film_graph: KnowledgeGraph, store: Path) -> None:
    loaded = load_graph(store)
    assert loaded.name == film_graph.name
    assert loaded.vocabulary == film_graph.vocabulary
    assert loaded.fingerprint == film_graph.fingerprint
    for split in SPLITS:
        np.testing.assert_array_equal(loaded.edges(split), film_graph.edges(split))
        before, after = film_graph.adjacency(split), loaded.adjacency(split)
        for field in fields(before):
            np.testing.assert_array_equal(getattr(after, field.name), getattr(before, field.name))
    rebuilt = KnowledgeGraph(
        loaded.name, loaded.vocabulary, {split: loaded.edges(split) for split in SPLITS}
    )
    assert rebuilt.fingerprint == film_graph.fingerprint


def test_look_ups_work_on_the_stored_index(store: Path) -> None:
    entities = load_graph(store).vocabulary.entities
    assert entities.name(entities.id_of("Argo")) == "f1"
    found = entities.with_prefix("al")
    assert [entities.label(i) for i in found] == ["Alien"]
    assert entities.suggest("Arggo")[0] == "Argo"


def test_arrays_are_mapped_not_loaded_and_cannot_be_written(store: Path) -> None:
    tails = load_graph(store).adjacency("test").tails
    assert type(tails) is np.ndarray
    base = tails
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        tails[0] = 1


def test_saving_again_replaces_the_store_and_leaves_nothing_behind(
    random_graph: KnowledgeGraph, store: Path
) -> None:
    save_graph(random_graph, store)
    assert load_graph(store).fingerprint == random_graph.fingerprint
    assert [path.name for path in store.parent.iterdir()] == [store.name]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("move", [1, 2])
def test_one_store_is_left_whatever_interrupts_the_exchange(
    film_graph: KnowledgeGraph,
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    move: int,
) -> None:
    store = save_graph(film_graph, tmp_path / "graph")
    moves: list[Path] = []
    replace = Path.replace

    def fail_once(path: Path, target: Path) -> Path:
        moves.append(path)
        if len(moves) == move:
            raise error("stop")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", fail_once)
    with pytest.raises((error, StoreError)):
        save_graph(random_graph, store)
    assert load_graph(store).fingerprint == film_graph.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_a_store_reaches_the_disk_before_the_one_it_replaces_is_gone(
    film_graph: KnowledgeGraph,
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = save_graph(film_graph, tmp_path / "graph")
    synced: list[tuple[int, str]] = []

    def note(file: int) -> None:
        synced.append((os.fstat(file).st_ino, load_graph(store).fingerprint))

    monkeypatch.setattr(os, "fsync", note)
    save_graph(random_graph, store)
    files = {path.stat().st_ino for path in store.rglob("*") if path.is_file()}
    assert files
    assert files <= {number for number, _ in synced}
    assert {fingerprint for _, fingerprint in synced} == {film_graph.fingerprint}


def test_a_link_to_a_store_stays_a_link(
    film_graph: KnowledgeGraph, random_graph: KnowledgeGraph, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "graph"
    link.symlink_to(store)
    assert save_graph(random_graph, link) == link
    assert link.is_symlink()
    assert load_graph(store).fingerprint == random_graph.fingerprint
    assert [path.name for path in link.parent.iterdir()] == ["graph"]
    dangling = tmp_path / "links" / "later"
    dangling.symlink_to(tmp_path / "elsewhere" / "graph")
    save_graph(film_graph, dangling)
    assert load_graph(tmp_path / "elsewhere" / "graph").fingerprint == film_graph.fingerprint


def test_the_folders_above_a_store_are_made(film_graph: KnowledgeGraph, tmp_path: Path) -> None:
    folder = tmp_path / "graphs" / "of" / "films"
    assert load_graph(save_graph(film_graph, folder)).fingerprint == film_graph.fingerprint
    with pytest.raises(StoreError, match=r"cannot be written: .*graph\.json is a file"):
        check_replaceable(folder / HEADER / "more")


def test_an_open_graph_survives_being_replaced(
    film_graph: KnowledgeGraph, random_graph: KnowledgeGraph, store: Path
) -> None:
    loaded = load_graph(store)
    save_graph(random_graph, store)
    np.testing.assert_array_equal(
        loaded.adjacency("test").tails, film_graph.adjacency("test").tails
    )


def test_folders_that_are_not_stores_are_not_replaced(
    film_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("hours of work")
    with pytest.raises(StoreError, match="is not a graph store, so it is left alone") as caught:
        save_graph(film_graph, tmp_path / "thesis")
    assert caught.value.path == str(tmp_path / "thesis")
    assert caught.value.hint == "choose another folder, or remove this one first"
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "hours of work"
    (tmp_path / "empty").mkdir()
    assert is_store(save_graph(film_graph, str(tmp_path / "empty")))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "cannot be written: No space left on device$"),
        # as NumPy words it
        (
            OSError("90 requested and 38 written"),
            "90 requested and 38 written; the disk may be full",
        ),
    ],
)
def test_a_failed_save_keeps_the_old_store(
    film_graph: KnowledgeGraph,
    random_graph: KnowledgeGraph,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    told: str,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    for module, name in ((tempfile, "mkdtemp"), (np, "save")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, full)
            with pytest.raises(StoreError, match=told if module is np else "cannot be") as caught:
                save_graph(random_graph, store)
        assert caught.value.path == str(store)
    assert load_graph(store).fingerprint == film_graph.fingerprint
    assert [path.name for path in store.parent.iterdir()] == [store.name]


def test_loading_a_folder_that_is_no_store_is_an_error(tmp_path: Path) -> None:
    assert not is_store(tmp_path)
    with pytest.raises(StoreError, match=r"is not a graph store: it has no graph.json") as caught:
        load_graph(tmp_path)
    assert "conekg graph build" in str(caught.value)


def damaged(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file() and path.name != HEADER)


def test_every_truncated_or_missing_file_is_noticed(store: Path) -> None:
    for path in damaged(store):
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        told = f"has {len(content) - 1:,} bytes instead of {len(content):,}"
        with pytest.raises(StoreError, match=told) as caught:
            load_graph(store)
        assert (caught.value.path, caught.value.hint) == (str(path), REBUILD)
        path.unlink()
        with pytest.raises(StoreError, match="is missing from the store") as caught:
            load_graph(store)
        assert (caught.value.path, caught.value.hint) == (str(path), REBUILD)
        path.write_bytes(content)
    load_graph(store)


def load_whole(store: Path) -> None:
    graph = load_graph(store)
    for split in SPLITS:
        graph.adjacency(split)


def test_a_file_that_is_not_what_its_name_says_is_refused(store: Path) -> None:
    header = (store / HEADER).read_text()
    for path in damaged(store):
        content, garbage = path.read_bytes(), b"neither numbers nor names"
        path.write_bytes(garbage)
        told = json.loads(header)
        told["files"][path.relative_to(store).as_posix()] = {
            "bytes": len(garbage),
            "sha256": hashlib.sha256(garbage).hexdigest(),
        }
        (store / HEADER).write_text(json.dumps(told))
        with pytest.raises(StoreError, match="cannot be read: ") as caught:
            load_whole(store)
        assert (caught.value.path, caught.value.hint) == (str(path), REBUILD)
        path.write_bytes(content)


def test_every_changed_byte_is_noticed(store: Path) -> None:
    for path in damaged(store):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(StoreError, match="does not match its checksum"):
            load_graph(store)
        path.write_bytes(content)


def test_checksums_are_looked_at_in_small_stores_and_on_request(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store / "edges" / "test.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    files = json.loads((store / HEADER).read_text())["files"]
    size = sum(entry["bytes"] for entry in files.values())
    for most, verify, is_looked_at in (
        (size, None, True),
        (size - 1, None, False),
        (size, False, False),
        (size - 1, True, True),
    ):
        monkeypatch.setattr(store_module, "VERIFIED_BYTES", most)
        told = "does not match its checksum"
        with pytest.raises(StoreError, match=told) if is_looked_at else nullcontext():
            load_graph(str(store), verify=verify)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{", "cannot be read"),
        ('{"format": "something else"}', "is not the header of a conekg graph"),
        ("[]", "is not the header of a conekg graph"),
    ],
)
def test_damaged_headers_are_noticed(store: Path, header: str, message: str) -> None:
    (store / HEADER).write_text(header)
    with pytest.raises(StoreError, match=message):
        load_graph(store)


def test_stores_of_a_newer_conekg_are_refused(store: Path) -> None:
    header = json.loads((store / HEADER).read_text())
    (store / HEADER).write_text(json.dumps({**header, "version": 99}))
    with pytest.raises(StoreError, match="has format version 99; this conekg reads version 1"):
        load_graph(store)


def refused(store: Path, header: str) -> str:
    """The error message for a header, after checking that it names the file and a remedy."""
    (store / HEADER).write_text(header)
    with pytest.raises(StoreError) as caught:
        load_graph(store)
    assert caught.value.path == str(store / HEADER)
    assert "build the graph again" in str(caught.value.hint)
    return caught.value.message


def test_a_truncated_header_is_refused(store: Path) -> None:
    text = (store / HEADER).read_text()
    for stop in range(0, len(text.rstrip()), 29):
        assert "cannot be read" in refused(store, text[:stop])
    assert "cannot be read" in refused(store, "[" * 100_000)
    (store / HEADER).write_text(text)
    load_graph(store)


@pytest.mark.parametrize("key", ["name", "fingerprint", "files"])
def test_a_header_without_its_fields_is_damaged(store: Path, key: str) -> None:
    header = json.loads((store / HEADER).read_text())
    for value in (None, 3, ["x"], True):
        told = refused(store, json.dumps({**header, key: value}))
        assert f"{key!r} is {value!r}, not a" in told
    del header[key]
    assert f"lacks {key!r}" in refused(store, json.dumps(header))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (None, "lacks 'edges/train.npy'"),
        ("x", "'edges/train.npy' is 'x', not an object"),
        ({"bytes": 1}, "lacks 'sha256' of 'edges/train.npy'"),
        ({"sha256": "0"}, "lacks 'bytes' of 'edges/train.npy'"),
        ({"bytes": "1", "sha256": "0"}, "'bytes' of 'edges/train.npy' is '1', not a whole number"),
        ({"bytes": 1.5, "sha256": "0"}, "'bytes' of 'edges/train.npy' is 1.5, not a whole number"),
        ({"bytes": 1, "sha256": None}, "'sha256' of 'edges/train.npy' is None, not a string"),
    ],
)
def test_the_header_lists_every_file_of_a_store(store: Path, entry: Any, message: str) -> None:
    header = json.loads((store / HEADER).read_text())
    listed = {path.relative_to(store).as_posix() for path in damaged(store)}
    assert set(header["files"]) == listed
    header["files"]["edges/train.npy"] = entry
    if entry is None:
        del header["files"]["edges/train.npy"]
    assert message in refused(store, json.dumps(header))


def test_missing_columns_are_noticed_without_a_checksum(store: Path) -> None:
    path = store / "entities.arrow"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"label", b"lable"))
    with pytest.raises(StoreError, match=r"entities\.arrow: cannot be read"):
        load_graph(store, verify=False)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_a_store_has_the_permissions_of_any_new_folder(
    film_graph: KnowledgeGraph, tmp_path: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "plain").mkdir()
        first = save_graph(film_graph, tmp_path / "films").stat().st_mode
        again = save_graph(film_graph, tmp_path / "films").stat().st_mode
    finally:
        os.umask(before)
    assert first == again == (tmp_path / "plain").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["films", "plain"]


@pytest.mark.parametrize("name", ["graph.json", "entities.arrow"])
def test_a_file_without_read_permission_is_not_called_damaged(
    store: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def refusing(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(StoreError, match=f"{name}: cannot be read: Permission denied") as caught:
        load_graph(store)
    assert caught.value.hint is None
