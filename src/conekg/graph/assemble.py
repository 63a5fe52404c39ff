"""Builds a graph from tables of named triples: numbers names, merges duplicates, checks splits.

A single table is split at random with a seed. Two or three tables are used as the splits they
are, after checking that no triple is in two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from conekg.errors import DataError
from conekg.graph.adjacency import IntArray
from conekg.graph.edge_keys import edge_keys
from conekg.graph.knowledge_graph import (
    SPLITS,
    KnowledgeGraph,
    Split,
    with_inverses,
)
from conekg.graph.mirrored import mirrored_note
from conekg.graph.misplaced import misplaced_note
from conekg.graph.rdf import local_part
from conekg.graph.split import HoldOut, split_triples
from conekg.graph.text_array import first_repeated
from conekg.graph.triples import TripleTable
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.lines import counted

Unseen = Literal["error", "drop"]
"""What to do with a held-out triple whose entity or relation is not in the training triples."""


@dataclass(frozen=True)
class Labels:
    """Readable labels by name, for entities and for relations."""

    entities: Mapping[str, str]
    relations: Mapping[str, str]


@dataclass(frozen=True)
class Assembled:
    """A graph, with notes for the user on what was merged, dropped or may be a mistake."""

    graph: KnowledgeGraph
    notes: tuple[str, ...] = ()


NO_LABELS = Labels({}, {})


def assemble_one(
    name: str, table: TripleTable, hold_out: HoldOut, labels: Labels = NO_LABELS
) -> Assembled:
    """The graph of one table, with a random share of its triples held out."""
    numbering = _Numbering()
    triples, duplicates = _distinct(numbering.number(table))
    parts = split_triples(triples, len(numbering.entities), len(numbering.relations), hold_out)
    vocabulary = numbering.vocabulary(_merged(labels, table.labels))
    edges = {split: with_inverses(parts[split]) for split in SPLITS}
    notes = _table_notes(table, duplicates, trains=True)
    notes += [*_unmatched_notes([table]), *_name_notes(vocabulary, labels)]
    wanted = sum(hold_out.wanted(len(triples)))
    held_out = len(parts["valid"]) + len(parts["test"])
    if held_out < wanted:
        notes.append(
            f"{counted(held_out, 'triple')} held out instead of {wanted:,}: the others are the "
            "only ones of their entity or relation"
        )
    notes += _mirrored_note(table.path, parts, numbering)
    return Assembled(KnowledgeGraph(name, vocabulary, edges), tuple(notes))


def assemble_splits(
    name: str,
    tables: Mapping[Split, TripleTable],
    labels: Labels = NO_LABELS,
    unseen: Unseen = "error",
) -> Assembled:
    """The graph of a training table and its validation and test tables.

    Every entity and relation of a held-out triple must occur in the training triples. If one
    does not, `DataError` is raised, or with `unseen="drop"` the triple is dropped and counted.
    """
    numbering = _Numbering()
    numbered: dict[Split, IntArray] = {}
    notes: list[str] = []
    known = (0, 0)
    for split in SPLITS:
        if split not in tables:
            continue
        table = tables[split]
        triples = numbering.number(table)
        if split == "train":
            known = (len(numbering.entities), len(numbering.relations))
        else:
            triples, note = _seen_in_training(triples, table, numbering, known, unseen)
            notes += note
        numbered[split], duplicates = _distinct(triples)
        notes += _table_notes(table, duplicates, trains=split == "train")
    notes += _unmatched_notes(tables.values())
    _refuse_overlaps(tables, numbered, numbering)
    notes += _mirrored_note(tables["train"].path, numbered, numbering)
    vocabulary = numbering.vocabulary(_merged(labels, _labels_of(tables.values())), *known)
    notes += _name_notes(vocabulary, labels)
    edges = {split: with_inverses(triples) for split, triples in numbered.items()}
    return Assembled(KnowledgeGraph(name, vocabulary, edges), tuple(notes))


class _Numbering:
    """Numbers names in the order in which tables are added, a table's heads before its tails."""

    def __init__(self) -> None:
        self.entities = pa.array([], pa.large_string())
        self.relations = pa.array([], pa.large_string())

    def number(self, table: TripleTable) -> IntArray:
        """[n, 3] the table's triples as numbers; new names get the next free numbers."""
        heads, relations, tails = table.columns
        triples = np.empty((len(table), 3), dtype=np.int32)
        triples[:, 0], self.entities = _number(heads, self.entities)
        triples[:, 1], self.relations = _number(relations, self.relations)
        triples[:, 2], self.entities = _number(tails, self.entities)
        return triples

    def names(self, triple: IntArray) -> list[str]:
        """The names of the head, relation and tail of a numbered triple."""
        tables = (self.entities, self.relations, self.entities)
        return [names[int(i)].as_py() for names, i in zip(tables, triple, strict=True)]

    def vocabulary(
        self, labels: Labels, num_entities: int | None = None, num_relations: int | None = None
    ) -> Vocabulary:
        """The vocabulary of the first `num_entities` and `num_relations` names; all by default."""
        entities, relations = self.entities[:num_entities], self.relations[:num_relations]
        return Vocabulary(
            NameTable("entity", entities, _labels_for(entities, labels.entities)),
            NameTable("relation", relations, _labels_for(relations, labels.relations)),
        )


