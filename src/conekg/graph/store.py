"""The store: a graph as one folder on disk, memory-mapped when it is opened.

`graph.json` holds the format, its version, and the size and checksum of every other file. Names
are Arrow files, integer arrays are `.npy` files. A store is written to a temporary folder and
renamed when it is complete, so that a store is never found half written.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from conekg.errors import StoreError
from conekg.graph.adjacency import Adjacency
from conekg.graph.json_file import read_json, value_of
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.place import check_name, check_place, place_of, sync_tree
from conekg.graph.vocabulary import NameIndex, NameTable, Vocabulary

FORMAT = "conekg graph"
VERSION = 1
HEADER = "graph.json"
VERIFIED_BYTES = 256 << 20
"""Checksums of stores up to this size are checked whenever a store is opened."""

_ADJACENCY_ARRAYS = tuple(field.name for field in fields(Adjacency) if "Array" in str(field.type))
_FILES = (
    *(f"{stem}{ending}.arrow" for stem in ("entities", "relations") for ending in ("", "-index")),
    *(f"edges/{split}.npy" for split in SPLITS),
    *(f"adjacency/{split}/{name}.npy" for split in SPLITS for name in _ADJACENCY_ARRAYS),
)
"""Every file of a store except its header."""


def is_store(folder: Path) -> bool:
    """Whether `folder` has the header file of a store; its content is not checked."""
    return (folder / HEADER).is_file()


def save_graph(graph: KnowledgeGraph, folder: str | Path) -> Path:
    """Write `graph` as a store and return its folder; an existing store there is replaced.

    The old store is moved aside only when the new one is complete, and moved back if the exchange
    fails. If `folder` is a link, the link is kept and the store is written where it leads. Raises
    `StoreError` where it cannot be written, or something that is not a store is there.
    """
    folder = Path(folder)
    check_replaceable(folder)
    place = place_of(folder)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        private = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise StoreError(f"cannot be written: {error.strerror}", path=str(folder)) from error
    # `mkdtemp` makes a folder that only its owner can read; a folder made inside it has the usual
    # permissions.
    draft = private / "store"
    try:
        draft.mkdir()
        _write(graph, draft)
        _move_into_place(draft, place)
    except OSError as error:
        # On a full disk NumPy's error says how many items were written and has no `strerror`.
        reason = error.strerror or f"{error}; the disk may be full"
        raise StoreError(f"cannot be written: {reason}", path=str(folder)) from error
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return folder


def check_replaceable(folder: Path) -> None:
    """Raise DataError unless a store can be written to `folder`; for use before long work."""
    check_place(folder)
    if folder.exists() and not is_store(folder) and not _is_empty_folder(folder):
        raise StoreError(
            "exists and is not a graph store, so it is left alone",
            path=str(folder),
            hint="choose another folder, or remove this one first",
        )


def load_graph(folder: str | Path, *, verify: bool | None = None) -> KnowledgeGraph:
    """The graph of a store; its arrays are memory-mapped and read from disk on use.

    File sizes are always checked. Checksums are checked if `verify` is true or, by default, if the
    store has at most `VERIFIED_BYTES`. Raises `StoreError` where there is no store, or it is
    damaged.
    """
    folder = Path(folder)
    check_name(folder)
    header = _read_header(folder)
    files = {name: header["files"][name] for name in _FILES}
    total = sum(entry["bytes"] for entry in files.values())
    for name, entry in files.items():
        _check_size(folder / name, entry["bytes"])
        if verify or (verify is None and total <= VERIFIED_BYTES):
            _check_sum(folder / name, entry["sha256"])
    vocabulary = Vocabulary(
        _read_names(folder, "entity", "entities"), _read_names(folder, "relation", "relations")
    )
    return KnowledgeGraph(
        header["name"],
        vocabulary,
        {split: _read_array(folder / "edges" / f"{split}.npy") for split in SPLITS},
        adjacency={split: _read_adjacency(folder, split, vocabulary) for split in SPLITS},
        fingerprint=header["fingerprint"],
    )


def _write(graph: KnowledgeGraph, folder: Path) -> None:
    _write_names(graph.vocabulary.entities, folder, "entities")
    _write_names(graph.vocabulary.relations, folder, "relations")
    (folder / "edges").mkdir()
    for split in SPLITS:
        np.save(folder / "edges" / f"{split}.npy", graph.edges(split), allow_pickle=False)
        adjacency = graph.adjacency(split)
        (folder / "adjacency" / split).mkdir(parents=True)
        for name in _ADJACENCY_ARRAYS:
            path = folder / "adjacency" / split / f"{name}.npy"
            np.save(path, getattr(adjacency, name), allow_pickle=False)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "fingerprint": graph.fingerprint,
        "files": {
            name: {"bytes": (folder / name).stat().st_size, "sha256": _sum_of(folder / name)}
            for name in _FILES
        },
    }
    text = json.dumps(header, indent=1, ensure_ascii=False) + "\n"
    (folder / HEADER).write_text(text, encoding="utf-8")


def _move_into_place(draft: Path, folder: Path) -> None:
    """Rename `draft` to `folder`, and delete the folder that was there.

    If this is interrupted, the old folder is moved back; if even that fails, it is kept under its
    temporary name. So there is always one complete store.
    """
    if not folder.exists():
        draft.replace(folder)
        return
    sync_tree(draft)  # the new store must be on disk before the old one is deleted
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    try:
        folder.replace(old / "store")
        draft.replace(folder)
    except BaseException:
        if not folder.exists():
            (old / "store").replace(folder)
        raise
    finally:
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)


def _read_header(folder: Path) -> dict[str, Any]:
    path = folder / HEADER
    try:
        header = read_json(path)
    except FileNotFoundError:
        raise StoreError(
            f"is not a graph store: it has no {HEADER}",
            path=str(folder),
            hint="`conekg graph build SOURCE --out FOLDER` makes one",
        ) from None
    except OSError as error:  # such as missing permission: the store may be undamaged
        raise StoreError(f"cannot be read: {error.strerror}", path=str(path)) from error
    except ValueError as error:
        raise StoreError(f"cannot be read: {error}", path=str(path), hint=_REBUILD) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StoreError(f"is not the header of a {FORMAT}", path=str(path), hint=_REBUILD)
    if header.get("version") != VERSION:
        raise StoreError(
            f"has format version {header.get('version')}; this conekg reads version {VERSION}",
            path=str(path),
            hint="use the conekg that wrote it, or build the graph again",
        )
    try:
        _check_header(header)
    except ValueError as error:
        raise StoreError(str(error), path=str(path), hint=_REBUILD) from error
    return header


_REBUILD = "the store is damaged; build the graph again with `conekg graph build`"
_HEADER_FIELDS: dict[str, type] = {"name": str, "fingerprint": str, "files": dict}


def _check_header(header: dict[str, Any]) -> None:
    """Raise `ValueError` unless the header has every field, each of the right type."""
    for key, kind in _HEADER_FIELDS.items():
        value_of(header, key, kind)
    for name in _FILES:
        entry = value_of(header["files"], name, dict)
        value_of(entry, "bytes", int, name)
        value_of(entry, "sha256", str, name)


def _check_size(path: Path, expected: int) -> None:
    try:
        found = path.stat().st_size
    except OSError as error:
        raise StoreError("is missing from the store", path=str(path), hint=_REBUILD) from error
    if found != expected:
        raise StoreError(
            f"has {found:,} bytes instead of {expected:,}", path=str(path), hint=_REBUILD
        )


def _check_sum(path: Path, expected: str) -> None:
    try:
        found = _sum_of(path)
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", path=str(path)) from error
    if found != expected:
        raise StoreError("does not match its checksum", path=str(path), hint=_REBUILD)


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_names(table: NameTable, folder: Path, stem: str) -> None:
    own_labels = table.own_labels
    if own_labels is None:
        own_labels = pa.nulls(len(table), pa.large_string())
    names = pa.record_batch({"name": table.names, "label": own_labels})
    index = pa.record_batch({"text": table.index.texts, "id": table.index.ids})
    for batch, path in ((names, f"{stem}.arrow"), (index, f"{stem}-index.arrow")):
        with (
            pa.OSFile(str(folder / path), "wb") as file,
            pa.ipc.new_file(file, batch.schema) as writer,
        ):
            writer.write_batch(batch)


def _read_names(folder: Path, kind: str, stem: str) -> NameTable:
    names, labels = _read_columns(folder / f"{stem}.arrow", "name", "label")
    texts, ids = _read_columns(folder / f"{stem}-index.arrow", "text", "id")
    return NameTable(kind, names, labels, index=NameIndex(texts, ids))


def _read_columns(path: Path, *names: str) -> list[pa.Array]:
    try:
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        return [batch.column(name) for name in names]
    except (OSError, LookupError, pa.ArrowException) as error:
        raise StoreError(f"cannot be read: {error}", path=str(path), hint=_REBUILD) from error


def _read_array(path: Path) -> NDArray[Any]:
    try:
        # A plain array view of the memory map: numba does not accept the memmap class.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return np.asarray(array).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot be read: {error}", path=str(path), hint=_REBUILD) from error


def _read_adjacency(folder: Path, split: Split, vocabulary: Vocabulary) -> Adjacency:
    arrays = {
        name: _read_array(folder / "adjacency" / split / f"{name}.npy")
        for name in _ADJACENCY_ARRAYS
    }
    return Adjacency(len(vocabulary.entities), vocabulary.num_relations, **arrays)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
