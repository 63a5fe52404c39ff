"""Reads RDF files of any common notation into three columns of names, with their labels.

Triples between resources become edges. A triple whose object is a literal gives a label, or an
edge if its relation is one of those whose literals are kept, or is counted as left out. All named
graphs are merged. Needs the extra `rdf` (pyoxigraph).
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

from conekg.errors import ConeKGError, DataError
from conekg.graph.packed_file import bare_suffix, open_bytes
from conekg.graph.text_file import BYTE_ORDER_MARK

FORMATS = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
}
"""Endings of RDF files, with pyoxigraph's name for each notation."""

LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
"""Relations whose literals are labels, in order of preference."""

_WIKIDATA = "http://www.wikidata.org/"
"""In Wikidata a relation is `prop/direct/P57` or similar, but its label is that of `entity/P57`."""

_REIFIES = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"
"""The relation from the name of a triple to the triple itself (RDF-star)."""

_BASE = "file:///"
"""The base of relative IRIs. It has no file name, so that the files of one graph agree on them."""

_RANDOM_NAME = re.compile("_:[a-f][0-9a-f]{23,31}")
"""Names that the parser gives to nodes without a name, such as Turtle's `[ ... ]`. They are random
and so differ each time that a file is read."""


@dataclass(frozen=True)
class RdfOptions:
    """What is read of a file, beside the triples between resources."""

    language: str = "en"
    """The preferred language of labels, as a tag such as `de` or `pt-BR`; `de` includes `de-AT`."""
    literals: tuple[str, ...] = ()
    """Relations whose literals are kept as entities, by IRI or by the last part of their IRI."""

    def keeps(self, relation: str) -> bool:
        """Whether the literals of a relation are kept."""
        kept = self.literals
        return bool(kept) and (relation in kept or local_part(relation) in kept)

    def language_rank(self, tag: str) -> int:
        """How far a label with this language tag is from the one preferred: 0 is the best.

        The preferred language is followed by labels without a language, then by English.
        """
        tag, wanted = tag.lower(), self.language.lower()
        if _is_of_language(tag, wanted):
            return 0
        if not tag:
            return 1
        return 2 if _is_of_language(tag, "en") else 3


def _is_of_language(tag: str, language: str) -> bool:
    return tag == language or tag.startswith(f"{language}-")


@dataclass
class RdfColumns:
    """The content of an RDF file: edges in file order, labels, and what was left out."""

    columns: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    """Heads, relations and tails. IRIs have no brackets; a blank node is `_:name`, and one without
    a name gets a number."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels by name: the literal of one of `LABELS`, preferably in the language of the options;
    otherwise the last part of the IRI."""
    languages: set[str] = field(default_factory=set)
    """The language tags of all labels in the file, in lower case."""
    kept: dict[str, set[str]] = field(default_factory=dict)
    """The literals that became entities, by relation. An entity's name is the text of the literal,
    whatever its language or type."""
    literals: Counter[str] = field(default_factory=Counter)
    """How many triples of each relation were left out because their object is a literal."""
    statements: set[str] = field(default_factory=set)
    """Names of triples that other triples are about, such as annotations (RDF-star)."""
    num_about_statements: int = 0
    """How many triples were left out because they are about other triples."""


def read_rdf(path: Path, options: RdfOptions | None = None) -> RdfColumns:
    """The edges and labels of a file, compressed or not, whose ending is one of `FORMATS`.

    Raises `DataError` where the file cannot be read, with the line of a syntax error.
    """
    ending = bare_suffix(path)
    content = _parsed(path, FORMATS[ending], options or RdfOptions())
    if content.statements:
        _drop_statements(content)
    if ending not in (".nt", ".nq"):  # in these two notations every node has a name
        content = _with_numbered_nodes(content)
    _label_relations(content)
    _label_by_local_parts(content)
    return content


def _parsed(path: Path, format_name: str, options: RdfOptions) -> RdfColumns:
    """The edges of a file and the labels it states; `DataError` where it cannot be read."""
    oxigraph = _oxigraph()
    notation = getattr(oxigraph.RdfFormat, format_name)
    content = RdfColumns()
    label_ranks: dict[str, tuple[int, int]] = {}
    try:
        with open_bytes(path) as file:
            is_marked = file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK
        with open_bytes(path) as file:  # opened again: not every compressed stream can seek back
            if is_marked:
                file.read(len(BYTE_ORDER_MARK))
            for triple in oxigraph.parse(file, format=notation, base_iri=_BASE):
                _add_triple(triple, content, options, label_ranks, oxigraph)
    except SyntaxError as error:
        hints = (
            ("remote context", "copy the @context into the file; none is downloaded"),
            ("Invalid UTF-8", "convert the file to UTF-8"),
        )
        raise DataError(
            f"RDF syntax: {error.msg}",
            path=str(path),
            line=error.lineno,
            hint=next((hint for phrase, hint in hints if phrase in error.msg), None),
        ) from error
    except ValueError as error:
        raise DataError(f"cannot be read as RDF: {error}", path=str(path)) from error
    return content


