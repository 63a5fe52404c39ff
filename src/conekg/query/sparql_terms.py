"""Terms of SPARQL: IRIs, prefixed names and strings as entities and relations.

Imports rdflib; `sparql` imports it only where that extra is installed.
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
from conekg.query.tokens import NameKind, Span, look_up

_ESCAPE = re.compile(r"\\(.)")  # of a sign in a prefixed name
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SUPPORTED = (
    "supported: triples, the paths / ^ |, UNION, MINUS, VALUES of one variable, "
    "and FILTER with NOT EXISTS, EXISTS, =, !=, IN and NOT IN"
)


class Terms:
    """Resolves what the nodes of rdflib's parse tree stand for."""

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
        """The full IRI of a node that is one, its prefix or base resolved."""
        if isinstance(node, URIRef):
            return _resolved(self._base, str(node))
        if getattr(node, "name", None) != "pname":
            raise self.unsupported(spoken(node), self.source.keyword("WHERE"))
        prefix = str(node.prefix or "")
        if prefix not in self._prefixes:
            raise self.source.error(
                f"prefix '{prefix}:' is not declared",
                self.source.sign(rf"\b{re.escape(prefix)}:"),
                hint=f"add PREFIX {prefix}: <...> before SELECT",
            )
        return self._prefixes[prefix] + _ESCAPE.sub(r"\1", str(node.localname or ""))

    def entity_id(self, node: Any) -> int:
        """The entity an IRI names, or a string by its name or unique label."""
        if not is_literal(node):
            return self._named("entity", node)
        name = str(node if isinstance(node, Literal) else node.string)
        return look_up(
            "entity", self._vocabulary, name, self.source.text, lambda: self.source.literal(name)
        )

    def relation_id(self, node: Any) -> int:
        """The relation that an IRI names."""
        return 2 * self._named("relation", node)

    def _named(self, kind: NameKind, node: Any) -> int:
        """The id of what an IRI names."""
        name = name_of_iri(self.iri(node))
        return look_up(kind, self._vocabulary, name, self.source.text, lambda: self.span_of(node))

    def span_of(self, node: Any) -> Span:
        """Where a node that is an IRI is written."""
        place = self.order.place(node)
        if isinstance(node, URIRef):
            return self.source.full_iri(str(node), place)
        return self.source.prefixed_name(f"{node.prefix or ''}:{node.localname or ''}", place)

    def keyword(self, word: str, node: Any) -> Span:
        """Where the keyword that makes a node stands."""
        return self.source.keyword(word, self.order.place(node))

    def unsupported(self, construct: str, span: Span) -> QuerySyntaxError:
        """The complaint that a construct is outside of what can be answered."""
        return self.source.error(f"SPARQL's {construct} is not supported", span, hint=_SUPPORTED)


def _resolved(base: str, iri: str) -> str:
    """An IRI as it counts from a base; what is absolute stays as it is written."""
    if not base or _SCHEME.match(iri):
        return iri
    # An empty fragment, as namespaces end in, is not for `urljoin`.
    return urljoin(base, iri).removesuffix("#") + "#" * iri.endswith("#")


def is_variable(node: Any) -> bool:
    """Whether a term is a variable, named or blank."""
    return isinstance(node, VariableName | BNode)


def is_literal(node: Any) -> bool:
    """Whether a term is a string or number."""
    return isinstance(node, Literal) or getattr(node, "name", None) == "literal"


def spoken(node: Any) -> str:
    """What to call a construct in a message."""
    name = getattr(node, "name", None)
    match name:
        case "RelationalExpression":
            return f"'{node.op}'"
        case "AdditiveExpression" | "MultiplicativeExpression" | "UnaryMinus" | "UnaryPlus":
            return "arithmetic"
        case "Function":
            return "a function call"
        case str():
            return name.removeprefix("Builtin_").removesuffix("Expression")
    return f"'?{node}' alone" if is_variable(node) else f"the value '{node}'"
