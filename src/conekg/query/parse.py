"""Parses query text: detects the notation, and reads the path algebra itself.

Formulas and SPARQL are left to `formula` and `sparql`. The path algebra is written in the order
in which data flows: start at an entity, follow relations with `.`, combine sets with `!`, `&`
and `|`.

    union        = intersection { "|" intersection } ;
    intersection = complement { "&" complement } ;
    complement   = "!" complement | path ;
    path         = start { "." step } ;
    start        = name | "*" | "(" union ")" ;
    step         = [ "^" ] name ;
    name         = bare | quoted ;

`.` binds tightest, then `!`, then `&`, then `|`: `!a.r & b | c` is `((!(a.r)) & b) | c`.
`*` is the set of all entities, `^r` is the inverse of r. A bare name consists of letters, digits
and `_ - / : # @ $ % + ~` and does not begin with a colon; all other names are written between
double or single quotes, in which a backslash escapes quotes and backslashes.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from conekg.errors import ConeKGError, ConfigError, QuerySyntaxError
from conekg.graph.vocabulary import NameTable, Vocabulary, check_vocabulary
from conekg.query.formula import read_formula
from conekg.query.shape import STRUCTURES, Shape, shape_of, slots_of
from conekg.query.sparql import parse_sparql
from conekg.query.token_stream import TokenStream
from conekg.query.tokens import Token, as_written, check_depth, check_text, is_word, quote
from conekg.query.tree import Anchor, Not, Project, Query, Universe, all_of, any_of, depth

MAX_LENGTH = 10_000
"""The default for the most characters of a query."""

MAX_DEPTH = 64
"""The default for the most levels of nesting of a query."""

DEPTH_LIMIT = 128
"""The highest `max_depth` that is accepted: the parsers are recursive and use Python's stack."""

# How a SPARQL query begins, after comments. An entity may have the name of a SPARQL keyword, and
# names may contain `:` and `$`, so each alternative is a text that no path can begin with. The last
# two lines find SPARQL that has a mistake: outside of quotes, a path has no brace and no `<`.
_SPARQL = re.compile(
    r"""(\s | \#[^\n]*\n)*+
        ( (SELECT|DESCRIBE) (\s*+ [?*] | \s++ \$) | SELECT \s*+ \(
        | SELECT \s++ (DISTINCT|REDUCED) \s*+ [?$*(] | DESCRIBE \s++ (\w[\w.-]*+)?+ :
        | (PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE|INSERT|DELETE)
          (\s*+ [{<] | \s++ (?! [.&|∧∨]) [^"'{<]*+ [{<]) )""",
    re.IGNORECASE | re.VERBOSE,
)

# Three words or more without an operator between them, which no path and no formula has.
_SENTENCE = re.compile(r"\w[\w'’-]*+(?:[,;]?+\s++\w[\w'’-]*+){2,}+\s*+[.?!]?+")


def parse_query(
    text: str,
    vocabulary: Vocabulary,
    *,
    max_length: int = MAX_LENGTH,
    max_depth: int = MAX_DEPTH,
) -> Query:
    """The tree of a query in any notation: path algebra, first-order formula or SPARQL.

    A formula is recognised by the variable that it begins with (`?x: ...`), SPARQL by its keyword.
    Raises `QuerySyntaxError` or `UnknownNameError`, with the place of the mistake;
    `QueryTooLargeError` if the text or its tree exceeds the limits; and `ConeKGError` if the query
    is SPARQL and rdflib is not installed.

    >>> from conekg.graph.vocabulary import NameTable
    >>> names = Vocabulary(NameTable("entity", ["France"]), NameTable("relation", ["borders"]))
    >>> parse_query("!France.^borders", names)
    Not(operand=Project(operand=Anchor(entity_id=0), relation_id=1))
    >>> parse_query("?x: !borders(?x, France)", names) == _
    True
    """
    if not isinstance(text, str):
        raise ConfigError(
            f"the query is {text!r}; it must be text, such as 'France.borders'", key="text"
        )
    check_vocabulary(vocabulary)
    if max_depth > DEPTH_LIMIT:
        raise ConfigError(
            f"max_depth is {max_depth}; at most {DEPTH_LIMIT} is supported", key="max_depth"
        )
    check_text(text, max_length)
    if _SPARQL.match(text):
        query = parse_sparql(text, vocabulary, max_depth=max_depth)
    else:
        _refuse_sentence(text, vocabulary)
        stream = TokenStream(text, vocabulary, max_depth=max_depth)
        is_formula = stream.next.kind == "variable"
        query = read_formula(stream) if is_formula else _PathReader(stream).read()
    check_depth(depth(query), max_depth)
    return query


