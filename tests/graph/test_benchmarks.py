from __future__ import annotations

import errno
import hashlib
import io
import pickle
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from conekg.errors import DataError, DownloadError, StoreError
from conekg.graph import benchmarks
from conekg.graph.benchmarks import (
    BENCHMARKS,
    cache_folder,
    misnomer_of,
    open_benchmark,
    release_of,
)
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import open_graph
from file_server import FileServer, serve

FILES = {
    "train.txt": b"0\t0\t1\n1\t1\t0\n",
    "valid.txt": b"1\t0\t0\n0\t1\t1\n",
    "test.txt": b"1\t0\t1\n1\t1\t1\n",
    "id2ent.pkl": pickle.dumps({0: "a", 1: "b"}),
    "id2rel.pkl": pickle.dumps({0: "+r", 1: "-r"}),
}


def packed(folder: str = "release/NELL-betae", files: dict[str, bytes] = FILES) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("release/FB15k-betae/train.txt", "another graph")
        archive.writestr("../../escape.txt", "out of here")
        for name, content in files.items():
            archive.writestr(f"{folder}/{name}", content)
        archive.writestr(f"{folder}/test-queries.pkl", b"not needed")
    return buffer.getvalue()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FileServer]:
    """A local release of a tiny NELL, in place of the public one."""
    sums = {n: hashlib.sha256(FILES[n]).hexdigest() for n in ("train.txt", "valid.txt", "test.txt")}
    with serve(packed()) as running:
        checksum = f"md5:{hashlib.md5(running.content).hexdigest()}"
        here = {"archive": running.url, "checksum": checksum, "sha256": sums, "size": (2, 1)}
        tiny = replace(BENCHMARKS["nell995"], **here)
        monkeypatch.setitem(benchmarks.BENCHMARKS, "nell995", tiny)
        monkeypatch.setenv("CONEKG_CACHE", str(tmp_path / "cache"))
        yield running


def test_a_benchmark_is_downloaded_once(server: FileServer, tmp_path: Path) -> None:
    told: list[str] = []
    graph = open_graph("nell995", progress=lambda what, *_: told.append(what))
    assert graph.name == "nell995"
    assert list(graph.vocabulary.entities) == ["a", "b"]
    assert told[-1] == "download data.zip"
    assert open_graph("nell995").fingerprint == graph.fingerprint
    assert len(server.ranges) == 1
    kept = {path.name for path in (tmp_path / "cache").iterdir()}
    assert kept == {"data.zip", "nell995"}
    assert not list(tmp_path.rglob("escape.txt"))