def _number(column: pa.DictionaryArray, names: pa.Array) -> tuple[IntArray, pa.Array]:
    """The column's values as indices into `names`, and `names` extended by those it lacked."""
    indices = pc.index_in(column.dictionary, value_set=names)
    missing = indices.is_null().to_numpy(zero_copy_only=False)
    numbers = indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    numbers[missing] = np.arange(len(names), len(names) + missing.sum(), dtype=np.int32)
    if missing.any():
        names = pa.concat_arrays([names, column.dictionary.filter(pa.array(missing))])
    return numbers[column.indices.to_numpy(zero_copy_only=False)], names


def _distinct(triples: IntArray) -> tuple[IntArray, int]:
    """The triples without repetitions, in order of first occurrence, and how many were dropped."""
    key = edge_keys(triples, int(triples[:, [0, 2]].max(initial=0)) + 1)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    repeats = np.zeros(len(key), dtype=bool)
    repeats[order[1:]] = ordered[1:] == ordered[:-1]
    count = int(repeats.sum())
    return (triples[~repeats] if count else triples), count


def _seen_in_training(
    triples: IntArray,
    table: TripleTable,
    numbering: _Numbering,
    known: tuple[int, int],
    unseen: Unseen,
) -> tuple[IntArray, list[str]]:
    """The held-out triples whose names all occur in training, and a note on dropped triples.

    `known` holds how many entities and relations training has. Training was numbered first, so
    a number at or above these belongs to a name that training lacks.
    """
    limits = np.array([known[0], known[1], known[0]])
    new: NDArray[np.bool_] = triples >= limits
    rows = new.any(axis=1)
    if not rows.any():
        return triples, []
    if unseen == "drop":
        dropped = counted(int(rows.sum()), "triple")
        note = f"{table.path}: {dropped} dropped, training lacks names of theirs"
        return triples[~rows], [note]
    row = int(rows.argmax())
    # Report an unknown relation before an unknown entity: it says more about what is wrong.
    column = next(column for column in (1, 0, 2) if new[row, column])
    kind = "relation" if column == 1 else "entity"
    names = numbering.relations if column == 1 else numbering.entities
    unknown = names[int(triples[row, column])].as_py()
    close = NameTable(kind, names[: int(limits[column])]).suggest(unknown)
    guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    raise DataError(
        f"{kind} {unknown!r} does not occur in the training triples "
        f"(triples here that name something new: {int(rows.sum()):,})",
        path=str(table.path),
        line=table.line_of(row),
        hint=f"{guess}add it to the training file, or drop such triples with "
        "`conekg graph build --drop-unseen`",
    )


def _refuse_overlaps(
    tables: Mapping[Split, TripleTable], numbered: Mapping[Split, IntArray], numbering: _Numbering
) -> None:
    """Raise `DataError` where a triple is in two splits: it would be both known and held out."""
    size = len(numbering.entities)
    keys = {split: edge_keys(triples, size) for split, triples in numbered.items()}
    splits = list(keys)
    for index, later in enumerate(splits):
        for earlier in splits[:index]:
            shared = np.isin(keys[later], keys[earlier])
            if not shared.any():
                continue
            triple = numbering.names(numbered[later][shared.argmax()])
            number = int(shared.sum())
            raise DataError(
                f"triple {' '.join(map(repr, triple))} is also a {earlier} triple "
                f"({tables[earlier].path}); "
                f"{number:,} triple{' is' if number == 1 else 's are'} in both",
                path=str(tables[later].path),
                line=_line_of_triple(tables[later], triple),
                hint="every triple belongs to one split; remove it from one of the files, "
                "or give one file and let conekg split it",
            )


