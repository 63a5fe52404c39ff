"""Reads the graph of a benchmark folder as released by BetaE and Query2Box.

Triples are integer ids, and both directions are in the files: relation 2k is forward and 2k+1
its inverse. Names come from `id2ent` and `id2rel` (or `ent2id`, `rel2id`), as pickles or as
tab-separated text. The query files in the same folder are left to `sampling/benchmark_files.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from conekg.errors import DataError
from conekg.graph.adjacency import IntArray
from conekg.graph.edge_keys import edge_keys
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.label_file import read_labels
from conekg.graph.place import check_name
from conekg.graph.safe_pickle import load_pickle
from conekg.graph.text_file import fields_of, line_of_row
from conekg.graph.vocabulary import NameTable, Vocabulary

_ID_FILES = {"ent": ("id2ent", "ent2id"), "rel": ("id2rel", "rel2id")}
_FILES = (
    "a BetaE or Query2Box folder has train.txt, valid.txt and test.txt, and the names of the ids "
    "in id2ent.pkl and id2rel.pkl"
)
ENTITY_LABELS = "entity_names.tsv"
RELATION_LABELS = "relation_text.tsv"


def is_benchmark_folder(folder: Path) -> bool:
    """Whether `folder` has integer triples and the names of the ids."""
    return _find(folder, "train.txt") is not None and _id_file(folder, "ent") is not None


def read_benchmark_folder(folder: str | Path, name: str | None = None) -> KnowledgeGraph:
    """The graph of a BetaE or Query2Box folder, with labels where the folder has label files.

    Ids, edge order and splits are kept. Raises `DataError` where a file is missing, an id has no
    name or an edge has no inverse.
    """
    folder = Path(folder)
    check_name(folder)
    entities = _names(folder, "ent")
    relations = _pair_relations(folder, _names(folder, "rel"))
    edges: dict[Split, IntArray] = {}
    for split in SPLITS:
        path = _find(folder, f"{split}.txt")
        if path is None:
            raise DataError(f"the folder has no {split}.txt", path=str(folder), hint=_FILES)
        edges[split] = _read_edges(path, len(entities), 2 * len(relations))
    vocabulary = Vocabulary(
        NameTable("entity", entities, _labels(folder, ENTITY_LABELS, entities)),
        NameTable("relation", relations, _labels(folder, RELATION_LABELS, relations)),
    )
    return KnowledgeGraph(name or folder.absolute().name, vocabulary, edges)


def _read_edges(path: Path, num_entities: int, num_relations: int) -> IntArray:
    """[n, 3] the edges of one file in file order, after checking ids and inverses."""
    columns = ("head", "relation", "tail")
    try:
        table = pyarrow.csv.read_csv(
            path,
            read_options=pyarrow.csv.ReadOptions(column_names=list(columns)),
            parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.int32()), null_values=[]
            ),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise _edge_fault(path, str(error)) from error
    edges = np.stack([table[column].to_numpy() for column in columns], axis=1)
    limits = np.array([num_entities, num_relations, num_entities])
    outside = ((edges < 0) | (edges >= limits)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"edge {edges[row].tolist()} has an id without a name; there are "
            f"{num_entities:,} entities and {num_relations:,} relations",
            path=str(path),
            line=line_of_row(path, row),
        )
    _check_inverses(path, edges, num_entities)
    return edges


def _edge_fault(path: Path, otherwise: str) -> DataError:
    """The error for the first line that is not three integers; `otherwise` if all lines are."""
    try:
        for number, fields in fields_of(path, "\t", 3, line_format="three integer ids"):
            if not all(field.strip().isdigit() for field in fields):
                return DataError(
                    f"three integer ids expected, found {fields}", path=str(path), line=number
                )
    except DataError as error:
        return error
    if not path.stat().st_size:
        return DataError("the file is empty; a line is three integer ids", path=str(path))
    return DataError(f"cannot be read as integer triples: {otherwise}", path=str(path))


def _check_inverses(path: Path, edges: IntArray, num_entities: int) -> None:
    """Raise `DataError` unless the file has the inverse (relation 2k for 2k+1) of every edge."""
    inverses = edges[:, ::-1] ^ np.array([0, 1, 0], dtype=np.int32)
    present, wanted = edge_keys(edges, num_entities), edge_keys(inverses, num_entities)
    if np.array_equal(np.sort(present), np.sort(wanted)):  # twice as fast as `isin`
        return
    lonely = ~np.isin(wanted, present)
    if lonely.any():
        row = int(lonely.argmax())
        head, relation, tail = edges[row].tolist()
        raise DataError(
            f"edge {head} {relation} {tail} lacks its inverse {tail} {relation ^ 1} {head}",
            path=str(path),
            line=line_of_row(path, row),
            hint="in these folders relation 2k is forward and 2k+1 its inverse, both spelled out",
        )


def _names(folder: Path, kind: str) -> list[str]:
    """The names of the folder's entities or relations, in id order."""
    path = _id_file(folder, kind)
    if path is None:
        wanted = " or ".join(f"{stem}.pkl" for stem in _ID_FILES[kind])
        raise DataError(f"the folder has no {wanted} (or .tsv)", path=str(folder), hint=_FILES)
    table = _read_id_table(path)
    names = [table.get(index) for index in range(len(table))]
    if None in names:
        raise DataError(
            f"id {names.index(None)} has no name; {len(table):,} ids must be 0 to "
            f"{len(table) - 1:,}",
            path=str(path),
        )
    return [str(name) for name in names]