def parse_shape(text: str) -> Shape:
    """The shape with a name from the literature, or written in the path algebra with `e` and `r`.

    Raises `ConfigError` if `text` is neither.

    >>> parse_shape("2in") == parse_shape("e.r & !e.r")
    True
    """
    name = text.strip()
    if name in STRUCTURES:
        return STRUCTURES[name]
    letters = Vocabulary(NameTable("entity", ["e"]), NameTable("relation", ["r"]))
    try:
        query = parse_query(name, letters)
    except ConeKGError as error:
        raise ConfigError(
            f"{name!r} is no shape; the named shapes are {', '.join(STRUCTURES)}, and others are "
            "written with e for an entity and r for a relation, as in (e.r & !e.r).r",
            key="shape",
            suggestions=tuple(get_close_matches(name, STRUCTURES)),
        ) from error
    if any(slots_of(query)[1]):  # an odd id: an inverse
        raise ConfigError(
            f"the shape {name!r} has a '^'; leave it out, since relations are drawn in both "
            "directions alike",
            key="shape",
        )
    return shape_of(query)


def _refuse_sentence(text: str, vocabulary: Vocabulary) -> None:
    """Raise `QuerySyntaxError` for a sentence in plain language or a long name without quotes."""
    words = text.strip()
    if not _SENTENCE.fullmatch(words):
        return
    start = text.index(words)
    message = "questions are asked in a notation, not in a sentence"
    hint = (
        "write an entity and the relations to follow, ENTITY.RELATION, with '&', '|' and '!' "
        "for and, or and not; a name of several words needs quotes"
    )
    if vocabulary.entities.knows(words):
        message, hint = "this name needs quotes", f"write {quote(words)}"
    raise QuerySyntaxError(message, text=text, span=(start, start + len(words)), hint=hint)


class _PathReader:
    """Recursive descent over the grammar above, one method per rule."""

    def __init__(self, stream: TokenStream) -> None:
        self._stream = stream

    def read(self) -> Query:
        query = self._union()
        self._stream.expect("end", "'.', '&', '|' or the end of the query")
        return query

    def _union(self) -> Query:
        operands = [self._intersection()]
        while self._stream.accept("|"):
            operands.append(self._intersection())
        return any_of(operands)

    def _intersection(self) -> Query:
        operands = [self._complement()]
        while self._stream.accept("&"):
            operands.append(self._complement())
        return all_of(operands)

    def _complement(self) -> Query:
        if not self._stream.accept("!"):
            return self._path()
        self._stream.enter()
        operand = self._complement()
        self._stream.leave()
        return Not(operand)

    def _path(self) -> Query:
        query = self._start()
        steps = 0
        while self._stream.accept("."):
            steps += 1
            check_depth(steps, self._stream.max_depth)  # before looking up thousands of names
            query = Project(query, self._stream.take_relation())
        return query

    def _start(self) -> Query:
        stream = self._stream
        match stream.next.kind:
            case "name" | "quoted":
                token = stream.take()
                self._refuse_atom(token)
                return Anchor(stream.look_up("entity", token, _as_formula(token.text)))
            case "*":
                stream.take()
                return Universe()
            case "(":
                stream.take()
                stream.enter()
                query = self._union()
                stream.expect(")", "'.', '&', '|' or ')'")
                stream.leave()
                return query
            case _:
                raise stream.surprise("an entity, '*', '!' or '('")

    def _refuse_atom(self, token: Token) -> None:
        """Raise an error if `token` begins a formula that lacks `?x:`: an atom, or 'exists'."""
        following = self._stream.next
        if token.text == "exists":
            begins = following.kind in ("name", "variable")
        else:
            # The parenthesis first: the other checks would be slow for a query of many entities.
            begins = following.kind == "(" and (
                self._stream.is_relation(token) or self._stream.has("variable")
            )
        if begins:
            rest = "(..." if following.kind == "(" else " ..."
            raise self._stream.error(
                "a formula begins with the variable to find",
                token.span,
                hint=f"write ?x: {as_written(token.text)}{rest}",
            )


def _as_formula(name: str) -> str | None:
    """The remedy for a formula that begins with `x:` instead of `?x:`; None for other names."""
    variable = name.removesuffix(":")
    return f"a formula begins with ?{variable}:" if is_word(variable) and name != variable else None