def _line_of_triple(table: TripleTable, triple: Sequence[str]) -> int | None:
    """The line of a triple's first occurrence in the table; `None` if the format has no lines."""
    indices = np.stack([column.indices.to_numpy() for column in table.columns], axis=1)
    wanted = [
        pc.index(column.dictionary, name).as_py()
        for column, name in zip(table.columns, triple, strict=True)
    ]
    return table.line_of(int((indices == wanted).all(axis=1).argmax()))


def _labels_for(names: pa.Array, labels: Mapping[str, str]) -> pa.Array | None:
    """The label of each name, null where it has none; `None` where there are no labels at all."""
    if not labels:
        return None
    return pa.array((labels.get(name) for name in names.to_pylist()), pa.large_string())


def _labels_of(tables: Iterable[TripleTable]) -> dict[str, str]:
    """Labels by name from all tables.

    Where tables disagree, the first label that is not just the last part of the IRI is taken.
    """
    labels: dict[str, str] = {}
    for table in tables:
        for name, label in table.labels.items():
            if name not in labels or labels[name] == local_part(name):
                labels[name] = label
    return labels


def _merged(labels: Labels, more: Mapping[str, str]) -> Labels:
    """`labels`, completed by the labels found in the triple files; `labels` takes precedence."""
    if not more:
        return labels
    return Labels({**more, **labels.entities}, {**more, **labels.relations})


def _name_notes(vocabulary: Vocabulary, labels: Labels) -> list[str]:
    """Notes on names that look like mistakes, and on labels for names that do not exist.

    `labels` are those given by the user, not those found in the triple files.
    """
    notes = []
    for table, given in (
        (vocabulary.entities, labels.entities),
        (vocabulary.relations, labels.relations),
    ):
        padded = table.names.filter(pc.not_equal(pc.utf8_trim_whitespace(table.names), table.names))
        if len(padded):
            notes.append(
                f"{counted(len(padded), f'{table.kind} name')} with a space at the beginning or "
                f"end, such as {padded[0].as_py()!r}: not the same as without it"
            )
        composed = pc.utf8_normalize(table.names, form="NFC")
        if twins := len(composed) - len(composed.unique()):
            notes.append(
                f"{counted(twins, f'{table.kind} name')} spelled as another one but with accents "
                f"as signs of their own, such as {first_repeated(composed)!r}: not the same name"
            )
        decimal = _decimal_twins(table.names)
        if len(decimal):
            notes.append(
                f"{counted(len(decimal), f'{table.kind} name')} equal to another one but for a "
                f"decimal, such as {decimal[0].as_py()!r}: not the same name; were ids written as "
                "decimals?"
            )
        if given:
            unknown = given.keys() - set(table)
            if unknown:
                notes.append(
                    f"{len(unknown):,} of {counted(len(given), f'{table.kind} label')} for names "
                    f"that the graph does not have, such as {min(unknown)!r}"
                )
    return notes


def _decimal_twins(names: pa.Array) -> pa.Array:
    """Names such as `12.0` where `12` is a name as well.

    This happens when a program writes a column of integer ids with missing values as floats.
    """
    decimal = names.filter(pc.match_substring_regex(names, r"^-?[0-9]+\.0$"))
    if not len(decimal):  # skips the look-up below, which takes a second per million names
        return decimal
    whole = pc.utf8_slice_codeunits(decimal, 0, -2)
    return decimal.filter(pc.is_in(whole, value_set=names))


def _mirrored_note(path: Path, parts: Mapping[Split, IntArray], numbering: _Numbering) -> list[str]:
    note = mirrored_note(parts, numbering.relations)
    return [] if note is None else [f"{path}: {note}"]


def _table_notes(table: TripleTable, duplicates: int, *, trains: bool) -> list[str]:
    """Notes on one table; its columns are judged only if it `trains`, as held-out facts are few."""
    notes = [*table.notes]
    if trains and (note := misplaced_note(table)) is not None:
        notes.append(f"{table.path}: {note}")
    if duplicates:
        notes.append(f"{table.path}: {counted(duplicates, 'repeated triple')} merged")
    return notes


def _unmatched_notes(tables: Iterable[TripleTable]) -> list[str]:
    """Notes on options that match nothing in any table; labels may be in one alone."""
    told = [table.unmatched for table in tables if table.unmatched is not None]
    return [
        note
        for option, note in (told[0].items() if told else ())
        if all(option in others for others in told)
    ]