def _read_id_table(path: Path) -> dict[int, str]:
    """Names by id, from a file of either direction (`id2ent`, `ent2id`) and either format."""
    pairs = _pickled_pairs(path) if path.suffix == ".pkl" else _text_pairs(path)
    table: dict[int, str] = {}
    for index, name in pairs:
        if index in table:
            raise DataError(
                f"id {index} occurs twice, for {table[index]!r} and for {name!r}", path=str(path)
            )
        table[index] = name
    return table


def _text_pairs(path: Path) -> list[tuple[int, str]]:
    pairs = []
    names_first = _has_names_first(path)
    line_format = "a name and an id" if names_first else "an id and a name"
    for number, fields in fields_of(path, "\t", 2, line_format=line_format):
        index, name = reversed(fields) if names_first else fields
        if not index.isdecimal():
            raise DataError(f"{index!r} is not an id", path=str(path), line=number)
        pairs.append((int(index), name))
    return pairs


def _pickled_pairs(path: Path) -> list[tuple[int, str]]:
    content = load_pickle(path)
    if isinstance(content, Mapping):
        pairs = list(content.items())
        if _has_names_first(path):
            pairs = [(index, name) for name, index in pairs]
        if all(isinstance(index, int) and isinstance(name, str) for index, name in pairs):
            return pairs
    raise DataError("expected a dictionary between integer ids and names", path=str(path))


def _has_names_first(path: Path) -> bool:
    """Whether a file maps names to ids, as `ent2id` does."""
    return path.stem.endswith("2id")


def _pair_relations(folder: Path, names: list[str]) -> list[str]:
    """The names of the forward relations without their `+`, after checking every inverse pair."""
    if len(names) % 2:
        raise DataError(
            f"{len(names)} relations found; every relation needs its inverse", path=str(folder)
        )
    bases = []
    for index in range(0, len(names), 2):
        forward, inverse = names[index], names[index + 1]
        base = forward.removeprefix("+")
        if inverse not in (f"-{base}", f"{base}_reverse"):
            raise DataError(
                f"relations {index} {forward!r} and {index + 1} {inverse!r} are no inverse pair",
                path=str(_id_file(folder, "rel")),
                hint="expected: '+name' and '-name', or 'name' and 'name_reverse'",
            )
        bases.append(base)
    return bases


def _labels(folder: Path, file_name: str, names: list[str]) -> list[str | None] | None:
    """Labels in id order from the optional label file, whose names may have a leading `+`."""
    path = folder / file_name
    if not path.is_file():
        return None
    labels = read_labels(path)
    return [labels.get(name) or labels.get(f"+{name}") for name in names]


def _id_file(folder: Path, kind: str) -> Path | None:
    for stem in _ID_FILES[kind]:
        for suffix in (".pkl", ".tsv"):
            if (path := folder / f"{stem}{suffix}").is_file():
                return path
    return None


def _find(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
