"""Query sets: queries of many shapes with their easy and hard answers, in memory and on disk.

Queries of one shape form a block of plain integer matrices, which the symbolic engine, the
planner and the device can use directly. On disk a set is one compressed Arrow file with a row
per query, which any Arrow tool can read; a digest of its content detects damage.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from conekg.errors import QueryError, StoreError
from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.place import check_place, written_whole
from conekg.graph.ragged import Ragged
from conekg.query.shape import Shape, decode_shape, encode_shape
from conekg.query.tree import Query

FORMAT_VERSION = 1
_MAGIC = b"conekg.query_set"
_ARROW = b"ARROW1"
"""The first bytes of every Arrow file."""
_ROWS_PER_BATCH = 65_536


@dataclass(frozen=True)
class QueryBlock:
    """Queries of one shape with their answers.

    In a training set every answer is hard: the smaller graph is empty there.
    """

    shape: Shape
    anchors: IntArray
    """[queries, shape.num_anchors]"""
    relations: IntArray
    """[queries, shape.num_relations]"""
    easy: Ragged
    """All answers on the smaller graph, even those that negation makes false on the larger one.

    Sorted, as are the hard answers.
    """
    hard: Ragged
    """The answers on the larger graph that are not easy."""

    def __len__(self) -> int:
        return len(self.anchors)

    def query(self, row: int) -> Query:
        """One query as a tree."""
        return self.shape.ground(self.anchors[row].tolist(), self.relations[row].tolist())

    def take(self, rows: LongArray) -> QueryBlock:
        """The given queries, in the given order."""
        return QueryBlock(
            self.shape,
            self.anchors[rows],
            self.relations[rows],
            self.easy.take(rows),
            self.hard.take(rows),
        )

    def evenly_spaced(self, at_most: int | None) -> QueryBlock:
        """The block or, if it is longer, `at_most` of its queries, evenly spaced.

        The first queries would be a biased choice, because blocks may be sorted: those of a block
        of links would all have the same relation.
        """
        if at_most is None or len(self) <= at_most:
            return self
        return self.take(np.arange(at_most) * len(self) // at_most)


@dataclass(frozen=True)
class QuerySet:
    """Blocks of queries, one per shape, all of one split of one graph."""

    split: Split
    blocks: tuple[QueryBlock, ...]
    graph_fingerprint: str | None = None
    """The fingerprint of the graph that the ids and answers belong to; None if unknown."""
    protocol: str | None = None
    """The name of the sampling protocol; None if the set was not sampled."""
    seed: int | None = None
    """The seed of the sampling; None if the set was not sampled."""
    release: str | None = None
    """`BetaE` or `Query2Box` if the set was read from a folder in that release's form, unless the
    folder was exported from a set of another origin."""
    paths_from: str | None = None
    """The end from which the paths of a sampled training set were walked: `answer` or `anchor`.
    None for other sets, and for sets of earlier versions, which had only one way."""

    def __post_init__(self) -> None:
        for shape, times in Counter(block.shape for block in self.blocks).items():
            if times > 1:
                raise QueryError(
                    f"{times} blocks of shape {shape.name}; a query set has one per shape; "
                    "join them with concatenate_blocks"
                )

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def __iter__(self) -> Iterator[QueryBlock]:
        return iter(self.blocks)

    def block(self, name: str) -> QueryBlock:
        """The block of the shape called `name`; `QueryError` if the set has none."""
        for block in self.blocks:
            if block.shape.name == name:
                return block
        held = ", ".join(block.shape.name for block in self.blocks) or "none"
        raise QueryError(f"no {self.split} queries of shape {name!r} in this set; it has {held}")


def concatenate_blocks(shape: Shape, blocks: Sequence[QueryBlock]) -> QueryBlock:
    """One block with the queries of all blocks, in order; an empty block for no blocks."""
    return QueryBlock(
        shape,
        np.concatenate([np.zeros((0, shape.num_anchors), np.int32), *(b.anchors for b in blocks)]),
        np.concatenate(
            [np.zeros((0, shape.num_relations), np.int32), *(b.relations for b in blocks)]
        ),
        Ragged.concatenate([block.easy for block in blocks]),
        Ragged.concatenate([block.hard for block in blocks]),
    )


def save_query_set(path: str | Path, query_set: QuerySet) -> None:
    """Write a set to one Arrow file; if that fails, an older file at `path` stays as it was.

    Raises `StoreError` if the file cannot be written.
    """
    schema = _schema(query_set)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    try:
        with (
            written_whole(Path(path)) as sink,
            pa.ipc.new_file(sink, schema, options=options) as writer,
        ):
            for block in query_set.blocks:
                for start in range(0, len(block), _ROWS_PER_BATCH):
                    writer.write_batch(_encode(block, start, start + _ROWS_PER_BATCH, schema))
    except OSError as error:
        raise StoreError(
            f"the query set cannot be written: {error.strerror or error}", path=str(path)
        ) from error


def check_replaceable(path: Path) -> None:
    """Raise `DataError` unless a set can be written to `path` without replacing another file.

    Only a query set, an empty file or a damaged Arrow file may be replaced.
    """
    check_place(path)
    if path.is_dir():
        raise StoreError(
            "a folder, and a query set is a file",
            path=str(path),
            hint=f"choose another name, as {str(path / 'test.arrow')!r}",
        )
    if path.exists() and not path.is_file():
        raise StoreError(
            "a pipe or a device, which a query set would replace",
            path=str(path),
            hint="choose another name",
        )
    try:
        with path.open("rb") as file:
            start = file.read(len(_ARROW))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot be read: {error.strerror}", path=str(path)) from error
    if start and (start != _ARROW or _is_of_another_kind(path)):
        raise StoreError(
            "exists and is not a query set, so it is left alone",
            path=str(path),
            hint="choose another name, or remove the file first",
        )


def _is_of_another_kind(path: Path) -> bool:
    """Whether an Arrow file is no query set; False for a damaged file, which may have been one."""
    try:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
            return _MAGIC not in (reader.schema.metadata or {})
    except _BROKEN:
        return False


def load_query_set(path: str | Path, graph: KnowledgeGraph | None = None) -> QuerySet:
    """The query set in an Arrow file.

    Raises `StoreError` if the file is missing, damaged or no query set or, with `graph`, if it was
    made for another graph.
    """
    source = str(path)
    if Path(path).is_dir():
        found = ", ".join(sorted(file.name for file in Path(path).glob("*.arrow")))
        raise StoreError(
            "a folder, and a query set is a file",
            path=source,
            hint=f"name one of its files: {found}"
            if found
            else "`conekg sample` writes query sets; of a BetaE or Query2Box folder "
            "`conekg queries import` makes one",
        )
    try:
        with pa.OSFile(source, "rb") as file, pa.ipc.open_file(file) as reader:
            facts = _facts(reader.schema, source)
            batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
            for batch in batches:
                # Arrow does not check offsets by itself; damaged ones would crash the process.
                batch.validate(full=True)
            query_set = _decode(facts, batches)
    except FileNotFoundError as error:
        raise StoreError(
            "no such file", path=source, hint="`conekg sample` writes query sets"
        ) from error
    except _BROKEN as error:
        raise StoreError(
            f"not a readable query set: {error}", path=source, hint="sample or import it again"
        ) from error
    if _digest(query_set) != facts["digest"]:
        raise StoreError(
            "the content does not match its digest, so the file is damaged",
            path=source,
            hint="sample or import it again",
        )
    if graph is not None and query_set.graph_fingerprint not in (None, graph.fingerprint):
        raise StoreError(
            f"made for the graph {query_set.graph_fingerprint}, but this is {graph.fingerprint} "
            f"({graph.name})",
            path=source,
            hint="sample queries from this graph, or open the graph they were sampled from",
        )
    if graph is not None:
        _check_ids(query_set, graph, source)
    return query_set


def _check_ids(query_set: QuerySet, graph: KnowledgeGraph, source: str) -> None:
    """Raise `StoreError` for ids that the graph lacks: a file can claim any graph's fingerprint."""
    for block in query_set:
        for kind, ids, size in (
            ("entity", block.anchors, graph.num_entities),
            ("relation", block.relations, graph.num_relations),
            ("entity", block.easy.values, graph.num_entities),
            ("entity", block.hard.values, graph.num_entities),
        ):
            outside = ids[(ids < 0) | (ids >= size)]
            if len(outside):
                raise StoreError(
                    f"its {block.shape.name} queries hold {kind} id {int(outside[0])}; the graph "
                    f"has ids 0 to {size - 1}",
                    path=source,
                    hint="sample queries from this graph, or open the graph they are for",
                )


