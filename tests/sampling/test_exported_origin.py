from __future__ import annotations

import errno
import json
import pickle
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from conekg.errors import DataError, StoreError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.shape import STRUCTURES
from conekg.sampling import benchmark_files
from conekg.sampling.benchmark_files import (
    holds_queries,
    read_queries,
    write_betae,
    write_query2box,
)
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.query_set import QuerySet
from conekg.sampling.sample import sample_query_set

PLAIN = SamplingProtocol("plain", cap=12, patience=20_000)
FORMS = [
    (write_betae, "BetaE", "{}-queries-origin.json"),
    (write_query2box, "Query2Box", "{}_triples_origin.json"),
]
Write = Callable[[Path, QuerySet], list[Path]]


def sampled(graph: KnowledgeGraph, split: str = "test", seed: int = 3) -> QuerySet:
    shapes = [STRUCTURES["1p"], STRUCTURES["2p"]]
    return sample_query_set(graph, split, PLAIN, seed, shapes=shapes, count=6).query_set


def origin(query_set: QuerySet) -> tuple:
    return query_set.release, query_set.protocol, query_set.seed, query_set.paths_from


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_exported_queries_keep_their_origin(
    random_graph: KnowledgeGraph, tmp_path: Path, split: str, write: Write, release: str, name: str
) -> None:
    query_set = sampled(random_graph, split)
    written = write(tmp_path, query_set)
    assert written[-1] == tmp_path / name.format(split)
    assert sorted(written) == sorted(tmp_path.iterdir())
    for recompute in (False, True):
        back = read_queries(tmp_path, split, random_graph, recompute=recompute)
        assert origin(back) == origin(query_set)
    assert query_set.protocol == "plain"
    written[-1].unlink()
    assert origin(read_queries(tmp_path, split, random_graph)) == (release, None, None, None)


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_the_pickles_are_the_same_whatever_the_origin(
    random_graph: KnowledgeGraph, tmp_path: Path, write: Write, release: str, name: str
) -> None:
    own = sampled(random_graph)
    sets = {"own": own, "release": replace(own, release=release, protocol=None, seed=None)}
    files = {
        folder: {file.name: file.read_bytes() for file in write(tmp_path / folder, query_set)}
        for folder, query_set in sets.items()
    }
    for pickles in files.values():
        assert pickles.pop(name.format("test"))
    assert files["own"] == files["release"]


