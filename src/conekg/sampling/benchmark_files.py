"""Reads and writes the query files of the public benchmarks, BetaE's and Query2Box's.

Both releases store pickles of plain containers, which only the restricted unpickler reads.
They differ in file names and in the form of queries and answers; here both become a
`QuerySet`. Beside exported queries is a file that says whose they are, which `exported_origin`
writes and reads.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from conekg.errors import DataError, QueryError, StoreError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.place import written_whole
from conekg.graph.ragged import Ragged
from conekg.graph.safe_pickle import load_pickle
from conekg.query.shape import STRUCTURES, UNION_OF_FORM, Shape
from conekg.query.tuples import Nested, shape_from_structure, structure_of
from conekg.sampling.answers import easy_and_hard, subtract_answers
from conekg.sampling.exported_origin import states_origin, with_origin, write_origin
from conekg.sampling.query_set import QueryBlock, QuerySet, concatenate_blocks
from conekg.sampling.tuple_form import TupleForm
from conekg.symbolic.engine import check_queries

PICKLE_PROTOCOL = 3
"""The protocol of the BetaE release; files written with it have the published sizes."""

BETAE, QUERY2BOX = "BetaE", "Query2Box"
"""The releases, as the field `release` of a query set names them."""

_QUERY2BOX: dict[str, tuple[str, str, Nested]] = {
    "1p": ("1c", "1-chain", (("e", ("r",)),)),
    "2p": ("2c", "2-chain", (("e", ("r", "r")),)),
    "3p": ("3c", "3-chain", (("e", ("r", "r", "r")),)),
    "2i": ("2i", "2-inter", (("e", ("r",)), ("e", ("r",)))),
    "3i": ("3i", "3-inter", (("e", ("r",)), ("e", ("r",)), ("e", ("r",)))),
    "ip": ("ic", "inter-chain", (("e", ("r",)), ("e", ("r",)), "r")),
    "pi": ("ci", "chain-inter", (("e", ("r", "r")), ("e", ("r",)))),
    "2u": ("2u", "2-union", (("e", ("r",)), ("e", ("r",)))),
    "up": ("uc", "union-chain", (("e", ("r",)), ("e", ("r",)), "r")),
}
"""Of each structure: its name in file names, its name in tuples, and the form of the keys of its
answers."""


def read_queries(
    folder: str | Path, split: Split, graph: KnowledgeGraph, *, recompute: bool = False
) -> QuerySet:
    """The queries of a split in a BetaE or Query2Box folder, with their answers.

    With `recompute` the answers are computed from the graph, and the folder needs no files of
    answers. Raises `DataError` if there are no such queries or they do not fit this graph.
    """
    place = Path(folder)
    if _is_betae(place, split):
        return _read_betae(place, split, graph, recompute)
    if _is_query2box(place, split):
        return _read_query2box(place, split, graph, recompute)
    own = place if place.is_file() else place / f"{split}.arrow"
    if own.is_file():
        raise DataError(
            "not a BetaE or Query2Box folder" if own == place else "a query set already",
            path=str(own),
            hint="`conekg queries info` looks into a query set, --queries takes it as it is",
        )
    raise DataError(
        f"no {split} queries here" if place.is_dir() else "no such folder",
        path=str(place),
        hint=f"a folder of `conekg sample` has {split}.arrow, one of BetaE {split}-queries.pkl, "
        f"one of Query2Box {split}_triples_1c.pkl",
    )


def holds_queries(folder: Path, split: Split) -> bool:
    """Whether a folder has files of queries of a split, as either release names them."""
    return _is_betae(folder, split) or _is_query2box(folder, split)


# --- BetaE -----------------------------------------------------------------------------------


def _is_betae(folder: Path, split: Split) -> bool:
    return _betae_file(folder, split).is_file()


def _betae_file(folder: Path, split: Split) -> Path:
    return folder / f"{split}-queries.pkl"


def _betae_origin(folder: Path, split: Split) -> Path:
    return folder / f"{split}-queries-origin.json"


def _read_betae(folder: Path, split: Split, graph: KnowledgeGraph, recompute: bool) -> QuerySet:
    path = _betae_file(folder, split)
    content = _mapping(load_pickle(path), path)
    easy_answers: Mapping[Nested, Any] | None = None
    hard_answers: Mapping[Nested, Any] | None = None
    if not recompute and split == "train":
        hard_answers = _load_answers(folder / "train-answers.pkl")
    elif not recompute:
        easy_answers = _load_answers(folder / f"{split}-easy-answers.pkl")
        hard_answers = _load_answers(folder / f"{split}-hard-answers.pkl")
    blocks: dict[Shape, list[QueryBlock]] = {}
    for structure, queries in content.items():
        try:
            shape, form = shape_from_structure(structure), TupleForm(structure)
            # Sets have no defined order; sorting makes the block the same on every machine.
            tuples = sorted(queries)
            anchors, relations = form.read(tuples)
            check_queries(graph.adjacency(split), shape, anchors, relations)
        except (QueryError, TypeError) as error:
            raise DataError(str(error), path=str(path)) from error
        if hard_answers is None:
            easy, hard = easy_and_hard(graph, split, shape, anchors, relations)
        else:
            hard = _rows(tuples, hard_answers, graph, folder)
            easy = Ragged.empty(len(tuples))
            if easy_answers is not None:
                easy = _rows(tuples, easy_answers, graph, folder)
        block = QueryBlock(shape, anchors, relations, easy, hard)
        blocks.setdefault(shape, []).append(block)
    # Two structures can have the same shape: `(("e", ("r",)), ("r",))` is also a path of two
    # relations.
    joined = tuple(concatenate_blocks(shape, parts) for shape, parts in blocks.items())
    query_set = QuerySet(split, joined, graph.fingerprint, release=BETAE)
    return with_origin(query_set, _betae_origin(folder, split), [path])


def write_betae(folder: str | Path, query_set: QuerySet) -> list[Path]:
    """The files, after writing a set as the BetaE release does: its queries, and their answers.

    One more file says where the queries come from; by it a later export replaces this one.
    Raises `QueryError` for a shape that such files cannot hold, `DataError` if the folder has
    queries of the split that are no earlier export's, and `StoreError` if a file cannot be written.
    """
    place, split = Path(folder), query_set.split
    path, origin = _betae_file(place, split), _betae_origin(place, split)
    _check_exported(split, [path] if path.is_file() else [], origin)
    queries: defaultdict[Nested, set[Nested]] = defaultdict(set)
    easy: defaultdict[Nested, set[int]] = defaultdict(set)
    hard: defaultdict[Nested, set[int]] = defaultdict(set)
    rows: dict[str, dict[tuple[bytes, bytes], Nested]] = {}
    for block in query_set.blocks:
        structure = _structure_to_write(block.shape)
        tuples = TupleForm(structure).write(block.anchors, block.relations)
        queries[structure].update(tuples)
        own = rows.setdefault(block.shape.name, {})
        union = rows.get(UNION_OF_FORM.get(block.shape.name, ""), {})
        for row, nested in enumerate(tuples):
            key = (block.anchors[row].tobytes(), block.relations[row].tobytes())
            own[key] = nested
            # In the release, a De Morgan form and its union share one set object, which a pickle
            # stores once. Only this gives the published file sizes.
            twin = union.get(key)
            easy[nested] = set(block.easy[row].tolist()) if twin is None else easy[twin]
            hard[nested] = set(block.hard[row].tolist()) if twin is None else hard[twin]
    if split == "train":
        answers = {place / "train-answers.pkl": hard}
    else:
        answers = {
            place / f"{split}-easy-answers.pkl": easy,
            place / f"{split}-hard-answers.pkl": hard,
        }
    return _replace([path, *answers, origin], query_set, {path: queries}, answers, origin)


def _structure_to_write(shape: Shape) -> Nested:
    try:
        return structure_of(shape)
    except QueryError as error:
        raise QueryError(
            f"the BetaE files have no place for queries of shape {shape.name}: {error.message}",
            hint="export a set without them; `conekg sample --shapes` takes the shapes to sample",
        ) from error


# --- Query2Box -------------------------------------------------------------------------------


def _is_query2box(folder: Path, split: Split) -> bool:
    return bool(_query2box_files(folder, split))


def _query2box_files(folder: Path, split: Split) -> dict[str, Path]:
    """By structure, the files of queries that a folder has."""
    paths = {
        name: folder / f"{split}_triples_{file_name}.pkl"
        for name, (file_name, _, _) in _QUERY2BOX.items()
    }
    return {name: path for name, path in paths.items() if path.is_file()}


def _query2box_origin(folder: Path, split: Split) -> Path:
    return folder / f"{split}_triples_origin.json"


def _read_query2box(folder: Path, split: Split, graph: KnowledgeGraph, recompute: bool) -> QuerySet:
    blocks = []
    files = _query2box_files(folder, split)
    for name, path in files.items():
        file_name, kind, structure = _QUERY2BOX[name]
        shape = STRUCTURES[name]
        try:
            keys = [_query2box_key(entry, kind) for entry in load_pickle(path)]
            anchors, relations = TupleForm(structure).read(keys)
            check_queries(graph.adjacency(split), shape, anchors, relations)
        except (QueryError, TypeError) as error:
            raise DataError(str(error), path=str(path)) from error
        if recompute:
            easy, hard = easy_and_hard(graph, split, shape, anchors, relations)
        else:
            easy, hard = _query2box_answers(folder, split, file_name, keys, graph)
        blocks.append(QueryBlock(shape, anchors, relations, easy, hard))
    query_set = QuerySet(split, tuple(blocks), graph.fingerprint, release=QUERY2BOX)
    return with_origin(query_set, _query2box_origin(folder, split), [*files.values()])


def _query2box_key(entry: Any, kind: str) -> Nested:
    """The key of a query in the files of answers: its entry without the target and the kind."""
    if not isinstance(entry, tuple) or len(entry) < 2 or entry[-1] != kind:
        raise QueryError(f"{entry!r} is not a query of kind {kind!r}")
    if not kind.endswith("-chain") or kind in ("inter-chain", "union-chain"):
        return entry[:-2]
    if not isinstance(entry[0], tuple) or len(entry[0]) != 3:
        raise QueryError(f"{entry!r} is not a query of kind {kind!r}")
    return (entry[0][:2],)


def _query2box_answers(
    folder: Path, split: Split, file_name: str, keys: list[Nested], graph: KnowledgeGraph
) -> tuple[Ragged, Ragged]:
    """The easy and the hard answers; the release's `_ans_` file holds both kinds together."""
    all_answers = _load_answers(folder / f"{split}_ans_{file_name}.pkl")
    everything = _rows(keys, all_answers, graph, folder)
    if split == "train":
        return Ragged.empty(len(keys)), everything
    hard_answers = _load_answers(folder / f"{split}_ans_{file_name}_hard.pkl")
    hard = _rows(keys, hard_answers, graph, folder)
    return subtract_answers(everything, hard), hard