# --- Arrow -----------------------------------------------------------------------------------

_COLUMNS = pa.schema(
    [
        ("shape", pa.utf8()),
        ("anchors", pa.list_(pa.int32())),
        ("relations", pa.list_(pa.int32())),
        ("easy", pa.large_list(pa.int32())),
        ("hard", pa.large_list(pa.int32())),
    ]
)
_FACTS = {
    "split": str,
    "graph": str | None,
    "protocol": str | None,
    "seed": int | None,
    "release": str | None,
    "paths_from": str | None,
    "shapes": list,
    "digest": str,
}
"""The keys of the metadata besides the version, and the types of their values."""

# What reading a damaged file can raise: Arrow's errors, and those of parsing metadata and shapes.
_BROKEN = (
    pa.ArrowException,
    OSError,
    LookupError,
    ValueError,
    TypeError,
    RecursionError,
    QueryError,
)


def _schema(query_set: QuerySet) -> pa.Schema:
    facts = {
        "version": FORMAT_VERSION,
        "split": query_set.split,
        "graph": query_set.graph_fingerprint,
        "protocol": query_set.protocol,
        "seed": query_set.seed,
        "release": query_set.release,
        "paths_from": query_set.paths_from,
        "shapes": [[block.shape.name, encode_shape(block.shape)] for block in query_set.blocks],
        "digest": _digest(query_set),
    }
    return _COLUMNS.with_metadata({_MAGIC: json.dumps(facts)})


