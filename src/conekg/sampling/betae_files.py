"""Reads and writes the query files of the BetaE release.

Of each split, one pickle holds the queries as nested tuples, by structure, and one or two hold
their answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conekg.errors import DataError, QueryError
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.query.shape import UNION_OF_FORM, Shape
from conekg.query.tuples import Nested, shape_from_structure, structure_of
from conekg.sampling.answers import easy_and_hard
from conekg.sampling.export import write_export
from conekg.sampling.exported_origin import with_origin
from conekg.sampling.query_set import QueryBlock, QuerySet, concatenate_blocks
from conekg.sampling.release_pickles import answer_rows, load_answers, load_dictionary
from conekg.sampling.tuple_form import TupleForm
from conekg.symbolic.engine import check_queries

BETAE = "BetaE"
"""The release, as the field `release` of a query set names it."""


def has_betae_queries(folder: Path, split: Split) -> bool:
    """Whether a folder has the release's file of queries of a split."""
    return _queries_file(folder, split).is_file()


def _queries_file(folder: Path, split: Split) -> Path:
    return folder / f"{split}-queries.pkl"


def _origin_file(folder: Path, split: Split) -> Path:
    return folder / f"{split}-queries-origin.json"


def read_betae(folder: Path, split: Split, graph: KnowledgeGraph, recompute: bool) -> QuerySet:
    """The queries of a split; with `recompute`, their answers are computed from the graph.

    Raises `DataError` if they do not fit the graph or there are no answers to read.
    """
    path = _queries_file(folder, split)
    content = load_dictionary(path)
    easy_answers: Mapping[Nested, Any] | None = None
    hard_answers: Mapping[Nested, Any] | None = None
    if not recompute and split == "train":
        hard_answers = load_answers(folder / "train-answers.pkl")
    elif not recompute:
        easy_answers = load_answers(folder / f"{split}-easy-answers.pkl")
        hard_answers = load_answers(folder / f"{split}-hard-answers.pkl")
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
            hard = answer_rows(tuples, hard_answers, graph, folder)
            easy = Ragged.empty(len(tuples))
            if easy_answers is not None:
                easy = answer_rows(tuples, easy_answers, graph, folder)
        block = QueryBlock(shape, anchors, relations, easy, hard)
        blocks.setdefault(shape, []).append(block)
    # Two structures can have the same shape: `(("e", ("r",)), ("r",))` is also a path of two
    # relations.
    joined = tuple(concatenate_blocks(shape, parts) for shape, parts in blocks.items())
    query_set = QuerySet(split, joined, graph.fingerprint, release=BETAE)
    return with_origin(query_set, _origin_file(folder, split), [path])


def write_betae(folder: str | Path, query_set: QuerySet) -> list[Path]:
    """The files, after writing a set as the BetaE release does: its queries, and their answers.

    One more file says where the queries come from; by it a later export replaces this one.
    Raises `QueryError` for a shape that such files cannot hold, `DataError` if the folder has
    queries of the split that are no earlier export's, and `StoreError` if a file cannot be written.
    """
    place, split = Path(folder), query_set.split
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
    answers: dict[Path, object] = {place / "train-answers.pkl": hard}
    if split != "train":
        answers = {
            place / f"{split}-easy-answers.pkl": easy,
            place / f"{split}-hard-answers.pkl": hard,
        }
    path, origin = _queries_file(place, split), _origin_file(place, split)
    earlier = {path: [*answers]} if path.is_file() else {}
    return write_export(query_set, {path: queries}, answers, origin, earlier=earlier)


def _structure_to_write(shape: Shape) -> Nested:
    try:
        return structure_of(shape)
    except QueryError as error:
        raise QueryError(
            f"the BetaE files have no place for queries of shape {shape.name}: {error.message}",
            hint="export a set without them; `conekg sample --shapes` takes the shapes to sample",
        ) from error