def write_query2box(folder: str | Path, query_set: QuerySet) -> list[Path]:
    """The files, after writing a set as the Query2Box release does: two or three per structure.

    One more file says where the queries come from; by it a later export replaces this one. Raises
    the errors of `write_betae`; these files can hold fewer shapes.
    """
    place, split = Path(folder), query_set.split
    earlier, origin = _query2box_files(place, split), _query2box_origin(place, split)
    _check_exported(split, [*earlier.values()], origin)
    for block in query_set.blocks:
        if block.shape.name not in _QUERY2BOX:
            raise QueryError(
                f"the Query2Box files have no place for queries of shape {block.shape.name}",
                hint=f"they hold {', '.join(_QUERY2BOX)}; write a BetaE folder instead",
            )
    queries: dict[Path, object] = {}
    answers: dict[Path, object] = {}
    for block in query_set.blocks:
        file_name, kind, structure = _QUERY2BOX[block.shape.name]
        keys = TupleForm(structure).write(block.anchors, block.relations)
        is_chain = len(structure) == 1
        entries = [((*key[0], 0), kind) if is_chain else (*key, 0, kind) for key in keys]
        queries[place / f"{split}_triples_{file_name}.pkl"] = entries
        hard = {key: set(block.hard[row].tolist()) for row, key in enumerate(keys)}
        of_all, of_hard = _query2box_answer_files(place, split, file_name)
        answers[of_all] = {
            key: hard[key] | set(block.easy[row].tolist()) for row, key in enumerate(keys)
        }
        if split != "train":
            answers[of_hard] = hard
    replaced = [*earlier.values()]
    for name in earlier:
        replaced += _query2box_answer_files(place, split, _QUERY2BOX[name][0])
    return _replace([*replaced, origin], query_set, queries, answers, origin)