def _facts(schema: pa.Schema, source: str) -> dict[str, Any]:
    """The checked metadata of a query set."""
    found = (schema.metadata or {}).get(_MAGIC)
    if found is None:
        raise StoreError(
            "an Arrow file, but not a query set", path=source, hint="`conekg sample` writes one"
        )
    facts = json.loads(found)
    if not isinstance(facts, dict) or "version" not in facts:
        raise ValueError("its metadata does not say of which version it is")
    for later in ("release", "paths_from"):  # keys that files of earlier versions lack
        facts.setdefault(later, None)
    if facts["version"] != FORMAT_VERSION:
        raise StoreError(
            f"query set format {facts['version']}; this version of conekg reads {FORMAT_VERSION}",
            path=source,
            hint="update conekg, or sample the queries again",
        )
    _check_facts(facts)
    if not schema.equals(_COLUMNS):
        raise ValueError(f"its columns are not {', '.join(_COLUMNS.names)}, or of other types")
    return facts


def _check_facts(facts: dict[str, Any]) -> None:
    """Raise `ValueError` if metadata of this version lack a key or have a value of another kind."""
    for key, kind in _FACTS.items():
        if key not in facts:
            raise ValueError(f"its metadata lacks {key!r}")
        if not isinstance(facts[key], kind):
            raise ValueError(f"its metadata has {facts[key]!r:.60} for {key!r}")
    if facts["split"] not in SPLITS:
        raise ValueError(f"unknown split {facts['split']!r}")
    for entry in facts["shapes"]:
        if not (isinstance(entry, list) and list(map(type, entry)) == [str, str]):
            raise ValueError(f"{entry!r:.60} is no name and text of a shape")


def _encode(block: QueryBlock, start: int, stop: int, schema: pa.Schema) -> pa.RecordBatch:
    stop = min(stop, len(block))
    easy, hard = block.easy.span(start, stop), block.hard.span(start, stop)
    columns = [
        pa.array([block.shape.name] * (stop - start), pa.utf8()),
        _matrix_column(block.anchors[start:stop]),
        _matrix_column(block.relations[start:stop]),
        pa.LargeListArray.from_arrays(easy.offsets, easy.values),
        pa.LargeListArray.from_arrays(hard.offsets, hard.values),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _matrix_column(ids: IntArray) -> pa.ListArray:
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * np.int32(ids.shape[1])
    return pa.ListArray.from_arrays(offsets, np.ascontiguousarray(ids).reshape(-1))


def _decode(facts: dict[str, Any], batches: list[pa.RecordBatch]) -> QuerySet:
    blocks = []
    for name, text in facts["shapes"]:
        # Each batch holds queries of one shape; an empty block has no batch.
        own = [batch for batch in batches if batch.column("shape")[0].as_py() == name]
        blocks.append(_decode_block(decode_shape(text), own))
    metadata = (facts[key] for key in ("graph", "protocol", "seed", "release", "paths_from"))
    return QuerySet(facts["split"], tuple(blocks), *metadata)


def _decode_block(shape: Shape, batches: list[pa.RecordBatch]) -> QueryBlock:
    def matrix(column: str, width: int) -> IntArray:
        parts = [batch.column(column).flatten().to_numpy() for batch in batches]
        size = sum(batch.num_rows for batch in batches)
        flat = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
        return flat.reshape(size, width)

    def ragged(column: str) -> Ragged:
        parts = [batch.column(column) for batch in batches]
        # `flatten` leaves out the values before the first offset, so the offsets must start at 0.
        rows = [
            Ragged(part.offsets.to_numpy() - part.offsets[0].as_py(), part.flatten().to_numpy())
            for part in parts
        ]
        return Ragged.concatenate(rows)

    return QueryBlock(
        shape,
        matrix("anchors", shape.num_anchors),
        matrix("relations", shape.num_relations),
        ragged("easy"),
        ragged("hard"),
    )


def _digest(query_set: QuerySet) -> str:
    """A hash of every number in the set, in order."""
    state = hashlib.blake2b(digest_size=16)
    for block in query_set.blocks:
        state.update(encode_shape(block.shape).encode())
        # Converted to the types that loading gives, since blocks may hold other integer types.
        for array, dtype in (
            (block.anchors, np.int32),
            (block.relations, np.int32),
            (block.easy.lengths, np.int64),
            (block.easy.values, np.int32),
            (block.hard.lengths, np.int64),
            (block.hard.values, np.int32),
        ):
            state.update(np.ascontiguousarray(array, dtype=dtype).data)
    return state.hexdigest()