def test_a_release_is_still_known_after_an_export_in_the_other_form(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    of_release = QuerySet("test", sampled(random_graph).blocks, release="BetaE")
    write_query2box(tmp_path, of_release)
    assert origin(read_queries(tmp_path, "test", random_graph)) == ("BetaE", None, None, None)
    unknown = replace(of_release, release=None)
    write_query2box(tmp_path, unknown)
    assert origin(read_queries(tmp_path, "test", random_graph)) == (None, None, None, None)


@pytest.mark.parametrize(("write", "release", "name"), FORMS)
def test_an_origin_says_nothing_about_other_pickles_in_its_folder(
    random_graph: KnowledgeGraph, tmp_path: Path, write: Write, release: str, name: str
) -> None:
    """A release that is unpacked over an export is the release's."""
    own = sampled(random_graph)
    write(tmp_path / "own", own)
    official = replace(sampled(random_graph, seed=4), release=release, protocol=None, seed=None)
    write(tmp_path / "official", official)[-1].unlink()
    shutil.copytree(tmp_path / "official", tmp_path / "own", dirs_exist_ok=True)
    assert (tmp_path / "own" / name.format("test")).exists()
    back = read_queries(tmp_path / "own", "test", random_graph)
    assert origin(back) == (release, None, None, None)


@pytest.mark.parametrize("release", [None, "Query2Box"])
def test_a_query2box_export_replaces_all_of_an_earlier_one(
    random_graph: KnowledgeGraph, tmp_path: Path, release: str | None
) -> None:
    """Queries of a shape that the new set lacks would be read as part of it."""
    larger = sampled(random_graph)
    write_query2box(tmp_path, larger)
    (tmp_path / "valid_triples_2c.pkl").write_bytes(b"")
    smaller = replace(sampled(random_graph, seed=4), release=release)
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
    own = sampled(random_graph)
    official = replace(sampled(random_graph, seed=4), release=release, protocol=None, seed=None)
    for query_set in (official, official, own, official):
        written = write(tmp_path, query_set)
        assert written[-1] == tmp_path / name.format("test")
        assert sorted(written) == sorted(tmp_path.iterdir())
        back = read_queries(tmp_path, "test", random_graph)
        assert origin(back) == origin(query_set)
        for block in query_set:
            tuples = [(*row, *block.relations[k]) for k, row in enumerate(block.anchors)]
            found = back.block(block.shape.name)
            assert {*tuples} == {(*row, *found.relations[k]) for k, row in enumerate(found.anchors)}


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
    *pickles, stated = write(tmp_path, sampled(random_graph))
    queries = [file for file in pickles if "queries" in file.name or "triples" in file.name]
    others = queries[-1:] if is_changed else queries
    if is_changed:
        others[0].write_bytes(pickle.dumps(pickle.loads(others[0].read_bytes()), protocol=5))
    else:
        stated.unlink()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    own = sampled(random_graph, seed=4)
    with pytest.raises(DataError, match="holds test queries that may be a release's") as caught:
        write(tmp_path, replace(own, blocks=own.blocks[:1]))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert str(tmp_path) in str(caught.value)
    assert f"remove {', '.join(file.name for file in others)} there" in str(caught.value.hint)
    write(tmp_path, sampled(random_graph, "valid"))
    for file in others:
        file.unlink()
    write(tmp_path, own)
    assert origin(read_queries(tmp_path, "test", random_graph)) == origin(own)


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
    write(tmp_path / "earlier", sampled(random_graph))
    before = {file.name: file.read_bytes() for file in (tmp_path / "earlier").iterdir()}
    for place in ("earlier", "new"):
        opened = list[Path]()

        def written_whole(
            path: Path, opened: list[Path] = opened, usual: Callable = benchmark_files.written_whole
        ) -> AbstractContextManager:
            opened.append(path)
            if len(opened) == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
            return usual(path)

        with monkeypatch.context() as patch:
            patch.setattr(benchmark_files, "written_whole", written_whole)
            with pytest.raises(StoreError, match="No space left") as caught:
                write(tmp_path / place, sampled(random_graph, seed=4))
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
    earlier, own = sampled(random_graph), sampled(random_graph, seed=4)
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


def test_a_query2box_folder_of_mixed_origin_is_not_ours(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    own = sampled(random_graph)
    write_query2box(tmp_path, own)
    shutil.copy(tmp_path / "test_ans_1c.pkl", tmp_path / "test_ans_2i.pkl")
    assert origin(read_queries(tmp_path, "test", random_graph)) == origin(own)
    for kind in ("ans", "triples"):
        (tmp_path / f"test_{kind}_2i.pkl").write_bytes(pickle.dumps([] if kind != "ans" else {}))
    (tmp_path / "test_ans_2i_hard.pkl").write_bytes(pickle.dumps({}))
    assert read_queries(tmp_path, "test", random_graph).release == "Query2Box"
    (tmp_path / "test_triples_2i.pkl").unlink()
    (tmp_path / "test_triples_1c.pkl").unlink()
    assert origin(read_queries(tmp_path, "test", random_graph)) == origin(own), "fewer of ours"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: b"", "it is empty"),
        (lambda _: b"[]", "where an object belongs"),
        (lambda content: {**content, "format": 2}, "has format 2; this version reads 1"),
        (lambda content: {**content, "seed": "three"}, "'seed' is 'three', not a whole number"),
        (lambda content: {k: v for k, v in content.items() if k != "release"}, "lacks 'release'"),
        (lambda content: {**content, "files": None}, "'files' is None, not an object"),
    ],
)
def test_a_damaged_origin_is_refused_with_a_remedy(
    random_graph: KnowledgeGraph, tmp_path: Path, change: Callable, told: str
) -> None:
    write_betae(tmp_path, sampled(random_graph))
    path = tmp_path / "test-queries-origin.json"
    changed = change(json.loads(path.read_bytes()))
    path.write_bytes(changed if isinstance(changed, bytes) else json.dumps(changed).encode())
    with pytest.raises(DataError, match=told) as caught:
        read_queries(tmp_path, "test", random_graph)
    assert str(path) in str(caught.value)
    assert "remove the file if they are those of the release" in str(caught.value.hint)
    with pytest.raises(DataError, match="may be a release's, so they are left alone"):
        write_betae(tmp_path, sampled(random_graph))


def test_an_origin_that_cannot_be_written_is_reported(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    (tmp_path / "test-queries-origin.json").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        write_betae(tmp_path, sampled(random_graph))