def _label_relations(content: RdfColumns) -> None:
    """Give Wikidata's relations, which have no labels of their own, those of their entities."""
    for relation in set(content.columns[1]):
        if relation.startswith(f"{_WIKIDATA}prop/") and relation not in content.labels:
            label = content.labels.get(f"{_WIKIDATA}entity/{local_part(relation)}")
            if label is not None:
                content.labels[relation] = label


def _label_by_local_parts(content: RdfColumns) -> None:
    """Give names without a label the last part of their IRI; literals have none."""
    literals = set().union(*content.kept.values())
    for names in content.columns:
        for name in names:
            if name in content.labels or name in literals:
                continue
            if (local := local_part(name)) != name:
                content.labels[name] = local


def _drop_statements(content: RdfColumns) -> None:
    """Remove edges from or to the name of a triple: triples are not entities."""
    heads, _, tails = content.columns
    kept = [
        head not in content.statements and tail not in content.statements
        for head, tail in zip(heads, tails, strict=True)
    ]
    content.num_about_statements += kept.count(False)
    for column in content.columns:
        column[:] = compress(column, kept)


def local_part(iri: str) -> str:
    """The part of an IRI after its last `#` or `/`; the whole IRI if that part would be empty.

    A blank node's name is returned as it is.

    >>> local_part("http://example.org/film#director")
    'director'
    """
    if iri.startswith("_:"):
        return iri
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2] or iri


def _with_numbered_nodes(content: RdfColumns) -> RdfColumns:
    """The content with nodes that have no name of their own numbered in file order.

    Reading a file twice then gives the same graph. The new names include a digest of the file's
    other names, so that nodes of two different files do not get the same name.
    """
    names = dict.fromkeys(name for triple in zip(*content.columns, strict=True) for name in triple)
    random_names = [name for name in names if _RANDOM_NAME.fullmatch(name)]
    if not random_names:
        return content
    digest = 0
    for name in (name for column in content.columns for name in column):
        digest = zlib.crc32(b"" if _RANDOM_NAME.fullmatch(name) else name.encode(), digest)
    new_names = {name: f"_:anon{n}-{digest:08x}" for n, name in enumerate(random_names, start=1)}
    heads, relations, tails = (
        [new_names.get(name, name) for name in column] for column in content.columns
    )
    labels = {new_names.get(name, name): label for name, label in content.labels.items()}
    return replace(content, columns=(heads, relations, tails), labels=labels)


def _add_triple(
    triple: Any,
    content: RdfColumns,
    options: RdfOptions,
    label_ranks: dict[str, tuple[int, int]],
    oxigraph: Any,
) -> None:
    """Add one parsed triple to `content`: as an edge, a label, or one more that is left out.

    `label_ranks` has the rank of each label so far; a label of a lower rank replaces it.
    """
    head = _name(triple.subject)
    relation = triple.predicate.value
    if isinstance(triple.object, oxigraph.Triple):
        if relation == _REIFIES:
            content.statements.add(head)
        content.num_about_statements += 1
        return
    if not isinstance(triple.object, oxigraph.Literal):
        _add_edge(content, head, relation, _name(triple.object))
        return
    text = triple.object.value
    is_blank = not text.strip()  # a blank text is neither a label nor a name
    is_kept = options.keeps(relation) and not is_blank
    if is_kept:
        _add_edge(content, head, relation, text)
        content.kept.setdefault(relation, set()).add(text)
    if relation in LABELS and not is_blank:
        tag = (triple.object.language or "").lower()
        content.languages.add(tag)
        # Of equally good labels the first in the file is taken.
        rank = options.language_rank(tag), LABELS.index(relation)
        if head not in label_ranks or rank < label_ranks[head]:
            label_ranks[head] = rank
            content.labels[head] = text
    elif relation not in LABELS and not is_kept:
        content.literals[relation] += 1


def _add_edge(content: RdfColumns, head: str, relation: str, tail: str) -> None:
    for column, name in zip(content.columns, (head, relation, tail), strict=True):
        column.append(name)


def _name(term: Any) -> str:
    return f"_:{term.value}" if type(term).__name__ == "BlankNode" else str(term.value)


def _oxigraph() -> Any:
    try:
        import pyoxigraph
    except ImportError as error:
        raise ConeKGError(
            "reading RDF needs pyoxigraph, which is not installed",
            hint="pip install 'conekg[rdf]'",
        ) from error
    return pyoxigraph
