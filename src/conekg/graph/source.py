"""The one entry point to all graphs: `open_graph` takes a name, a folder or a file.

This module decides which kind of source it was given and calls the reader for it. Anything else
is an error that lists the accepted kinds.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path

from conekg.errors import ConfigError, DataError
from conekg.graph.assemble import (
    NO_LABELS,
    Assembled,
    Labels,
    Unseen,
    assemble_one,
    assemble_splits,
)
from conekg.graph.benchmark_folder import (
    ENTITY_LABELS,
    RELATION_LABELS,
    is_benchmark_folder,
    read_benchmark_folder,
)
from conekg.graph.benchmarks import BENCHMARKS, open_benchmark
from conekg.graph.download import Progress
from conekg.graph.geography import load_geography
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.label_file import read_labels
from conekg.graph.packed_file import PACKED, bare_suffix
from conekg.graph.rdf import FORMATS, RdfOptions
from conekg.graph.split import HoldOut
from conekg.graph.store import is_store, load_graph
from conekg.graph.triples import SUFFIXES, TripleTable, read_triples

logger = logging.getLogger(__name__)

RUN_FILE = "run.json"
"""The file that makes a folder a run folder; its graph is in the subfolder `graph`."""


@dataclass(frozen=True)
class ReadOptions:
    """How files of triples become a graph; other kinds of source accept no options."""

    hold_out: HoldOut = field(default_factory=HoldOut)
    """Which share of a single file is held out."""
    unseen: Unseen = "error"
    """Whether held-out triples with names that training lacks are an error or dropped."""
    valid: Path | None = None
    """The file of validation triples, if the source is the training file."""
    test: Path | None = None
    """The file of test triples, if the source is the training file."""
    entity_labels: Path | None = None
    """A label file for entities."""
    relation_labels: Path | None = None
    """A label file for relations."""
    rdf: RdfOptions = field(default_factory=RdfOptions)
    """The language of labels and the literals to keep, if files are RDF: `conekg.graph.rdf` has
    `RdfOptions(language="de", literals=("year",))`."""


def open_graph(
    source: str | Path,
    options: ReadOptions | None = None,
    *,
    benchmark_folder: Path | None = None,
    progress: Progress | None = None,
) -> KnowledgeGraph:
    """The graph that `source` names or holds.

    `source` is `geography`; the name of a public benchmark, which is downloaded once or read from
    `benchmark_folder`; a store; a run folder, for the graph that it was trained on; a BetaE or
    Query2Box folder; a folder with train, valid and test files; or a file of triples.
    What was merged or left out, and what may be a mistake, is logged as warnings.
    Raises `DataError` where there is no graph or it cannot be read, `DownloadError` where a
    benchmark cannot be downloaded, `ConfigError` where an option does not apply to the source.

    >>> open_graph("geography").num_entities > 5000
    True
    """
    read = read_source(source, options, benchmark_folder=benchmark_folder, progress=progress)
    for note in read.notes:
        logger.warning("%s", note)
    return read.graph


def read_source(
    source: str | Path,
    options: ReadOptions | None = None,
    *,
    benchmark_folder: Path | None = None,
    progress: Progress | None = None,
) -> Assembled:
    """The same as `open_graph`, but the notes are returned with the graph instead of logged."""
    if not isinstance(options, ReadOptions | None):
        raise ConfigError(
            f"options is {options!r}; it must be ReadOptions, or left out", key="options"
        )
    options = options or ReadOptions()
    _check_kind(source)
    if benchmark_folder is not None and source not in BENCHMARKS:
        raise ConfigError(
            f"a benchmark's folder goes with its name ({', '.join(BENCHMARKS)}), not with "
            f"{str(source)!r}"
        )
    if source == "geography":
        _refuse_unused(options, "the built-in graph")
        return Assembled(load_geography(), _shadow_note(source, "the built-in graph"))
    if source in BENCHMARKS:
        _refuse_unused(options, "a benchmark")
        benchmark = open_benchmark(str(source), benchmark_folder, progress)
        return Assembled(benchmark, _shadow_note(str(source), "the public benchmark"))
    if not str(source):  # as a path it would be the current folder
        raise DataError("the name of the graph is empty", hint="is a variable not set?")
    path = Path(source)
    if path.is_dir():
        return _read_folder(path, options)
    if path.is_file():
        return _read_file(path, options)
    if path.exists():
        raise DataError(
            "is neither a file nor a folder",
            path=str(path),
            hint="pipes and devices are not read; write the facts to a file first",
        )
    names = ("geography", *BENCHMARKS)
    close = difflib.get_close_matches(str(source).lower(), names, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    if str(source) in names:
        guess = f"pass {str(source)!r} as text: a Path is a file or folder; "
    raise DataError(
        f"no graph, folder or file named {str(source)!r}",
        hint=f"{guess}accepted: {', '.join(names)}, a graph folder, or a file ending in "
        f"{', '.join(SUFFIXES)}",
    )


def _check_kind(source: object) -> None:
    """Raise ConfigError if a source is neither a name nor a path, with what to do instead."""
    if isinstance(source, str | PathLike):
        return
    given = "None" if source is None else f"of type {type(source).__name__}"
    remedy = "write facts that are in memory to a file first, such as CSV or Parquet"
    if isinstance(source, KnowledgeGraph):
        remedy = "it is a graph already, and need not be opened"
    raise ConfigError(
        f"the source of the graph is {given}; it must be a name or a path: {remedy}", key="source"
    )


def _shadow_note(name: str, what: str) -> tuple[str, ...]:
    """A note if a file or folder here has the same name as the built-in graph or a benchmark."""
    if not Path(name).exists():
        return ()
    return (f"{name!r} is {what}; for the file or folder of that name here write './{name}'",)


def _read_folder(folder: Path, options: ReadOptions) -> Assembled:
    if is_store(folder):
        _refuse_unused(options, "a graph folder")
        return Assembled(load_graph(folder))
    if (folder / RUN_FILE).is_file() and is_store(folder / "graph"):
        _refuse_unused(options, "a run folder")
        return Assembled(load_graph(folder / "graph"))
    if is_benchmark_folder(folder):
        _refuse_unused(options, "a benchmark folder")
        return Assembled(read_benchmark_folder(folder))
    train = _split_file(folder, "train")
    if train is None:
        raise DataError(
            "the folder holds no graph",
            path=str(folder),
            hint="accepted: a store made by `conekg graph build`, a run folder, a BetaE or "
            "Query2Box folder, or a folder with train, valid and test files",
        )
    used = ("unseen", "entity_labels", "relation_labels", "rdf")
    _refuse_unused(options, "a folder of split files", *used)
    labels = _labels(options, folder)
    paths = {split: _split_file(folder, split) for split in SPLITS}
    tables = _tables(paths, options.rdf)
    return assemble_splits(folder.resolve().name, tables, labels, options.unseen)


def _read_file(path: Path, options: ReadOptions) -> Assembled:
    name = path.name.split(".")[0] or path.name
    labels = _labels(options, None)
    labels_and_rdf = ("entity_labels", "relation_labels", "rdf")
    if options.valid is None and options.test is None:
        _refuse_unused(options, "a single file", "hold_out", *labels_and_rdf)
        (table,) = _tables({"train": path}, options.rdf).values()
        return assemble_one(name, table, options.hold_out, labels)
    used = ("unseen", "valid", "test", *labels_and_rdf)
    _refuse_unused(options, "files that are split already", *used)
    paths: dict[Split, Path | None] = {"train": path, "valid": options.valid, "test": options.test}
    return assemble_splits(name, _tables(paths, options.rdf), labels, options.unseen)


def _tables(paths: Mapping[Split, Path | None], rdf: RdfOptions) -> dict[Split, TripleTable]:
    """The triples of the file of each split that has one.

    Raises `ConfigError` where options for RDF are given and no file is RDF.
    """
    files = {split: path for split, path in paths.items() if path is not None}
    if rdf != RdfOptions() and not any(bare_suffix(path) in FORMATS for path in files.values()):
        raise ConfigError(
            f"{_OPTION_NAMES['rdf']} are for RDF, which ends in {', '.join(FORMATS)}; "
            f"{files['train']} does not",
            key="rdf",
        )
    return {split: read_triples(path, rdf) for split, path in files.items()}


_OPTION_NAMES = {
    "hold_out": "the shares and the seed of a split",
    "unseen": "dropping unseen names",
    "valid": "a validation file",
    "test": "a test file",
    "entity_labels": "a file of entity labels",
    "relation_labels": "a file of relation labels",
    "rdf": "the language of labels and literals to keep",
}


def _refuse_unused(options: ReadOptions, what: str, *used: str) -> None:
    """Raise ConfigError if an option is set that does not apply to the source `what`.

    `used` names the options that apply.
    """
    for option in fields(options):
        if option.name not in used and getattr(options, option.name) != getattr(
            ReadOptions(), option.name
        ):
            raise ConfigError(
                f"{_OPTION_NAMES[option.name]} cannot be combined with {what}", key=option.name
            )


def _split_file(folder: Path, split: Split) -> Path | None:
    """The file of a split in a folder, or `None`; `DataError` if there are several."""
    endings = [suffix + packing for suffix in SUFFIXES for packing in ("", *PACKED)]
    found = [path for ending in endings if (path := folder / f"{split}{ending}").is_file()]
    if len(found) > 1:
        raise DataError(
            f"{len(found)} files hold {split} triples: {', '.join(p.name for p in found)}",
            path=str(folder),
            hint="leave one of them in the folder, or name the files on the command line",
        )
    return found[0] if found else None


def _labels(options: ReadOptions, folder: Path | None) -> Labels:
    """The labels in the given label files, or else in the label files of `folder`."""
    entity_file, relation_file = options.entity_labels, options.relation_labels
    if folder is not None:
        entity_file = entity_file or _existing(folder / ENTITY_LABELS)
        relation_file = relation_file or _existing(folder / RELATION_LABELS)
    return Labels(
        NO_LABELS.entities if entity_file is None else read_labels(entity_file),
        NO_LABELS.relations if relation_file is None else read_labels(relation_file),
    )


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
