"""Resolves the terms of SPARQL (IRIs, prefixed names, strings) to entities and relations.

This module imports rdflib, so `sparql` imports it only after checking that rdflib is installed.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

from rdflib.term import BNode, Literal, URIRef
from rdflib.term import Variable as VariableName

from conekg.errors import QuerySyntaxError
from conekg.graph.vocabulary import Vocabulary
from conekg.query.iri import NAMESPACE, name_of_iri
from conekg.query.sparql_source import Order, SparqlSource
from conekg.query.token_stream import NameKind, look_up
from conekg.query.tokens import Span

_ESCAPE = re.compile(r"\\(.)")  # an escaped character in a prefixed name
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SUPPORTED = (
    "supported: triples, the paths / ^ |, UNION, MINUS, VALUES of one variable, "
    "and FILTER with NOT EXISTS, EXISTS, =, !=, IN and NOT IN"
)


class Terms:
    """Resolves nodes of rdflib's parse tree to IRIs, ids and positions in the text."""

    def __init__(
        self, source: SparqlSource, vocabulary: Vocabulary, prologue: Any, query: Any
    ) -> None:
        self.source = source
        self.order = Order(query)
        self._vocabulary = vocabulary
        self._base = ""
        self._prefixes = {
            "": NAMESPACE,
            "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
            "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
            "owl": "http://www.w3.org/2002/07/owl#",
        }
        for declaration in prologue:
            iri = _resolved(self._base, str(declaration.iri))
            if declaration.name == "Base":
                self._base = iri
            else:
                self._prefixes[str(declaration.prefix or "")] = iri

    def iri(self, node: Any) -> str:
        """The full IRI of an IRI or prefixed name, with its prefix or base resolved."""
        if isinstance(node, URIRef):
            return _resolved(self._base, str(node))
        prefix = str(node.prefix or "")
        if prefix not in self._prefixes:
            raise self.source.error(
                f"prefix '{prefix}:' is not declared",
                self.source.sign(rf"\b{re.escape(prefix)}:"),
                hint=f"add PREFIX {prefix}: <...> before SELECT",
            )
        return self._prefixes[prefix] + _ESCAPE.sub(r"\1", str(node.localname or ""))

    def entity_id(self, node: Any) -> int:
        """The entity that an IRI names, or whose name or unique label a string is."""
        if not is_literal(node):
            return self._named("entity", node)
        name = str(node if isinstance(node, Literal) else node.string)
        return look_up(
            "entity", self._vocabulary, name, self.source.text, lambda: self.source.literal(name)
        )

    def relation_id(self, node: Any) -> int:
        """The id of the (forward) relation that an IRI names."""
        return 2 * self._named("relation", node)

    def _named(self, kind: NameKind, node: Any) -> int:
        """The number of the entity or relation that an IRI names."""
        name = name_of_iri(self.iri(node))
        return look_up(kind, self._vocabulary, name, self.source.text, lambda: self.span_of(node))

    def span_of(self, node: Any) -> Span:
        """The range of the text in which an IRI or prefixed name is written."""
        place = self.order.place(node)
        if isinstance(node, URIRef):
            return self.source.full_iri(str(node), place)
        return self.source.prefixed_name(f"{node.prefix or ''}:{node.localname or ''}", place)

    def keyword(self, word: str, node: Any) -> Span:
        """The range of the keyword that a node belongs to."""
        return self.source.keyword(word, self.order.place(node))

    def unsupported(self, construct: str, span: Span) -> QuerySyntaxError:
        """The error for a construct that is not supported."""
        return self.source.error(f"SPARQL's {construct} is not supported", span, hint=_SUPPORTED)


def _resolved(base: str, iri: str) -> str:
    """An IRI resolved against a base; an absolute IRI is returned as it is."""
    if not base or _SCHEME.match(iri):
        return iri
    # `urljoin` drops an empty fragment, but many namespaces end in "#".
    return urljoin(base, iri).removesuffix("#") + "#" * iri.endswith("#")


def is_variable(node: Any) -> bool:
    """Whether a term is a variable or a blank node, which SPARQL treats like a variable."""
    return isinstance(node, VariableName | BNode)


def is_name(node: Any) -> bool:
    """Whether a term is an IRI, a prefixed name, a string or a number: what can name an entity."""
    return isinstance(node, URIRef) or getattr(node, "name", None) == "pname" or is_literal(node)


def is_literal(node: Any) -> bool:
    """Whether a term is a string or number."""
    return isinstance(node, Literal) or getattr(node, "name", None) == "literal"


def describe_node(node: Any) -> str:
    """How messages name a node of the parse tree."""
    name = getattr(node, "name", None)
    match name:
        case "RelationalExpression":
            return f"'{node.op}'"
        case "AdditiveExpression" | "MultiplicativeExpression" | "UnaryMinus" | "UnaryPlus":
            return "arithmetic"
        case "Function":
            return "a function call"
        case "pname":
            return f"the value '{node.prefix or ''}:{node.localname or ''}'"
        case "literal":
            return f"the value '{node.string}'"
        case str():
            return name.removeprefix("Builtin_").removesuffix("Expression")
    return f"'?{node}' alone" if is_variable(node) else f"the value '{node}'"
