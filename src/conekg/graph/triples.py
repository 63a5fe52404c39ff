"""Readers of triple files: TSV and CSV (also compressed), Parquet, and RDF by way of `rdf`.

A file becomes a `TripleTable`: three columns of names. Each distinct name is stored once, in a
dictionary, so that ten million lines fit in little memory. Numbering and splitting are left to
`assemble`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from conekg.errors import DataError
from conekg.graph.packed_file import PACKED, bare_suffix, open_stream, packing_of
from conekg.graph.place import check_name
from conekg.graph.rdf import FORMATS, RdfColumns, RdfOptions, local_part, read_rdf
from conekg.graph.text_file import (
    DELIMITERS,
    QuoteWatch,
    fields_of,
    line_of_row,
    lines_of,
)
from conekg.lines import counted

COLUMNS = ("head", "relation", "tail")
HEADERS = (COLUMNS, ("source", "relation", "target"), ("subject", "predicate", "object"))
"""First lines that are read as a header and not as a triple, in upper or lower case. Mixtures such
as subject, relation and object are headers too, in any order and among other columns."""

_HEADER_WORDS = tuple(dict.fromkeys(words) for words in zip(*HEADERS, strict=True))
"""For each of the three columns, the names that a header may give it."""

PARQUET_SUFFIXES = (".parquet", ".pq")
SUFFIXES = (*DELIMITERS, *PARQUET_SUFFIXES, *FORMATS)
"""Endings of files that hold triples; except for Parquet's, those of `PACKED` may follow them."""

_BLOCK_BYTES = 8 << 20
"""The size of the blocks that Arrow reads text in; a line must fit in one."""
_MAX_RELATIONS_SHOWN = 3
"""The most relations that the note on literals names."""
_MAX_LANGUAGES_SHOWN = 8
"""The most languages that the note on a language without labels names."""

Columns: TypeAlias = tuple[pa.DictionaryArray, pa.DictionaryArray, pa.DictionaryArray]


@dataclass(frozen=True)
class TripleTable:
    """The triples of one file, as names, in file order."""

    path: Path
    columns: Columns
    """Heads, relations and tails, each with one dictionary of large strings."""
    line_of: Callable[[int], int | None] = lambda _: None
    """The line number of a row in the file; `None` if the format has no lines."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Readable labels by name, if the file has any."""
    names_columns: bool = False
    """Whether the file itself says which columns are heads, relations and tails."""
    notes: tuple[str, ...] = ()
    """Notes for the user on what was left out or may be a mistake."""
    unmatched: Mapping[str, str] | None = None
    """By option, notes on those that match nothing in the file; None if its format has none."""

    def __len__(self) -> int:
        return len(self.columns[0])


def read_triples(path: str | Path, rdf: RdfOptions | None = None) -> TripleTable:
    """The triples of a file; the ending of its name says the format. `rdf` is for RDF alone.

    Raises `DataError`, with the line if there is one, unless the whole file can be read.
    """
    path = Path(path)
    check_name(path)
    if not path.is_file():
        problem = "is not a file" if path.exists() else "no such file"
        raise DataError(problem, path=str(path))
    suffix = bare_suffix(path)
    if suffix in DELIMITERS:
        return _read_text(path, DELIMITERS[suffix])
    if suffix in PARQUET_SUFFIXES:
        if packing_of(path) is not None:
            raise DataError(
                "Parquet is not read from compressed files",
                path=str(path),
                hint="decompress it; Parquet compresses its columns itself",
            )
        return _read_parquet(path)
    if suffix in FORMATS:
        return _read_rdf(path, rdf or RdfOptions())
    raise DataError(
        f"files ending in {suffix!r} are not read" if suffix else "its name has no ending",
        path=str(path),
        hint=f"accepted endings: {', '.join(SUFFIXES)}; text and RDF also compressed, with "
        f"{', '.join(PACKED)} after it",
    )


def _read_rdf(path: Path, options: RdfOptions) -> TripleTable:
    rdf = read_rdf(path, options)
    columns = tuple(pa.array(names, pa.large_string()).dictionary_encode() for names in rdf.columns)
    notes = _literal_notes(path, rdf.literals)
    if rdf.num_about_statements:
        number = rdf.num_about_statements
        what = "triple" if number == 1 else "triples"
        notes += (f"{path}: {number:,} {what} about other triples left out",)
    return _checked(
        TripleTable(
            path,
            columns,
            labels=rdf.labels,
            names_columns=True,
            notes=notes,
            unmatched=_unmatched(path, rdf, options),
        )
    )


