"""Names and ids: which entity or relation is number 17, and what did the user mean by "Frnce".

Names live in Arrow string arrays and are found through one sorted index, both of
which can be memory-mapped: a table of millions of names opens at once and costs no
Python object per name. Relation ids come in pairs: 2k is the k-th named relation,
2k+1 its inverse, written `^name`.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from conekg.errors import ConfigError, DataError, UnknownNameError
from conekg.graph.spelling import nearest, spelled_out, with_word
from conekg.graph.text_array import as_texts, first_repeated

PLURALS = {"entity": "entities", "relation": "relations"}
"""What the command line calls many of a kind."""
RECENT_NAMES = 1 << 16
"""The most names whose ids are remembered, and the most ids whose names are: looking one up takes
ten to a hundred times as long."""

_in_a_hurry = ContextVar("_in_a_hurry", default=False)


@contextmanager
def without_suggestions() -> Iterator[None]:
    """Inside, unknown names are refused at once: close ones take long to find among millions."""
    before = _in_a_hurry.set(True)
    try:
        yield
    finally:
        _in_a_hurry.reset(before)


@dataclass(frozen=True)
class NameIndex:
    """Every name and label in lower case, sorted, with the id it belongs to."""

    texts: pa.Array
    """[entries] large strings in byte order, which for UTF-8 is the order of code points."""
    ids: pa.Array
    """[entries] int32; one id has one entry, or two where its label differs from its name."""

    def range_of(self, text: str, *, prefix: bool = False) -> range:
        """The entries equal to `text` (already in lower case), or starting with it."""
        start = self._first(text.encode())
        # No UTF-8 text contains the byte 0xff, so it sorts after every continuation.
        stop = self._first(text.encode() + (b"\xff" if prefix else b"\0"))
        return range(start, stop)

    def accented_like(self, text: str, *, prefix: bool = False) -> list[int]:
        """The entries with accents that contain `text`, or start with it, without their accents.

        `text` is in lower case already. If it has accents, nothing is found: these are meant.
        """
        if _without_accents(pa.array([text]))[0].as_py() != text:
            return []
        entries, texts = self._accented
        match = pc.starts_with if prefix else pc.match_substring
        found: list[int] = entries[_places(match(texts, text))].tolist()
        return found

    @cached_property
    def _accented(self) -> tuple[NDArray[np.int64], pa.Array]:
        """The entries that have accents, and their texts without."""
        entries = _places(pc.invert(pc.string_is_ascii(self.texts)))
        texts = self.texts.take(pa.array(entries))
        plain = _without_accents(texts)
        differ = pc.not_equal(plain, texts)
        return entries[_places(differ)], plain.filter(differ)

    def _first(self, text: bytes) -> int:
        """The first entry that is not smaller than `text`."""
        entries = range(len(self.texts))
        return bisect_left(entries, text, key=lambda at: self.texts[at].as_buffer().to_pybytes())


class NameTable:
    """An immutable list of distinct names, each with an id (its place) and a readable label.

    `labels` may hold `None` or a blank text where an id has no label of its own.
    """

    def __init__(
        self,
        kind: str,
        names: Sequence[str] | pa.Array,
        labels: Sequence[str | None] | pa.Array | None = None,
        *,
        index: NameIndex | None = None,
    ) -> None:
        self.kind = kind
        self._recent: dict[str, int] = {}
        self._recent_names: dict[int, str] = {}
        self._names = as_texts(names)
        self._labels = None if labels is None else _meaningful(as_texts(labels), self._names)
        if self._labels is not None and len(self._labels) != len(self._names):
            raise DataError(f"{len(self._labels)} labels for {len(self._names)} {kind} names")
        if index is None:
            self._refuse_bad_names()
        else:
            self.__dict__["index"] = index

    def __repr__(self) -> str:
        return f"<NameTable of {len(self):,} {self._plural}>"

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return (name.as_py() for name in self._names)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NameTable)
            and self.kind == other.kind
            and self._names.equals(other._names)
            and self.labels.equals(other.labels)
        )

    def __hash__(self) -> int:
        return hash((self.kind, len(self)))

    @property
    def names(self) -> pa.Array:
        """All names in id order, as Arrow large strings."""
        return self._names

    @property
    def labels(self) -> pa.Array:
        """All labels in id order, as Arrow large strings; the name where there is no label."""
        return self._names if self._labels is None else pc.coalesce(self._labels, self._names)

    @property
    def own_labels(self) -> pa.Array | None:
        """The labels that differ from the names, null elsewhere; `None` when there are none."""
        return self._labels

    @cached_property
    def index(self) -> NameIndex:
        """The sorted index behind look-ups; made on first use unless it was given."""
        texts, ids = self._names, pa.array(np.arange(len(self), dtype=np.int32))
        if self._labels is not None:
            labelled = self._labels.is_valid()
            texts = pa.concat_arrays([texts, self._labels.filter(labelled)])
            ids = pa.concat_arrays([ids, ids.filter(labelled)])
        texts = pc.utf8_lower(texts)
        order = pc.sort_indices(texts)
        return NameIndex(texts.take(order), ids.take(order))

    def name(self, index: int) -> str:
        """The unique name of an id; `UnknownNameError` where the table has no such id."""
        found = self._recent_names.get(index)
        if found is None:
            self._check(index)
            found = str(self._names[index].as_py())
            if len(self._recent_names) >= RECENT_NAMES:
                self._recent_names.clear()
            self._recent_names[index] = found
        return found

    def remember_names(self) -> None:
        """Keep every name and its id in memory, unless the table is too large for that.

        For servers: the first look-up of a name takes far longer than the next ones.
        """
        if len(self) < RECENT_NAMES:
            names = self._names.to_pylist()
            self._recent_names = dict(enumerate(names))
            self._recent = {name: index for index, name in enumerate(names)}

    def label(self, index: int) -> str:
        """The readable label of an id; its name where it has no label."""
        if self._labels is None:
            return self.name(index)
        self._check(index)
        label = self._labels[index].as_py()
        return self.name(index) if label is None else str(label)

    def _check(self, index: int) -> None:
        """Refuse what is no id of this table: negative ones would be counted from its end."""
        if not 0 <= index < len(self):
            raise UnknownNameError(
                f"{self.kind} number",
                str(index),
                hint=f"there are {len(self)}, numbered from 0; is the query of another graph?",
            )

    def title(self, index: int) -> str:
        """The label of an id, followed by its name where the label alone could be another id.

        >>> NameTable("entity", ["Q1", "Q2"], ["Jane Doe", "Jane Doe"]).title(1)
        'Jane Doe (Q2)'
        """
        label, name = self.label(index), self.name(index)
        if label == name:
            return name
        alike = (i for i in self._spelled_like(label) if i != index)
        shared = any(label in (self.label(i), self.name(i)) for i in alike)
        return f"{label} ({name})" if shared else label

    def find(self, text: str) -> int | None:
        """The id whose name is exactly `text`, if there is one."""
        return next((i for i in self._spelled_like(text) if self.name(i) == text), None)

    def knows(self, text: str) -> bool:
        """Whether `text` is the name or a label of anything here."""
        return any(text in (self.name(i), self.label(i)) for i in self._spelled_like(text))

    def id_of(self, text: str) -> int:
        """The id of a name, or of a label that only one id has; case matters in both.

        An accented letter may be one sign or a letter and an accent, whichever the name has.
        Raises `UnknownNameError`, with names that are close, where none or several have it.

        >>> NameTable("entity", ["/m/0f8l9c"], ["France"]).id_of("France")
        0
        """
        found = self._recent.get(text)
        if found is None:
            found = self._look_up(text)
            if len(self._recent) >= RECENT_NAMES:
                self._recent.clear()
            self._recent[text] = found
        return found

    def _look_up(self, text: str) -> int:
        for spelling in _spellings(text):
            alike = self._spelled_like(spelling)
            for index in alike:
                if self.name(index) == spelling:
                    return index
            labelled = [index for index in alike if self.label(index) == spelling]
            if len(labelled) == 1:
                return labelled[0]
            if labelled:
                raise UnknownNameError(
                    self.kind,
                    text,
                    suggestions=tuple(self.name(index) for index in labelled[:5]),
                    hint="use the unique name",
                    message=f"{self.kind} label {text!r} is ambiguous: "
                    f"{len(labelled)} {self._plural} have it",
                )
        close = () if _in_a_hurry.get() else self.suggest(text)
        raise UnknownNameError(
            self.kind, text, suggestions=close, where_to_look=self._where_to_look()
        )

    def suggest(self, text: str, limit: int = 3) -> tuple[str, ...]:
        """Names or labels close to `text`, the likeliest first; where none is close, others that
        begin like it or contain it."""
        folded = _lower(text)
        near = nearest(folded, self.index.texts, 4 * limit)
        # "Spielberg" is two keystrokes from "Heidelberg", and a name of Steven's.
        slips = [entry for entry, keystrokes in near.items() if keystrokes <= 1]
        longer = with_word(folded, self.index.texts)[:limit] if len(folded) >= 3 else []
        entries = [*spelled_out(text, self.index.texts), *slips, *longer, *near]
        if not entries and folded:
            entries = list(self.index.range_of(folded, prefix=True)[: 4 * limit])
        if not entries and len(folded) >= 3:
            entries = _places(pc.match_substring(self.index.texts, folded)).tolist()
            entries += self.index.accented_like(folded)
            entries = sorted(entries, key=lambda entry: len(self.index.texts[entry].as_py()))
        if not entries:
            entries = self._beginning_alike(folded)[: 4 * limit]
        written = (self._as_written(entry) for entry in entries[: 4 * limit])
        return tuple(dict.fromkeys(written))[:limit]

    def _beginning_alike(self, folded: str) -> list[int]:
        """Entries that share as much of a text's beginning as any, most of it: director, directed.

        Two thirds at least, and five signs.
        """
        for end in range(len(folded) - 1, max(4, (2 * len(folded) - 1) // 3), -1):
            if found := self.index.range_of(folded[:end], prefix=True):
                return list(found)
        return []

    def with_prefix(self, prefix: str, limit: int = 10) -> tuple[int, ...]:
        """Ids whose name or label starts with `prefix` in any case, in alphabetical order.

        A prefix without accents also finds, after these, names that have them.
        """
        found: dict[int, None] = {}
        for entry in self._beginning_with(prefix):
            found[self.index.ids[entry].as_py()] = None
            if len(found) == limit:
                break
        return tuple(found)

    def _beginning_with(self, prefix: str) -> Iterator[int]:
        """Entries of the index; those with accents last, since all of them are gone through."""
        for spelling in _spellings(prefix):
            yield from self.index.range_of(_lower(spelling), prefix=True)
        yield from self.index.accented_like(_lower(prefix), prefix=True)

    def containing(self, text: str) -> tuple[int, ...]:
        """Ids whose name or label contains `text` in any case, in id order.

        A text without accents also finds names that have them.
        """
        found = [
            _places(pc.match_substring(self.index.texts, _lower(spelling)))
            for spelling in _spellings(text)
        ]
        found.append(np.array(self.index.accented_like(_lower(text)), dtype=np.int64))
        ids = self.index.ids.to_numpy()[np.concatenate(found)]
        return tuple(np.unique(ids).tolist())

    def _spelled_like(self, text: str) -> list[int]:
        """Ids whose name or label equals `text` but for case, ascending, each once."""
        entries = self.index.range_of(_lower(text))
        return sorted({self.index.ids[entry].as_py() for entry in entries})

    def _as_written(self, entry: int) -> str:
        """The name or the unique label behind an index entry, in its own case."""
        index, folded = self.index.ids[entry].as_py(), self.index.texts[entry].as_py()
        name, label = self.name(index), self.label(index)
        if (
            _lower(name) == folded
            or sum(self.label(i) == label for i in self._spelled_like(label)) > 1
        ):
            return name
        return label

    @property
    def _plural(self) -> str:
        return PLURALS.get(self.kind, self.kind)

    def _where_to_look(self) -> str:
        return f"`conekg graph {self._plural} GRAPH --search TEXT` searches all {len(self):,}"

    def _refuse_bad_names(self) -> None:
        if self._names.null_count or pc.any(pc.equal(self._names, "")).as_py():
            raise DataError(f"empty {self.kind} name; every name needs one character at least")
        if pc.count_distinct(self._names).as_py() != len(self._names):
            twice = first_repeated(self._names)
            raise DataError(f"{self.kind} name {twice!r} occurs twice; names must be unique")


@dataclass(frozen=True)
class Vocabulary:
    """The entity names and the relation names of a graph; inverses are not named here."""

    entities: NameTable
    relations: NameTable

    def __post_init__(self) -> None:
        marked = next((name for name in self.relations if name.startswith("^")), None)
        if marked is not None:
            raise DataError(
                f"relation name {marked!r} starts with '^', which marks an inverse",
                hint="leave inverse triples out, or rename the relation",
            )

    @property
    def num_relations(self) -> int:
        """How many relation ids there are, inverses counted."""
        return 2 * len(self.relations)

    def relation_name(self, relation_id: int) -> str:
        """The name of a relation id, `^name` for an inverse."""
        return directed(self.relations.name(relation_id >> 1), relation_id)

    def relation_label(self, relation_id: int) -> str:
        """The readable label of a relation id, `^label` for an inverse."""
        return directed(self.relations.label(relation_id >> 1), relation_id)

    def relation_title(self, relation_id: int) -> str:
        """The label of a relation id, with its name where others have that label too."""
        return directed(self.relations.title(relation_id >> 1), relation_id)

    def relation_id(self, text: str) -> int:
        """The id of `name` or `^name`; a unique label does as well as a name."""
        inverse = text.startswith("^")
        return 2 * self.relations.id_of(text[inverse:]) + inverse


def directed(text: str, relation_id: int) -> str:
    """What a relation is called, with `^` before it where the id is that of its inverse."""
    return f"^{text}" if relation_id & 1 else text


def check_vocabulary(vocabulary: object) -> None:
    """Raise ConfigError unless this is a vocabulary; a graph is easily given in its place."""
    if not isinstance(vocabulary, Vocabulary):
        raise ConfigError(
            f"names are looked up in a {type(vocabulary).__name__}; it must be a graph's "
            "vocabulary, as graph.vocabulary gives it",
            key="vocabulary",
        )


def _meaningful(labels: pa.Array, names: pa.Array) -> pa.Array | None:
    """The labels with null in place of blank ones and of those that repeat the name."""
    if len(labels) != len(names):
        return labels
    blank = pc.equal(pc.utf8_trim_whitespace(labels), "")
    idle = pc.fill_null(pc.or_(blank, pc.equal(labels, names)), True)
    if pc.all(idle).as_py():
        return None
    return pc.if_else(idle, pa.scalar(None, pa.large_string()), labels)


def _spellings(text: str) -> tuple[str, ...]:
    """A text as it is, composed and decomposed, each once: é as one sign, or as e and an accent.

    They read the same, but a file may have one of them and a question typed by hand another.
    """
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    return tuple(dict.fromkeys((text, composed, decomposed)))


def _without_accents(texts: pa.Array) -> pa.Array:
    """The texts without accents; letters with no accent to take off, such as ø, stay."""
    decomposed = pc.utf8_normalize(texts, "NFD")
    return pc.replace_substring_regex(decomposed, r"\p{Mn}", "")


def _places(mask: pa.Array) -> NDArray[np.int64]:
    """Where a mask of Arrow's is true."""
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _lower(text: str) -> str:
    """Lower case by Arrow's rules, which the index was made with (Python's differ on ς and İ).

    Arrow takes no lone surrogates, which is what undecodable bytes of a command line become, and
    no name holds any: they read as the sign for what cannot be read.
    """
    readable = text.encode(errors="surrogatepass").decode(errors="replace")
    return str(pc.utf8_lower(pa.scalar(readable)).as_py())
