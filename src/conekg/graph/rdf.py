"""RDF in: a file of any common notation as three columns of names, with their labels.

Only edges between resources are kept; a triple whose object is a literal is a label or
is counted as left out. Named graphs are read as one. Needs the extra `rdf` (pyoxigraph).
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
"""Endings of RDF files, and what pyoxigraph calls their notation."""

LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
"""Relations that say what something is called, the most telling first."""

_WIKIDATA = "http://www.wikidata.org/"
"""Where a relation is `prop/direct/P57` or the like, and its label is that of `entity/P57`."""

_REIFIES = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies"
"""What leads from the name of a triple to the triple."""

_BASE = "file:///"
"""What relative IRIs count from: without a file's name, so that files of one graph agree."""

_DRAWN = re.compile("_:[a-f][0-9a-f]{23,31}")
"""What the parser calls nodes without a name, such as Turtle's `[ ... ]`: drawn anew each time."""


@dataclass
class RdfColumns:
    """What an RDF file says: edges in file order, and labels."""

    columns: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    """Heads, relations and tails: IRIs without brackets, blank nodes as `_:name`, those without a
    name numbered."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels by name: one of `LABELS`, in English or in no language if it can be, otherwise the
    end of the IRI."""
    literals: Counter[str] = field(default_factory=Counter)
    """How many triples of each relation were left out because their object is a literal."""
    statements: set[str] = field(default_factory=set)
    """Names of triples that others speak of, as annotations do (RDF-star)."""
    num_about_statements: int = 0
    """How many triples were left out because they speak of others."""


def read_rdf(path: Path) -> RdfColumns:
    """The edges and labels of a file, packed or not, whose notation its ending tells."""
    oxigraph = _oxigraph()
    ending = bare_suffix(path)
    notation = getattr(oxigraph.RdfFormat, FORMATS[ending])
    found = RdfColumns()
    ranks: dict[str, tuple[int, int]] = {}
    try:
        with open_bytes(path) as file:
            is_marked = file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK
        with open_bytes(path) as file:  # again: not all that is packed can be wound back
            if is_marked:
                file.read(len(BYTE_ORDER_MARK))
            for triple in oxigraph.parse(file, format=notation, base_iri=_BASE):
                _take(triple, found, ranks, oxigraph)
    except SyntaxError as error:
        hints = (
            ("remote context", "copy the @context into the file; none is downloaded"),
            ("Invalid UTF-8", "convert the file to UTF-8"),
        )
        raise DataError(
            f"RDF syntax: {error.msg}",
            path=str(path),
            line=error.lineno,
            hint=next((hint for sign, hint in hints if sign in error.msg), None),
        ) from error
    except ValueError as error:
        raise DataError(f"cannot be read as RDF: {error}", path=str(path)) from error
    if found.statements:
        _drop_statements(found)
    if ending not in (".nt", ".nq"):  # there every node has a name
        found = _numbered(found)
    for relation in set(found.columns[1]):
        if relation.startswith(f"{_WIKIDATA}prop/") and relation not in found.labels:
            described = found.labels.get(f"{_WIKIDATA}entity/{local_part(relation)}")
            if described is not None:
                found.labels[relation] = described
    for names in found.columns:
        for name in names:
            if name not in found.labels and (local := local_part(name)) != name:
                found.labels[name] = local
    return found


def _drop_statements(found: RdfColumns) -> None:
    """Leave out what is said of triples, which are no entities."""
    kept = [head not in found.statements for head in found.columns[0]]
    kept = [
        keep and tail not in found.statements
        for keep, tail in zip(kept, found.columns[2], strict=True)
    ]
    found.num_about_statements += kept.count(False)
    for column in found.columns:
        column[:] = compress(column, kept)


def local_part(iri: str) -> str:
    """What follows the last `#` or `/` of an IRI; the whole where nothing does.

    >>> local_part("http://example.org/film#director")
    'director'
    """
    if iri.startswith("_:"):
        return iri
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2] or iri


def _numbered(found: RdfColumns) -> RdfColumns:
    """The same with nodes that have no name of their own numbered in the order of the file.

    The file always gives the same graph then. A digest of its other names keeps the nodes of
    two files apart.
    """
    names = dict.fromkeys(name for triple in zip(*found.columns, strict=True) for name in triple)
    drawn = [name for name in names if _DRAWN.fullmatch(name)]
    if not drawn:
        return found
    digest = 0
    for name in (name for column in found.columns for name in column):
        digest = zlib.crc32(b"" if _DRAWN.fullmatch(name) else name.encode(), digest)
    numbers = {name: f"_:anon{n}-{digest:08x}" for n, name in enumerate(drawn, start=1)}
    heads, relations, tails = (
        [numbers.get(name, name) for name in column] for column in found.columns
    )
    labels = {numbers.get(name, name): label for name, label in found.labels.items()}
    return replace(found, columns=(heads, relations, tails), labels=labels)


def _take(triple: Any, found: RdfColumns, ranks: dict[str, tuple[int, int]], oxigraph: Any) -> None:
    """Sort one triple into edges, labels and the count of literals."""
    head = _name(triple.subject)
    if isinstance(triple.object, oxigraph.Triple):
        if triple.predicate.value == _REIFIES:
            found.statements.add(head)
        found.num_about_statements += 1
        return
    if not isinstance(triple.object, oxigraph.Literal):
        for column, name in zip(
            found.columns, (head, triple.predicate.value, _name(triple.object)), strict=True
        ):
            column.append(name)
        return
    if triple.predicate.value not in LABELS:
        found.literals[triple.predicate.value] += 1
        return
    if not triple.object.value.strip():  # what tells nothing is no label
        return
    language = (triple.object.language or "").lower()
    # English first, then no language, then whichever comes first.
    spoken = 0 if language.split("-")[0] == "en" else 1 if not language else 2
    rank = spoken, LABELS.index(triple.predicate.value)
    if head not in ranks or rank < ranks[head]:
        ranks[head] = rank
        found.labels[head] = triple.object.value


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
