from __future__ import annotations

import errno
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from conekg.errors import DataError, StoreError
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.sampling import export
from conekg.sampling.benchmark_files import holds_queries, read_queries
from conekg.sampling.betae_files import write_betae
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.query_set import QuerySet
from release_files import FORMS, Write, content, origin, sampled_queries


def sampled_links(graph: KnowledgeGraph, split: Split = "test", seed: int = 3) -> QuerySet:
    return sampled_queries(graph, split, ("1p", "2p"), count=6, seed=seed)


@pytest.mark.parametrize("release", [None, "Query2Box"])
def test_a_query2box_export_replaces_all_of_an_earlier_one(
    random_graph: KnowledgeGraph, tmp_path: Path, release: str | None
) -> None:
    """Queries of a shape that the new set lacks would be read as part of it."""
    larger = sampled_links(random_graph)
    write_query2box(tmp_path, larger)
    (tmp_path / "valid_triples_2c.pkl").write_bytes(b"")
    smaller = replace(sampled_links(random_graph, seed=4), release=release)
    smaller = replace(smaller, blocks=smaller.blocks[:1])
    written = write_query2box(tmp_path, smaller)
    assert {*written, tmp_path / "valid_triples_2c.pkl"} == {*tmp_path.iterdir()}
    back = read_queries(tmp_path, "test", random_graph)
    assert [block.shape.name for block in back] == ["1p"]
    assert back.release == release


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_an_export_of_a_release_is_replaced_like_any_other(
    random_graph: KnowledgeGraph, tmp_path: Path, write: Write, release: str, name: str
) -> None:
    own = sampled_links(random_graph)
    official = replace(
        sampled_links(random_graph, seed=4), release=release, protocol=None, seed=None
    )
    for query_set in (official, official, own, official):
        written = write(tmp_path, query_set)
        assert written[-1] == tmp_path / name.format("test")
        assert sorted(written) == sorted(tmp_path.iterdir())
        back = read_queries(tmp_path, "test", random_graph)
        assert origin(back) == origin(query_set)
        assert content(back) == content(query_set)


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_queries_of_another_origin_are_left_alone(
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    write: Write,
    release: str,
    name: str,
    is_changed: bool,
) -> None:
    """All, or those changed since they were exported, also of a shape that the new set lacks."""
    *pickles, stated = write(tmp_path, sampled_links(random_graph))
    queries = [file for file in pickles if "queries" in file.name or "triples" in file.name]
    others = queries[-1:] if is_changed else queries
    if is_changed:
        others[0].write_bytes(pickle.dumps(pickle.loads(others[0].read_bytes()), protocol=5))
    else:
        stated.unlink()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    own = sampled_links(random_graph, seed=4)
    with pytest.raises(DataError, match="holds test queries that may be a release's") as caught:
        write(tmp_path, replace(own, blocks=own.blocks[:1]))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert str(tmp_path) in str(caught.value)
    assert f"remove {', '.join(file.name for file in others)} there" in str(caught.value.hint)
    write(tmp_path, sampled_links(random_graph, "valid"))
    for file in others:
        file.unlink()
    write(tmp_path, own)
    assert origin(read_queries(tmp_path, "test", random_graph)) == origin(own)


@pytest.mark.parametrize("write", [write_betae, write_query2box])
@pytest.mark.parametrize(
    ("error", "told"), [(OSError, "cannot be written: No space left"), (KeyboardInterrupt, None)]
)
def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path, QuerySet], list[Path]],
    error: type[BaseException],
    told: str | None,
) -> None:
    query_set = sampled_queries(random_graph, "test", ("2p",))
    write(tmp_path, query_set)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 4

    def stop(_content: object, file: BinaryIO, **_: object) -> None:
        file.write(b"half")
        raise error(28, "No space left on device")

    monkeypatch.setattr(pickle, "dump", stop)
    with pytest.raises(StoreError if error is OSError else error, match=told):
        write(tmp_path, query_set)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_a_full_disk_leaves_an_earlier_export_or_nothing(
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    release: str,
    name: str,
) -> None:
    """Queries that were written before the disk was full would pass for the release's."""
    write(tmp_path / "earlier", sampled_links(random_graph))
    before = {file.name: file.read_bytes() for file in (tmp_path / "earlier").iterdir()}
    for place in ("earlier", "new"):
        opened = list[Path]()

        def written_whole(
            path: Path, opened: list[Path] = opened, usual: Callable = export.written_whole
        ) -> AbstractContextManager:
            opened.append(path)
            if len(opened) == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
            return usual(path)

        with monkeypatch.context() as patch:
            patch.setattr(export, "written_whole", written_whole)
            with pytest.raises(StoreError, match="No space left") as caught:
                write(tmp_path / place, sampled_links(random_graph, seed=4))
        assert str(tmp_path / place / opened[-1].name) in str(caught.value)
    assert {file.name: file.read_bytes() for file in (tmp_path / "earlier").iterdir()} == before
    assert not [*(tmp_path / "new").iterdir()]


def stopping(
    method: Callable, at: int, folder: Path, changes: list[Path], stop_at: int
) -> Callable[..., object]:
    """A method of paths that stops the program at a change of a file in `folder`."""

    def stops(*paths: Path, **options: bool) -> object:
        if paths[at].parent == folder:
            changes.append(paths[at])
            if len(changes) == stop_at:
                raise KeyboardInterrupt
        return method(*paths, **options)

    return stops


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_queries_are_never_without_their_origin_even_if_an_export_is_stopped(
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    release: str,
    name: str,
) -> None:
    earlier, own = sampled_links(random_graph), sampled_links(random_graph, seed=4)
    for stop_at in range(1, 20):
        folder = tmp_path / str(stop_at)
        write(folder, earlier)
        changes = list[Path]()
        with monkeypatch.context() as patch:
            for method, at in ((Path.replace, 1), (Path.unlink, 0)):
                patch.setattr(Path, method.__name__, stopping(method, at, folder, changes, stop_at))
            try:
                write(folder, own)
            except KeyboardInterrupt:
                is_stopped = True
            else:
                is_stopped = False
        if holds_queries(folder, "test"):
            back = read_queries(folder, "test", random_graph, recompute=True)
            assert origin(back) in (origin(earlier), origin(own))
        write(folder, own)
        assert origin(read_queries(folder, "test", random_graph)) == origin(own)
        if not is_stopped:
            break
    assert stop_at > 6
    assert not is_stopped