def test_concurrent_readers_of_one_archive_download_it_once(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks belong to the open file description, so two threads exclude each other as well."""
    monkeypatch.setitem(benchmarks.BENCHMARKS, "fb15k", benchmarks.BENCHMARKS["nell995"])
    server.opened = opened = threading.Event()
    told: set[tuple[str, str]] = set()

    def open_named(name: str) -> KnowledgeGraph:
        def tell(what: str, *_: object) -> None:
            told.add((name, what))
            if len(told) == 2:
                opened.set()

        return open_benchmark(name, progress=tell)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(open_benchmark, "nell995")
        while not server.ranges:
            time.sleep(0.01)
        others = [pool.submit(open_named, name) for name in ("nell995", "fb15k")]
        graphs = [each.result() for each in (first, *others)]
    assert {graph.fingerprint for graph in graphs} == {graphs[0].fingerprint}
    assert told == {(name, "wait for another download") for name in ("nell995", "fb15k")}
    assert server.ranges == [None]


def test_a_cache_folder_that_cannot_be_made_is_an_error(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CONEKG_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DownloadError, match=r"the cache folder .*: Not a directory") as told:
        open_benchmark("nell995")
    assert "CONEKG_CACHE" in str(told.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>moved</html>", "not a readable zip archive"),
        (packed("release/elsewhere"), "no folder NELL-betae or NELL in it"),
        (packed(files={**FILES, "test.txt": b"0\t0\t1\n1\t1\t0\n"}), "its checksum differs"),
        (packed(files={n: c for n, c in FILES.items() if n != "valid.txt"}), "has no valid.txt"),
    ],
)
def test_another_release_is_refused_and_not_kept(
    content: bytes,
    message: str,
    server: FileServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unchecked = replace(benchmarks.BENCHMARKS["nell995"], checksum=None)
    monkeypatch.setitem(benchmarks.BENCHMARKS, "nell995", unchecked)
    server.content = content
    with pytest.raises(DownloadError, match=message):
        open_benchmark("nell995")
    assert list((tmp_path / "cache").iterdir()) == []
    server.content, server.version = packed(), '"2"'
    assert open_benchmark("nell995").num_entities == 2


@pytest.mark.parametrize("place", ["copyfileobj", "save_graph"])
def test_the_archive_is_kept_when_the_disk_is_full(
    place: str, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_store(*_: object) -> None:
        raise StoreError("cannot be written: No space left on device")

    if place == "save_graph":
        monkeypatch.setattr(benchmarks, "save_graph", no_store)
    else:
        monkeypatch.setattr(benchmarks.shutil, "copyfileobj", no_room)
    with pytest.raises(StoreError, match="No space left"):
        open_benchmark("nell995")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["data.zip"]


def test_a_read_only_cache_folder_is_an_error(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(benchmarks.tempfile, "mkdtemp", refuse)
    with pytest.raises(StoreError, match=r"cache: the archive cannot be unpacked.*Read-only"):
        open_benchmark("nell995")


def test_a_benchmark_is_read_from_a_local_folder(server: FileServer, tmp_path: Path) -> None:
    for folder in (tmp_path / "NELL", tmp_path / "anything"):
        folder.mkdir()
        for name, content in FILES.items():
            (folder / name).write_bytes(content)
    assert open_benchmark("nell995", tmp_path).num_entities == 2
    assert open_benchmark("nell995", tmp_path / "anything").num_entities == 2
    assert server.ranges == []


def test_a_local_folder_of_something_else_is_refused(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no benchmark graph here"):
        open_benchmark("nell995", tmp_path)
    for name, content in {**FILES, "train.txt": FILES["valid.txt"]}.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="is not the file of the public release of nell995"):
        open_benchmark("nell995", tmp_path)


def test_an_archive_of_another_checksum_is_refused(server: FileServer, tmp_path: Path) -> None:
    server.content += b"more"
    with pytest.raises(
        DownloadError, match=r"(?s)has checksum md5:.* expected md5:.*--from FOLDER"
    ):
        open_benchmark("nell995")
    assert list((tmp_path / "cache").iterdir()) == []


def test_wn18rr_comes_from_one_commit_of_its_authors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = BENCHMARKS["wn18rr-qa"]
    commit = published.archive.rpartition("/")[2].removesuffix(".zip")
    assert len(commit) == 40
    assert published.folders[0] == f"WN18RR-QA-{commit}"
    windows = {n: c.replace(b"\n", b"\r\n") if ".txt" in n else c for n, c in FILES.items()}
    monkeypatch.setenv("CONEKG_CACHE", str(tmp_path))
    with serve(packed(published.folders[0], windows)) as running:
        here = replace(published, archive=running.url)
        monkeypatch.setitem(benchmarks.BENCHMARKS, "wn18rr-qa", here)
        with pytest.raises(DownloadError, match="2 entities and 1 relations found, 40,559 and 11"):
            open_benchmark("wn18rr-qa")
        here = replace(here, size=(2, 1))
        monkeypatch.setitem(benchmarks.BENCHMARKS, "wn18rr-qa", here)
        assert open_benchmark("wn18rr-qa").edges("train").tolist() == [[0, 0, 1], [1, 1, 0]]


def test_the_cache_is_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONEKG_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("CONEKG_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "conekg"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "conekg"


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_a_graph_with_a_benchmarks_name_but_another_size_is_noted(
    name: str, film_graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = BENCHMARKS[name]
    entities, relations = published.size
    for called in (name, *published.folders):
        graph = KnowledgeGraph(called, film_graph.vocabulary, {"train": film_graph.edges("train")})
        size = (graph.num_entities, len(graph.vocabulary.relations))
        assert size == (8, 3)
        told = f"but has 8 entities and 3 relations, not {entities:,} and {relations:,}"
        for other in (published.size, (8, relations), (entities, 3)):
            monkeypatch.setitem(BENCHMARKS, name, replace(published, size=other))
            assert release_of(graph) is None
        monkeypatch.setitem(BENCHMARKS, name, published)
        assert misnomer_of(graph) == f"the graph is called {called!r} {told}"
        monkeypatch.setitem(BENCHMARKS, name, replace(published, size=size))
        assert release_of(graph) == name
        assert misnomer_of(graph) is None
    assert release_of(film_graph) is misnomer_of(film_graph) is None


@pytest.mark.parametrize("name", ["nell995", "fb15k", "fb15k-237"])
def test_the_sizes_are_those_of_the_releases(name: str, benchmark_data: Path) -> None:
    graph = open_graph(benchmark_data / BENCHMARKS[name].folders[-1])
    assert release_of(graph) == name
    assert misnomer_of(graph) is None
    assert release_of(open_benchmark(name, benchmark_data)) == name


@pytest.mark.parametrize("name", ["nell995", "fb15k", "fb15k-237"])
def test_the_pinned_checksums_are_those_of_the_releases(name: str, benchmark_data: Path) -> None:
    benchmark = BENCHMARKS[name]
    folder = benchmark_data / benchmark.folders[-1]
    assert len(benchmark.sha256) == 3
    for file_name, expected in benchmark.sha256.items():
        assert hashlib.sha256((folder / file_name).read_bytes()).hexdigest() == expected