def _unmatched(path: Path, rdf: RdfColumns, options: RdfOptions) -> dict[str, str]:
    """By option, notes on those that match nothing in the file."""
    found = rdf.kept.keys() | set(map(local_part, rdf.kept))
    notes = {
        f"literals {relation}": f"{path}: no triple with a literal of {relation!r}, whose literals "
        "were to be kept"
        for relation in options.literals
        if relation not in found
    }
    if options.language != RdfOptions.language and not any(
        options.language_rank(tag) == 0 for tag in rdf.languages
    ):
        tags = ", ".join(sorted(filter(None, rdf.languages))[:_MAX_LANGUAGES_SHOWN])
        notes["language"] = (
            f"{path}: no label in the language {options.language!r}; there are labels in "
            f"{tags or 'no language'}"
        )
    return notes


def _literal_notes(path: Path, literals: Counter[str]) -> tuple[str, ...]:
    """A note on the relations whose objects are dates, numbers or texts and not entities."""
    if not literals:
        return ()
    relations = [name for name, _ in literals.most_common(_MAX_RELATIONS_SHOWN)]
    more = len(literals) - len(relations)
    shown = ", ".join(relations) + (f" and {more:,} more relations" if more else "")
    return (
        f"{path}: {counted(literals.total(), 'triple')} with a literal left out, of {shown}; "
        "`conekg graph build --literals RELATION` keeps those of a relation as entities",
    )


@dataclass(frozen=True)
class _Layout:
    """Which columns of a text file hold the triples."""

    header_line: int = 0
    """The line number of the header; 0 if the first line is a triple."""
    width: int = len(COLUMNS)
    """The number of columns."""
    places: tuple[int, ...] = (0, 1, 2)
    """The indices of the columns of heads, relations and tails."""
    others: tuple[str, ...] = ()
    """The names of the other columns, which are ignored."""


def _read_text(path: Path, delimiter: str) -> TripleTable:
    layout = _layout(path, delimiter)
    watch = QuoteWatch()
    try:
        table = _text_columns(path, delimiter, layout, watch)
    except (pa.ArrowInvalid, OSError) as error:
        raise _fault(path, delimiter, layout, str(error)) from error
    heads, relations, tails = (table[str(place)] for place in layout.places)
    columns = (heads, relations, tails)
    if any(pc.any(pc.equal(column.dictionary, "")).as_py() for column in columns):
        raise _fault(path, delimiter, layout, "it has an empty field")
    if delimiter == "," and (watch.suspicious or any(map(_may_be_misquoted, table.values()))):
        for _ in fields_of(path, delimiter, layout.width, layout.places):
            pass  # raises at the first line that is misquoted
    return _checked(
        TripleTable(
            path,
            columns,
            line_of=lambda row: line_of_row(path, row + bool(layout.header_line)),
            names_columns=bool(layout.header_line),
            notes=_text_notes(path, delimiter, columns, layout) if len(heads) else (),
        )
    )


def _text_columns(
    path: Path, delimiter: str, layout: _Layout, watch: QuoteWatch
) -> dict[str, pa.DictionaryArray]:
    """The columns of a text file, by index as text.

    Of a tab-separated file only the three columns of the triples are read. Of a CSV file every
    column is read, and `watch` sees every block: an open quote in any column hides later lines.
    """
    every = [str(place) for place in range(layout.width)]
    has_quotes = delimiter == ","
    wanted = every if has_quotes else [every[place] for place in layout.places]

    def watched(block: pa.Buffer) -> pa.Buffer:
        watch.look(block.to_pybytes())
        return block

    with open_stream(path) as stream:
        table = pyarrow.csv.read_csv(
            pa.TransformInputStream(stream, watched) if has_quotes else stream,
            read_options=pyarrow.csv.ReadOptions(
                column_names=every, skip_rows=layout.header_line, block_size=_BLOCK_BYTES
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, quote_char='"' if has_quotes else False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.large_string())),
            ),
        )
    watch.look(b"\n")  # the last line may lack a line end
    return {place: _one_dictionary(table[place]) for place in wanted}


