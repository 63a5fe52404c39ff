"""Public benchmarks by name: where to download them, and how to check that they are genuine.

A graph is downloaded once and kept as a store in a cache folder. The release of BetaE is
checked twice: the archive by the MD5 sum that other loaders of it use, and each triple file by
a SHA-256 sum of our own. WN18RR-QA is downloaded at one commit of its authors' repository,
which identifies its content. The size of a graph is compared with the size that the release
states, including graphs that merely have the name of a benchmark.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from conekg.errors import DataError, DownloadError, StoreError
from conekg.graph.benchmark_folder import is_benchmark_folder, read_benchmark_folder
from conekg.graph.download import Progress, fetch
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.lock import locked
from conekg.graph.store import is_store, load_graph, save_graph

BETAE_ARCHIVE = "http://snap.stanford.edu/betae/KG_data.zip"
BETAE_CHECKSUM = "md5:d54f92e2e6a64d7f525b8fe366ab3f50"
_WN18RR_COMMIT = "b180e40e70fdd85c6a8a43ae5cc311a8d43d7b71"
_GRAPH_FILES = ("train.txt", "valid.txt", "test.txt", "id2ent.pkl", "id2rel.pkl")


@dataclass(frozen=True)
class Benchmark:
    """A public benchmark graph."""

    title: str
    folders: tuple[str, ...]
    """Names that the folder with its files may have, in the archive or on disk."""
    size: tuple[int, int]
    """Number of entities and of named relations (inverses not counted), as the release states."""
    archive: str
    """The URL of the official archive."""
    checksum: str | None = None
    """The archive's checksum; `None` if the server may repack the archive."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksums of its triple files by file name; empty where none are pinned."""


BENCHMARKS = {
    "nell995": Benchmark(
        "NELL995, as BetaE and ConE use it",
        ("NELL-betae", "NELL"),
        (63_361, 200),
        BETAE_ARCHIVE,
        BETAE_CHECKSUM,
        {
            "train.txt": "2745e38101fd8b5737076996194576e2f6be05485b4cb28c216078f2ef928c47",
            "valid.txt": "a4223c6ddaf37d629db481aaf1d0e10808ace192a6a653fe1c93f346af850f1b",
            "test.txt": "4d675e0614b2d5426434dc04ecafdc076e7cc410899c0161b2f376d4413bb64b",
        },
    ),
    "fb15k": Benchmark(
        "FB15k, as BetaE and ConE use it",
        ("FB15k-betae", "FB15k"),
        (14_951, 1_345),
        BETAE_ARCHIVE,
        BETAE_CHECKSUM,
        {
            "train.txt": "8e8d76e9731885a556359427eb8b8c0c6cd052438792698c697363150501e720",
            "valid.txt": "65991b1b8a77c096f01bbacd4c58ba57623c32227543332cae20533b30792192",
            "test.txt": "0d3ea27be821faba51edbb02328d97c13d2a7e1b9d101574b13ae50b57c2c140",
        },
    ),
    "fb15k-237": Benchmark(
        "FB15k-237, as BetaE and ConE use it",
        ("FB15k-237-betae", "FB15k-237"),
        (14_505, 237),
        BETAE_ARCHIVE,
        BETAE_CHECKSUM,
        {
            "train.txt": "b30260b70590fab1c074e794de004d27960dd3419cf4db30699a98fdf88f9a4f",
            "valid.txt": "30ea4d342e4ef4b9c5199ae3ff943bfaff7c50bc0d87b3b1126c33bb6311adf1",
            "test.txt": "43239b213453f72d58c68e18eb2dc8858a5156f05d6ca3c7e6cfc651c72d8741",
        },
    ),
    "wn18rr-qa": Benchmark(
        "WN18RR-QA, WordNet as LinE uses it",
        (f"WN18RR-QA-{_WN18RR_COMMIT}", "WN18RR-QA", "WN18RR"),
        (40_559, 11),
        f"https://github.com/nelsonhuangzijian/WN18RR-QA/archive/{_WN18RR_COMMIT}.zip",
    ),
}
"""Benchmarks by the name that commands take."""

_SHORT_NAMES = {"fb237": "fb15k-237", "fb15k237": "fb15k-237"}
"""Other names that the literature uses."""


def benchmark_of(graph_name: str) -> str | None:
    """The benchmark whose name, or whose folder's name, `graph_name` is; None if there is none.

    >>> benchmark_of("NELL-betae"), benchmark_of("FB15k_237"), benchmark_of("geography")
    ('nell995', 'fb15k-237', None)
    """
    benchmark_names = {
        alias.lower(): name
        for name, benchmark in BENCHMARKS.items()
        for alias in (name, *benchmark.folders)
    } | _SHORT_NAMES
    return benchmark_names.get(graph_name.lower().replace("_", "-"))


def release_of(graph: KnowledgeGraph) -> str | None:
    """The benchmark that a graph is, judged by its name and its size; None if it is none."""
    name = benchmark_of(graph.name)
    return name if name is not None and _size(graph) == BENCHMARKS[name].size else None