def _query2box_answer_files(folder: Path, split: Split, file_name: str) -> tuple[Path, Path]:
    """The files of all answers to the queries of a structure, and of the hard ones."""
    stem = f"{split}_ans_{file_name}"
    return folder / f"{stem}.pkl", folder / f"{stem}_hard.pkl"


# --- files -----------------------------------------------------------------------------------


_RECOMPUTE = (
    "`conekg queries import FOLDER --recompute --out FILE` answers its queries from the graph"
)


def _load_answers(path: Path) -> Mapping[Nested, Any]:
    if not path.is_file():
        raise DataError(
            "no such file of answers",
            path=str(path),
            hint=_RECOMPUTE,
        )
    return _mapping(load_pickle(path), path)


def _mapping(content: Any, path: Path) -> Mapping[Any, Any]:
    if not isinstance(content, dict):
        raise DataError(f"holds a {type(content).__name__}, not a dictionary", path=str(path))
    return content


def _rows(
    keys: list[Nested],
    answers: Mapping[Nested, Any],
    graph: KnowledgeGraph,
    folder: Path,
) -> Ragged:
    """The sorted, distinct answers of each query; `DataError` if a query has no entry."""
    rows: list[IntArray] = []
    for key in keys:
        if key not in answers:
            raise DataError(f"no answers to the query {key!r}", path=str(folder), hint=_RECOMPUTE)
        found = answers[key]
        try:
            # The answers may be a list, which can hold an answer more than once.
            rows.append(np.unique(np.fromiter(map(index, found), np.int32, len(found))))
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                f"the answers to {key!r} are no set of entity ids",
                path=str(folder),
                hint=_RECOMPUTE,
            ) from error
    ragged = Ragged.from_rows(rows)
    outside = ragged.values[(ragged.values < 0) | (ragged.values >= graph.num_entities)]
    if len(outside):
        raise DataError(
            f"the answers name entity {int(outside[0])}; the graph has ids 0 to "
            f"{graph.num_entities - 1}",
            path=str(folder),
            hint="do the queries belong to this graph?",
        )
    return ragged


