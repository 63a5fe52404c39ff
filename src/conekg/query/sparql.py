"""Parses SPARQL queries `SELECT ?x WHERE { ... }` whose pattern is tree-shaped.

rdflib's grammar reads the text (extra `rdf`). Its algebra is not used because it drops filters
nested in NOT EXISTS. `sparql_pattern` turns the pattern into a first-order formula, and
`formula_tree` turns that into a query. Supported are basic graph patterns, the paths `/ ^ |`,
UNION, MINUS, FILTER with (NOT) EXISTS, `=`, `!=` and (NOT) IN, VALUES of one variable,
`?x rdfs:label "France"`, and `?x a owl:Thing`, which is true for every entity.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec, module_from_spec
from typing import Any

from conekg.errors import ConeKGError, QueryTooLargeError
from conekg.graph.vocabulary import Vocabulary
from conekg.query.formula_tree import Exists, TreeBuilder
from conekg.query.sparql_source import SparqlSource
from conekg.query.tokens import check_depth
from conekg.query.tree import Query

SAFE_NESTING = 16
"""The levels of braces, brackets and parentheses that can always be read, in any mixture."""

# Unsupported parts of a SELECT besides its pattern: attribute of the parse tree, keyword, remedy.
_MODIFIERS = (
    ("datasetClause", "FROM", "there is one graph; leave the clause out"),
    ("groupby", "GROUP BY", "answers are a set of entities; group them afterwards"),
    ("having", "HAVING", "answers are a set of entities; filter them afterwards"),
    ("orderby", "ORDER BY", "answers come ranked; leave the clause out"),
    (
        "limitoffset",
        "LIMIT",
        "top_k is the number of answers (`conekg ask --top-k`); leave the clause out",
    ),
)


_UPDATE = re.compile(r"(\s|\#[^\n]*\n)*(?P<verb>INSERT|DELETE)\b", re.IGNORECASE)


def parse_sparql(text: str, vocabulary: Vocabulary, *, max_depth: int) -> Query:
    """The tree of a SPARQL query that selects one variable."""
    source = SparqlSource(text)
    check_depth(source.nesting(), max_depth)
    prologue, select = _read(source)
    # These modules import rdflib; `_read` has just checked that it is installed.
    from conekg.query.sparql_pattern import PatternReader, Scope
    from conekg.query.sparql_terms import Terms

    name = _selected(select, source)
    reader = PatternReader(Terms(source, vocabulary, prologue, select))
    scope = Scope(target=name)
    pattern = reader.read_group(select.where, scope)
    if select.valuesClause:
        pattern = pattern.joined(reader.read_values(select.valuesClause, scope))
    target = scope.known.get(name)
    if target is None or target not in pattern.certain:
        raise source.error(
            f"variable '?{name}' is selected but not bound by every solution",
            source.sign(rf"[?$]{name}\b"),
            hint=f"'?{name} a owl:Thing' binds it to every entity",
        )
    body = reader.conjunction(pattern, source.keyword("WHERE"))
    others = tuple(variable for variable in scope.created if variable != target)
    formula = Exists(others, body, body.span) if others else body
    return TreeBuilder(text, max_depth).build(target, formula)


def _read(source: SparqlSource) -> tuple[Any, Any]:
    """The prologue and the query of rdflib's parse tree."""
    update = _UPDATE.match(source.text)
    if update is not None:
        raise source.error(
            f"SPARQL's {update['verb'].upper()} is not supported",
            update.span("verb"),
            hint="facts are asked for here, not changed; write SELECT ?x WHERE { ... }",
        )
    try:
        from pyparsing import ParseBaseException

        grammar = _grammar()
    except ImportError as error:
        raise ConeKGError(
            "reading SPARQL needs rdflib, which is not installed",
            hint="pip install 'conekg[rdf]'",
        ) from error
    # rdflib's own `parseQuery` would read \u followed by more than four digits as \U with eight.
    text, positions = source.unescaped()
    try:
        prologue, query = grammar.parse_string(text, parse_all=True)
    except ParseBaseException as error:
        start = positions[min(error.loc, len(text))]
        raise source.error(
            "this SPARQL cannot be read; the mistake is in the part that begins",
            (start, min(start + 1, len(source.text))),
            hint="check braces, quotes, the '?' of variables, the ':' before names, the dots "
            "between triples and the keywords",
        ) from None
    except RecursionError:
        raise QueryTooLargeError(
            f"this SPARQL nests braces, brackets and parentheses {source.nesting()} levels deep, "
            f"too many for its grammar; {SAFE_NESTING} are always read",
            hint="leave out those that group nothing, or write the query as a path",
        ) from None
    return prologue, query


@cache
def _grammar() -> Any:
    """rdflib's grammar of queries, with two changes.

    The original reads each triple nested in the one before, so that some eighty triples overflow
    Python's stack; here they are read one after the other. The original also tries some sixty
    functions before a name or a variable; here functions come last, which is faster and gives the
    same result. The changes are made to a copy of the module, because other users of rdflib in
    this process share the original.
    """
    from pyparsing import Optional, Suppress, ZeroOrMore, rest_of_line

    specification = find_spec("rdflib.plugins.sparql.parser")
    assert specification is not None
    assert specification.loader is not None
    parser: Any = module_from_spec(specification)
    specification.loader.exec_module(parser)
    triple = parser.ParamList("triples", parser.TriplesSameSubjectPath)
    block = triple + ZeroOrMore(Suppress(".") + triple) + Optional(Suppress("."))
    parser.TriplesBlock <<= block.ignore("#" + rest_of_line)
    functions_last = (
        parser.BrackettedExpression,
        parser.iriOrFunction,
        parser.RDFLiteral,
        parser.NumericLiteral,
        parser.BooleanLiteral,
        parser.Var,
        parser.BuiltInCall,
    )
    parser.PrimaryExpression.exprs[:] = functions_last
    return parser.Query


def _selected(query: Any, source: SparqlSource) -> str:
    """The name of the one variable that a query selects; `QuerySyntaxError` for anything else."""
    if query.name != "SelectQuery":
        form = query.name.removesuffix("Query").upper()
        raise source.error(
            f"SPARQL's {form} is not supported",
            source.keyword(form),
            hint="write SELECT ?x WHERE { ... }",
        )
    for attribute, keyword, hint in _MODIFIERS:
        if getattr(query, attribute):
            if attribute == "limitoffset" and query.limitoffset.limit is None:
                keyword = "OFFSET"
            raise source.error(
                f"SPARQL's {keyword} is not supported", source.keyword(keyword), hint=hint
            )
    projection = query.projection or []
    if len(projection) != 1 or projection[0].var is None:
        asked = "*" if not projection else f"{len(projection)} variables"
        if any(item.var is None for item in projection):
            asked = "an expression"
        raise source.error(
            f"this query selects {asked}; exactly one variable can be asked for",
            source.keyword("SELECT"),
            hint="write SELECT ?x WHERE { ... }",
        )
    return str(projection[0].var)