def _may_be_misquoted(column: pa.DictionaryArray) -> bool:
    """Whether a name has a line end, or a quote after a space, which Arrow accepts silently."""
    return bool(pc.any(pc.match_substring_regex(column.dictionary, r'[\r\n]|^\s+"')).as_py())


def _layout(path: Path, delimiter: str) -> _Layout:
    """The layout that the first line gives if it is a header, otherwise three columns."""
    for number, fields in fields_of(path, delimiter, None):
        words = _header_words(fields)
        places = _named_columns(words)
        if places is None and all(any(word in words for word in own) for own in _HEADER_WORDS):
            twice = next(word for own in _HEADER_WORDS for word in own if words.count(word) > 1)
            raise DataError(
                f"two columns are called {twice!r}",
                path=str(path),
                line=number,
                hint="call one of them something else, or leave it out",
            )
        if places is None:
            return _Layout()
        others = [name for place, name in enumerate(fields) if place not in places]
        return _Layout(number, len(fields), places, tuple(others))
    raise DataError("the file is empty; a line is `head relation tail`", path=str(path))


def _header_words(fields: list[str]) -> list[str]:
    """The names of a line's fields in lower case, as header words are compared."""
    words = [name.strip().lower() for name in fields]
    words[0] = words[0].removeprefix("#").strip()  # some programs put "#" before a header
    return words


def _named_columns(words: list[str]) -> tuple[int, ...] | None:
    """The indices of head, relation and tail in a header; `None` if the line is not a header."""
    for header in (*HEADERS, *product(*_HEADER_WORDS)):
        if all(words.count(word) == 1 for word in header):
            return tuple(words.index(word) for word in header)
    return None


def _text_notes(path: Path, delimiter: str, columns: Columns, layout: _Layout) -> tuple[str, ...]:
    """Notes on what may be a mistake in a text file, although it can be read."""
    notes = []
    if layout.others:
        notes.append(_unread_note(path, layout.others))
    if not layout.header_line and _stands_alone(columns):
        first = " ".join(repr(column[0].as_py()) for column in columns)
        notes.append(
            f"{path}: the first line, {first}, is taken for a fact, though none of its names "
            "occurs again: if it is a header, remove it"
        )
    if delimiter == "\t":
        names = [column.dictionary for column in columns]
        in_quotes = [each.filter(pc.match_substring_regex(each, '^".*"$')) for each in names]
        quoted = pa.concat_arrays(in_quotes).unique()
        if len(quoted):
            notes.append(
                f"{path}: {counted(len(quoted), 'name')} in quotes, such as "
                f"{quoted[0].as_py()!r}: in tab-separated files quotes are part of the name"
            )
    return tuple(notes)


def _unread_note(path: Path, columns: Sequence[str]) -> str:
    """A note that names the columns of a file that are ignored."""
    names = ", ".join(repr(name) if name else "one without a name" for name in columns)
    return f"{path}: column{'' if len(columns) == 1 else 's'} left out: {names}"


def _stands_alone(columns: Columns) -> bool:
    """Whether the first triple shares no name with the others, so that it may be a header.

    Always false for a file whose relations do not recur: there a real triple may stand alone too.
    """
    heads, relations, tails = columns
    if len(relations) <= 2 * len(relations.dictionary):
        return False
    once = all(
        pc.sum(pc.equal(column.indices, column.indices[0])).as_py() == 1 for column in columns
    )
    elsewhere = ((heads, tails), (tails, heads))
    return once and not any(
        pc.is_in(column[0], value_set=other.dictionary).as_py() for column, other in elsewhere
    )


def _fault(path: Path, delimiter: str, layout: _Layout, otherwise: str) -> DataError:
    """The error for the first bad line of a file; `otherwise` is the message if none is found."""
    try:
        for _ in fields_of(path, delimiter, layout.width, layout.places):
            pass
    except DataError as error:
        return error
    for number, line in lines_of(path):
        if len(line) > _BLOCK_BYTES:
            return DataError(
                f"has {len(line):,} bytes; a line may have {_BLOCK_BYTES:,}",
                path=str(path),
                line=number,
                hint="is a line end missing?",
            )
    return DataError(f"cannot be read as triples: {otherwise}", path=str(path))