def _check_exported(split: Split, queries: Sequence[Path], origin: Path) -> None:
    """Raise `DataError` unless all these files of queries are of the export that `origin` is about.

    Others may be a release's, which the exported ones would pass for.
    """
    others = [file.name for file in queries if not states_origin(origin, [file])]
    if others:
        raise DataError(
            f"holds {split} queries that may be a release's, so they are left alone",
            path=str(origin.parent),
            hint=f"choose another folder, or remove {', '.join(others)} there first",
        )


def _replace(
    earlier: Sequence[Path],
    query_set: QuerySet,
    queries: Mapping[Path, object],
    answers: Mapping[Path, object],
    origin: Path,
) -> list[Path]:
    """The files of an export, after writing them in place of those of an earlier one.

    `origin` is the file that is to say where the queries come from. Where files cannot be
    written, those of the earlier export stay. At no time are queries in the folder without their
    origin, and none of the earlier ones are left beside the new, which could have fewer shapes.
    """
    contents = {**queries, **answers}
    folder = path = origin.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".export-", dir=folder) as name:
            draft = Path(name)
            for path, content in contents.items():
                with written_whole(draft / path.name) as file:
                    pickle.dump(content, file, protocol=PICKLE_PROTOCOL)
            path = origin
            write_origin(draft / path.name, query_set, [draft / each.name for each in queries])
            for path in earlier:
                path.unlink(missing_ok=True)
            files = [*contents, origin]
            for path in reversed(files):  # the origin comes first, queries last
                (draft / path.name).replace(path)
            return files
    except OSError as error:
        raise StoreError(f"cannot be written: {error.strerror or error}", path=str(path)) from error
