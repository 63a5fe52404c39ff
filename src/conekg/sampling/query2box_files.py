"""Reads and writes the query files of the Query2Box release.

Of each split and structure, one pickle lists the queries and one or two hold their answers. The
release has structures without negation only, under names of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conekg.errors import DataError, QueryError
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.graph.safe_pickle import load_pickle
from conekg.query.shape import STRUCTURES
from conekg.query.tuples import Nested
from conekg.sampling.answers import easy_and_hard, subtract_answers
from conekg.sampling.export import write_export
from conekg.sampling.exported_origin import with_origin
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.sampling.release_pickles import answer_rows, load_answers
from conekg.sampling.tuple_form import TupleForm
from conekg.symbolic.engine import check_queries

QUERY2BOX = "Query2Box"
"""The release, as the field `release` of a query set names it."""

_FORMS: dict[str, tuple[str, str, Nested]] = {
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


def has_query2box_queries(folder: Path, split: Split) -> bool:
    """Whether a folder has files of queries of a split, as the release names them."""
    return bool(_queries_files(folder, split))


def _queries_files(folder: Path, split: Split) -> dict[str, Path]:
    """By structure, the files of queries that a folder has."""
    paths = {
        name: folder / f"{split}_triples_{file_name}.pkl"
        for name, (file_name, _, _) in _FORMS.items()
    }
    return {name: path for name, path in paths.items() if path.is_file()}


def _origin_file(folder: Path, split: Split) -> Path:
    return folder / f"{split}_triples_origin.json"


def read_query2box(folder: Path, split: Split, graph: KnowledgeGraph, recompute: bool) -> QuerySet:
    """The queries of a split; with `recompute`, their answers are computed from the graph.

    Raises `DataError` if they do not fit the graph or there are no answers to read.
    """
    blocks = []
    files = _queries_files(folder, split)
    for name, path in files.items():
        file_name, kind, structure = _FORMS[name]
        shape = STRUCTURES[name]
        try:
            keys = [_key(entry, kind) for entry in load_pickle(path)]
            anchors, relations = TupleForm(structure).read(keys)
            check_queries(graph.adjacency(split), shape, anchors, relations)
        except (QueryError, TypeError) as error:
            raise DataError(str(error), path=str(path)) from error
        if recompute:
            easy, hard = easy_and_hard(graph, split, shape, anchors, relations)
        else:
            easy, hard = _answers(folder, split, file_name, keys, graph)
        blocks.append(QueryBlock(shape, anchors, relations, easy, hard))
    query_set = QuerySet(split, tuple(blocks), graph.fingerprint, release=QUERY2BOX)
    return with_origin(query_set, _origin_file(folder, split), [*files.values()])


def _key(entry: Any, kind: str) -> Nested:
    """The key of a query in the files of answers: its entry without the target and the kind."""
    if not isinstance(entry, tuple) or len(entry) < 2 or entry[-1] != kind:
        raise QueryError(f"{entry!r} is not a query of kind {kind!r}")
    if not kind.endswith("-chain") or kind in ("inter-chain", "union-chain"):
        return entry[:-2]
    if not isinstance(entry[0], tuple) or len(entry[0]) != 3:
        raise QueryError(f"{entry!r} is not a query of kind {kind!r}")
    return (entry[0][:2],)


def _answers(
    folder: Path, split: Split, file_name: str, keys: list[Nested], graph: KnowledgeGraph
) -> tuple[Ragged, Ragged]:
    """The easy and the hard answers; the release's `_ans_` file holds both kinds together."""
    of_all, of_hard = _answer_files(folder, split, file_name)
    everything = answer_rows(keys, load_answers(of_all), graph, folder)
    if split == "train":
        return Ragged.empty(len(keys)), everything
    hard = answer_rows(keys, load_answers(of_hard), graph, folder)
    return subtract_answers(everything, hard), hard


def write_query2box(folder: str | Path, query_set: QuerySet) -> list[Path]:
    """The files, after writing a set as the Query2Box release does: two or three per structure.

    One more file says where the queries come from; by it a later export replaces this one. Raises
    the errors of `write_betae`; these files can hold fewer shapes.
    """
    place, split = Path(folder), query_set.split
    for block in query_set.blocks:
        if block.shape.name not in _FORMS:
            raise QueryError(
                f"the Query2Box files have no place for queries of shape {block.shape.name}",
                hint=f"they hold {', '.join(_FORMS)}; write a BetaE folder instead",
            )
    queries: dict[Path, object] = {}
    answers: dict[Path, object] = {}
    for block in query_set.blocks:
        file_name, kind, structure = _FORMS[block.shape.name]
        keys = TupleForm(structure).write(block.anchors, block.relations)
        is_chain = len(structure) == 1
        entries = [((*key[0], 0), kind) if is_chain else (*key, 0, kind) for key in keys]
        queries[place / f"{split}_triples_{file_name}.pkl"] = entries
        hard = {key: set(block.hard[row].tolist()) for row, key in enumerate(keys)}
        of_all, of_hard = _answer_files(place, split, file_name)
        answers[of_all] = {
            key: hard[key] | set(block.easy[row].tolist()) for row, key in enumerate(keys)
        }
        if split != "train":
            answers[of_hard] = hard
    earlier = {
        path: _answer_files(place, split, _FORMS[name][0])
        for name, path in _queries_files(place, split).items()
    }
    return write_export(query_set, queries, answers, _origin_file(place, split), earlier=earlier)


def _answer_files(folder: Path, split: Split, file_name: str) -> tuple[Path, Path]:
    """The files of all answers to the queries of a structure, and of the hard ones."""
    stem = f"{split}_ans_{file_name}"
    return folder / f"{stem}.pkl", folder / f"{stem}_hard.pkl"