_WHOLE_ROWS = "every row names head, relation and tail; leave out those that do not"


def _read_parquet(path: Path) -> TripleTable:
    try:
        file = pyarrow.parquet.ParquetFile(path)
        names = _parquet_columns(path, file.schema_arrow)
        twice = next((name for name in names if file.schema_arrow.names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"two columns are called {twice!r}", path=str(path))
        table = file.read(columns=names)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"cannot be read as Parquet: {error}",
            path=str(path),
            hint="is it complete, and Parquet as its name says?",
        ) from error
    columns = []
    for name in names:
        try:
            texts = _as_names(table[name])
        except pa.ArrowException as error:
            raise DataError(
                f"column {name!r} holds {table[name].type}, which cannot be read as names: {error}",
                path=str(path),
                hint="accepted: text in UTF-8, and numbers",
            ) from error
        if texts.null_count:
            row = pc.index(texts.is_null(), True).as_py()
            raise DataError(
                f"column {name!r} is null in row {row + 1}", path=str(path), hint=_WHOLE_ROWS
            )
        if (row := pc.index(texts, "").as_py()) >= 0:
            raise DataError(
                f"column {name!r} is empty in row {row + 1}", path=str(path), hint=_WHOLE_ROWS
            )
        columns.append(_one_dictionary(texts.dictionary_encode()))
    others = [name for name in file.schema_arrow.names if name not in names]
    notes = (_unread_note(path, others),) if others else ()
    known = [name.lower() in words for name, words in zip(names, _HEADER_WORDS, strict=True)]
    if not any(known):
        told = ", ".join(map(repr, names))
        notes = (f"{path}: columns {told} are taken for head, relation and tail",)
    return _checked(TripleTable(path, tuple(columns), names_columns=all(known), notes=notes))


def _as_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values as text; a column of floats without fractions is written as integers.

    Programs such as pandas store a column of ids with missing values as floats, and a missing
    value may then be NaN, which becomes null here.
    """
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        with suppress(pa.ArrowInvalid):  # raised if some values have fractions
            column = column.cast(pa.int64())
    # Cast chunk by chunk: more than 2 GiB of strings with 32-bit offsets cannot be one array.
    return column.cast(pa.large_string())


def _parquet_columns(path: Path, schema: pa.Schema) -> list[str]:
    """The names of the columns of heads, relations and tails: by their names, or the only three."""
    by_lower = {name.lower(): name for name in schema.names}
    # Mixtures come last: beside head, relation and tail, a further column may be called "source".
    for header in (*HEADERS, *product(*_HEADER_WORDS)):
        if all(name in by_lower for name in header):
            return [by_lower[name] for name in header]
    if len(schema.names) == len(COLUMNS) and not _is_misplaced(schema.names):
        return list(schema.names)
    raise DataError(
        f"columns {schema.names} found; expected: head, relation and tail, or three columns "
        "in this order",
        path=str(path),
    )


def _is_misplaced(names: list[str]) -> bool:
    """Whether one of three columns has a name that belongs to another, such as tail, r, head."""
    return any(
        name.lower() in words
        for place, name in enumerate(names)
        for other, words in enumerate(_HEADER_WORDS)
        if other != place
    )


def _one_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The chunks as one array; each chunk was read with its own dictionary, these are unified."""
    combined = column.unify_dictionaries().combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _checked(table: TripleTable) -> TripleTable:
    """The table; `DataError` if it is empty or a relation's name starts with `^`."""
    if not len(table):
        hint = "; ".join(table.notes) or None
        raise DataError("no triples in the file", path=str(table.path), hint=hint)
    reserved = [n for n in table.columns[1].dictionary.to_pylist() if n.startswith("^")]
    if reserved:
        relations = table.columns[1]
        row = relations.indices.to_pylist().index(
            relations.dictionary.to_pylist().index(reserved[0])
        )
        raise DataError(
            f"relation {reserved[0]!r} starts with '^', which marks an inverse",
            path=str(table.path),
            line=table.line_of(row),
            hint="leave inverse triples out, they are added; or rename the relation",
        )
    return table