def misnomer_of(graph: KnowledgeGraph) -> str | None:
    """A sentence for the user if a graph has a benchmark's name but another size; else None."""
    name = benchmark_of(graph.name)
    if name is None or release_of(graph) is not None:
        return None
    (entities, relations), (wanted, wanted_relations) = _size(graph), BENCHMARKS[name].size
    return (
        f"the graph is called {graph.name!r} but has {entities:,} entities and {relations:,} "
        f"relations, not {wanted:,} and {wanted_relations:,}"
    )


def _size(graph: KnowledgeGraph) -> tuple[int, int]:
    return graph.num_entities, len(graph.vocabulary.relations)


def cache_folder() -> Path:
    """Where downloads are kept: `CONEKG_CACHE`, or `conekg` in the user's cache folder."""
    if named := os.environ.get("CONEKG_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "conekg"


def open_benchmark(
    name: str, folder: Path | None = None, progress: Progress | None = None
) -> KnowledgeGraph:
    """The graph of a benchmark: read from `folder` if given, from the cache, or downloaded.

    One process downloads at a time, even if two want different graphs, since several graphs share
    one archive. Raises `DownloadError` where the download fails or is not the release, `DataError`
    where `folder` does not hold the benchmark.
    """
    benchmark = BENCHMARKS[name]
    if folder is not None:
        return _read_checked(name, benchmark, _resolve(benchmark, folder))
    store = cache_folder() / name
    if not is_store(store):
        with _held_cache(progress):
            if not is_store(store):  # the process that held the lock may have downloaded it
                _download(name, benchmark, store, progress)
    return load_graph(store)


@contextmanager
def _held_cache(progress: Progress | None) -> Iterator[None]:
    """Hold the lock of the cache folder, after waiting for any process that holds it."""
    folder = cache_folder()

    def waiting() -> None:
        if progress is not None:
            progress("wait for another download", 0, None)

    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, waiting))
        except OSError as error:
            raise DownloadError(
                f"cannot write to the cache folder {folder}: {error.strerror}",
                hint="set CONEKG_CACHE to a folder that can be written to",
            ) from error
        yield


def _download(name: str, benchmark: Benchmark, store: Path, progress: Progress | None) -> None:
    url = benchmark.archive
    place = cache_folder() / url.rpartition("/")[2]
    archive = fetch(url, place, checksum=benchmark.checksum, progress=progress)
    try:
        unpacked = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache_folder()))
    except OSError as error:
        raise _no_room(cache_folder(), error) from error
    try:
        _unpack(archive, benchmark, unpacked)
        save_graph(_read_checked(name, benchmark, unpacked), store)
    except StoreError:  # such as a full disk: keep the archive, it may be fine
        raise
    except DataError as error:
        archive.unlink(missing_ok=True)
        raise DownloadError(
            f"{url} is not the release expected: {error.message}",
            hint="the archive has been removed; try again, or pass --from FOLDER",
        ) from error
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)


def _unpack(archive: Path, benchmark: Benchmark, target: Path) -> None:
    """Extract the files of one graph from the archive into `target`.

    Only the names of a file and of its folder are used, so that no path in an archive can lead
    outside of `target`.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            for member in opened.infolist():
                path = PurePosixPath(member.filename)
                if path.parent.name in benchmark.folders and path.name in _GRAPH_FILES:
                    with opened.open(member) as source, (target / path.name).open("wb") as file:
                        shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"not a readable zip archive: {error}", path=str(archive)) from error
    except OSError as error:
        raise _no_room(target.parent, error) from error
    if not is_benchmark_folder(target):
        raise DataError(f"no folder {' or '.join(benchmark.folders)} in it", path=str(archive))


def _no_room(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the archive cannot be unpacked here: {error.strerror or error}",
        path=str(folder),
        hint="make room, or set CONEKG_CACHE to a folder that has some",
    )


def _resolve(benchmark: Benchmark, folder: Path) -> Path:
    """`folder` itself if it holds the graph, or the subfolder with one of the benchmark's names."""
    for candidate in (folder, *(folder / name for name in benchmark.folders)):
        if is_benchmark_folder(candidate):
            return candidate
    raise DataError(
        "no benchmark graph here",
        path=str(folder),
        hint="expected: train.txt, valid.txt, test.txt, id2ent.pkl and id2rel.pkl, in the "
        f"folder or in {' or '.join(benchmark.folders)} inside it",
    )


def _read_checked(name: str, benchmark: Benchmark, folder: Path) -> KnowledgeGraph:
    """The graph in `folder`; `DataError` unless checksums and size are those of the release."""
    for file_name, expected in benchmark.sha256.items():
        path = folder / file_name
        if not path.is_file():
            raise DataError(f"the folder has no {file_name}", path=str(folder))
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise DataError(
                f"is not the file of the public release of {name}: its checksum differs",
                path=str(path),
                hint="to use this graph all the same, pass the folder itself as the graph",
            )
    graph = read_benchmark_folder(folder, name)
    size, wanted = _size(graph), benchmark.size
    if size != wanted:
        raise DataError(
            f"is not the public release of {name}: {size[0]:,} entities and {size[1]:,} "
            f"relations found, {wanted[0]:,} and {wanted[1]:,} expected",
            path=str(folder),
            hint="to use this graph all the same, pass the folder itself as the graph",
        )
    return graph
