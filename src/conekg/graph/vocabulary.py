"""Names and ids of entities and relations: look-up in both directions, search, suggestions.

Names are stored in Arrow string arrays and looked up in one sorted index. Both can be
memory-mapped, so that a table of millions of names opens at once, without a Python object per
name. Relation ids come in pairs: 2k is the k-th named relation, 2k+1 its inverse, written `^name`.
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
from conekg.graph.text_array import as_texts, first_repeated, true_indices

PLURALS = {"entity": "entities", "relation": "relations"}
"""The plural of each kind of name, as in the command `conekg graph entities`."""
RECENT_NAMES = 1 << 16
"""The size of two caches, of names by id and ids by name; a look-up in the index takes ten to a
hundred times as long."""

_skip_suggestions = ContextVar("_skip_suggestions", default=False)


@contextmanager
def without_suggestions() -> Iterator[None]:
    """Inside the block, errors for unknown names have no suggestions.

    Finding names that are close takes long among millions.
    """
    token = _skip_suggestions.set(True)
    try:
        yield
    finally:
        _skip_suggestions.reset(token)


@dataclass(frozen=True)
class NameIndex:
    """Every name and label in lower case, sorted, with the id it belongs to."""

    texts: pa.Array
    """[entries] large strings in byte order, which for UTF-8 is the order of code points."""
    ids: pa.Array
    """[entries] int32; an id has one entry for its name, and one for its label if that differs."""

    def range_of(self, text: str, *, prefix: bool = False) -> range:
        """The entries equal to `text`, or with `prefix` those that start with it.

        `text` must be in lower case.
        """
        start = self._first(text.encode())
        # UTF-8 never contains the byte 0xff, so this sorts after every text that starts so.
        stop = self._first(text.encode() + (b"\xff" if prefix else b"\0"))
        return range(start, stop)

    def accented_like(self, text: str, *, prefix: bool = False) -> list[int]:
        """The entries with accents which, without their accents, contain `text`.

        With `prefix`, those that start with `text`. `text` must be in lower case. If it has accents
        itself the result is empty, since then entries without them are not meant.
        """
        if _without_accents(pa.array([text]))[0].as_py() != text:
            return []
        entries, texts = self._accented
        match = pc.starts_with if prefix else pc.match_substring
        matching: list[int] = entries[true_indices(match(texts, text))].tolist()
        return matching

    @cached_property
    def _accented(self) -> tuple[NDArray[np.int64], pa.Array]:
        """The entries that have accents, and their texts without accents."""
        entries = true_indices(pc.invert(pc.string_is_ascii(self.texts)))
        texts = self.texts.take(pa.array(entries))
        plain = _without_accents(texts)
        differ = pc.not_equal(plain, texts)
        return entries[true_indices(differ)], plain.filter(differ)

    def _first(self, text: bytes) -> int:
        """The first entry that does not sort before `text`; the number of entries if all do."""
        entries = range(len(self.texts))
        return bisect_left(entries, text, key=lambda i: self.texts[i].as_buffer().to_pybytes())


class NameTable:
    """An immutable list of distinct names; a name's id is its index, and it may have a label.

    `labels` holds `None` or a blank text where an id has no label. Raises `DataError` where a name
    is empty or occurs twice, or there are not as many labels as names; the names of a table with
    a given `index` are not checked again.
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
        self._recent_ids: dict[str, int] = {}
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
        """All labels in id order, as Arrow large strings; the name for an id without a label."""
        return self._names if self._labels is None else pc.coalesce(self._labels, self._names)

    @property
    def own_labels(self) -> pa.Array | None:
        """The labels that differ from the names, null for other ids; `None` if there are none."""
        return self._labels

    @cached_property
    def index(self) -> NameIndex:
        """The sorted index of names and labels; built on first use unless it was given."""
        texts, ids = self._names, pa.array(np.arange(len(self), dtype=np.int32))
        if self._labels is not None:
            labelled = self._labels.is_valid()
            texts = pa.concat_arrays([texts, self._labels.filter(labelled)])
            ids = pa.concat_arrays([ids, ids.filter(labelled)])
        texts = pc.utf8_lower(texts)
        order = pc.sort_indices(texts)
        return NameIndex(texts.take(order), ids.take(order))

    def name(self, index: int) -> str:
        """The unique name of an id; `UnknownNameError` if the table has no such id."""
        name = self._recent_names.get(index)
        if name is None:
            self._check(index)
            name = str(self._names[index].as_py())
            if len(self._recent_names) >= RECENT_NAMES:
                self._recent_names.clear()
            self._recent_names[index] = name
        return name

    def remember_names(self) -> None:
        """Fill the caches with every name and id, if the table has fewer than `RECENT_NAMES`.

        For servers, where the slow first look-up of a name would delay a reply.
        """
        if len(self) < RECENT_NAMES:
            names = self._names.to_pylist()
            self._recent_names = dict(enumerate(names))
            self._recent_ids = {name: index for index, name in enumerate(names)}

    def label(self, index: int) -> str:
        """The readable label of an id; its name if it has no label."""
        if self._labels is None:
            return self.name(index)
        self._check(index)
        label = self._labels[index].as_py()
        return self.name(index) if label is None else str(label)

    def _check(self, index: int) -> None:
        """Raise unless `index` is an id of this table; Arrow counts negative ones backwards."""
        if not 0 <= index < len(self):
            raise UnknownNameError(
                f"{self.kind} number",
                str(index),
                hint=f"there are {len(self)}, numbered from 0; is the query of another graph?",
            )

    def title(self, index: int) -> str:
        """The label of an id, followed by its name if another id has that label or name too.

        >>> NameTable("entity", ["Q1", "Q2"], ["Jane Doe", "Jane Doe"]).title(1)
        'Jane Doe (Q2)'
        """
        label, name = self.label(index), self.name(index)
        if label == name:
            return name
        others = (i for i in self._spelled_like(label) if i != index)
        shared = any(label in (self.label(i), self.name(i)) for i in others)
        return f"{label} ({name})" if shared else label

    def find(self, text: str) -> int | None:
        """The id whose name is exactly `text`; `None` if there is none."""
        return next((i for i in self._spelled_like(text) if self.name(i) == text), None)

    def knows(self, text: str) -> bool:
        """Whether `text` is exactly the name or the label of some id."""
        return any(text in (self.name(i), self.label(i)) for i in self._spelled_like(text))

    def id_of(self, text: str) -> int:
        """The id of a name, or of a label that only one id has; upper and lower case matter.

        An accented letter may be written as one character or as a letter and a combining accent.
        Raises `UnknownNameError`, with suggestions, if no id or several ids match.

        >>> NameTable("entity", ["/m/0f8l9c"], ["France"]).id_of("France")
        0
        """
        index = self._recent_ids.get(text)
        if index is None:
            index = self._look_up(text)
            if len(self._recent_ids) >= RECENT_NAMES:
                self._recent_ids.clear()
            self._recent_ids[text] = index
        return index

    def _look_up(self, text: str) -> int:
        """The same as `id_of`, without the cache."""
        for spelling in _spellings(text):
            candidates = self._spelled_like(spelling)
            for index in candidates:
                if self.name(index) == spelling:
                    return index
            labelled = [index for index in candidates if self.label(index) == spelling]
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
        close = () if _skip_suggestions.get() else self.suggest(text)
        raise UnknownNameError(
            self.kind, text, suggestions=close, where_to_look=self._where_to_look()
        )

    def suggest(self, text: str, limit: int = 3) -> tuple[str, ...]:
        """At most `limit` names or labels similar to `text`, best first.

        First come the long forms of an acronym, names one keystroke away, names that have `text`
        as a word, and names within a small edit distance. If there are none: names that start
        with `text`; else those that contain it, shortest first, if it has three letters; else
        those that share most of its beginning.
        """
        folded = _lower(text)
        near = nearest(folded, self.index.texts, 4 * limit)
        # "Spielberg" is two keystrokes from "Heidelberg", and a name of Steven's.
        slips = [entry for entry, keystrokes in near.items() if keystrokes <= 1]
        longer = with_word(folded, self.index.texts)[:limit] if len(folded) >= 3 else []
        entries = [*spelled_out(text, self.index.texts), *slips, *longer, *near]
        if not entries and folded:
            entries = list(self.index.range_of(folded, prefix=True)[: 4 * limit])
        if not entries and len(folded) >= 3:
            entries = true_indices(pc.match_substring(self.index.texts, folded)).tolist()
            entries += self.index.accented_like(folded)
            entries = sorted(entries, key=lambda entry: len(self.index.texts[entry].as_py()))
        if not entries:
            entries = list(self._beginning_alike(folded)[: 4 * limit])
        written = (self._as_written(entry) for entry in entries[: 4 * limit])
        return tuple(dict.fromkeys(written))[:limit]

    def _beginning_alike(self, folded: str) -> range:
        """The index entries that share the longest beginning with `folded`: director, directed.

        The shared beginning has at least five characters and two thirds of the text.
        """
        for end in range(len(folded) - 1, max(4, (2 * len(folded) - 1) // 3), -1):
            if found := self.index.range_of(folded[:end], prefix=True):
                return found
        return range(0)

    def with_prefix(self, prefix: str, limit: int = 10) -> tuple[int, ...]:
        """At most `limit` ids whose name or label starts with `prefix`, in alphabetical order.

        Upper and lower case do not matter. If `prefix` has no accents, names with accents match
        too and come last.
        """
        ids: dict[int, None] = {}  # a set that keeps its order
        for entry in self._beginning_with(prefix) if limit > 0 else ():
            ids[self.index.ids[entry].as_py()] = None
            if len(ids) == limit:
                break
        return tuple(ids)

    def _beginning_with(self, prefix: str) -> Iterator[int]:
        """Index entries that begin with `prefix`; those with accents last, as that is slow."""
        for spelling in _spellings(prefix):
            yield from self.index.range_of(_lower(spelling), prefix=True)
        yield from self.index.accented_like(_lower(prefix), prefix=True)

    def containing(self, text: str) -> tuple[int, ...]:
        """Ids whose name or label contains `text`, in id order.

        Upper and lower case do not matter. If `text` has no accents, names with accents match too.
        """
        entries = [
            true_indices(pc.match_substring(self.index.texts, _lower(spelling)))
            for spelling in _spellings(text)
        ]
        entries.append(np.array(self.index.accented_like(_lower(text)), dtype=np.int64))
        ids = self.index.ids.to_numpy()[np.concatenate(entries)]
        return tuple(np.unique(ids).tolist())

    def _spelled_like(self, text: str) -> list[int]:
        """Ids whose name or label equals `text` in lower case, ascending, each once."""
        entries = self.index.range_of(_lower(text))
        return sorted({self.index.ids[entry].as_py() for entry in entries})

    def _as_written(self, entry: int) -> str:
        """The text to suggest for an index entry, in its own case.

        This is the label if the entry is one and no other id has it, otherwise the name.
        """
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
    """The entity names and relation names of a graph; inverse relations have no own entry."""

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
        """How many relation ids there are, inverses included."""
        return 2 * len(self.relations)

    def relation_name(self, relation_id: int) -> str:
        """The name of a relation id, `^name` for an inverse."""
        return directed(self.relations.name(relation_id >> 1), relation_id)

    def relation_label(self, relation_id: int) -> str:
        """The readable label of a relation id, `^label` for an inverse."""
        return directed(self.relations.label(relation_id >> 1), relation_id)

    def relation_title(self, relation_id: int) -> str:
        """The label of a relation id, followed by its name if another relation has that label."""
        return directed(self.relations.title(relation_id >> 1), relation_id)

    def relation_id(self, text: str) -> int:
        """The id of `name` or `^name`; a label that only one relation has works like a name."""
        inverse = text.startswith("^")
        return 2 * self.relations.id_of(text[inverse:]) + inverse


def directed(text: str, relation_id: int) -> str:
    """A relation's name or label `text`, with `^` before it if `relation_id` is an inverse."""
    return f"^{text}" if relation_id & 1 else text


def check_vocabulary(vocabulary: object) -> None:
    """Raise ConfigError unless this is a `Vocabulary`; callers easily pass a graph instead."""
    if not isinstance(vocabulary, Vocabulary):
        raise ConfigError(
            f"names are looked up in a {type(vocabulary).__name__}; it must be a graph's "
            "vocabulary, as graph.vocabulary gives it",
            key="vocabulary",
        )


def _meaningful(labels: pa.Array, names: pa.Array) -> pa.Array | None:
    """The labels with null for blank ones and those that repeat the name; `None` if none is left.

    Labels of the wrong number are returned as they are, for the caller to refuse.
    """
    if len(labels) != len(names):
        return labels
    blank = pc.equal(pc.utf8_trim_whitespace(labels), "")
    useless = pc.fill_null(pc.or_(blank, pc.equal(labels, names)), True)
    if pc.all(useless).as_py():
        return None
    return pc.if_else(useless, pa.scalar(None, pa.large_string()), labels)


def _spellings(text: str) -> tuple[str, ...]:
    """A text as it is, in Unicode form NFC and in form NFD, without repetitions.

    These look the same (é as one character, or as e and a combining accent), but a file may use
    one form and a keyboard the other.
    """
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    return tuple(dict.fromkeys((text, composed, decomposed)))


def _without_accents(texts: pa.Array) -> pa.Array:
    """The texts without accents; a letter such as ø, which has no separate accent, stays."""
    decomposed = pc.utf8_normalize(texts, "NFD")
    return pc.replace_substring_regex(decomposed, r"\p{Mn}", "")


def _lower(text: str) -> str:
    """Lower case by Arrow's rules, which the index was built with (Python's differ on ς and İ).

    Arrow refuses lone surrogates, which undecodable bytes of a command line become. No name
    contains one, so they are replaced by U+FFFD, the replacement character.
    """
    readable = text.encode(errors="surrogatepass").decode(errors="replace")
    return str(pc.utf8_lower(pa.scalar(readable)).as_py())
