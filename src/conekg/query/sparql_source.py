"""Finds the positions of keywords, variables and names in a SPARQL text, for error messages.

rdflib's parser does not report positions. So constructs are searched for again in the text,
outside of strings, IRIs and comments. If the same thing occurs several times, `Order` says which
occurrence a node of the parse tree is, since the tree is in the order of the text.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from conekg.errors import QuerySyntaxError
from conekg.query.tokens import Span

_HIDDEN = re.compile(
    r"""  "{3}.*?"{3} | '{3}.*?'{3}
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
        | <[^\x00-\x20<>"{}|\\^`]*>
        | \#[^\n]* """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


class SparqlSource:
    """A SPARQL text to search in.

    Methods return the range of characters that is searched for, or the whole text if it is not
    found. With `place` n, the occurrence after the first n is meant.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = _HIDDEN.sub(_blank, text)
        self._spans: dict[tuple[re.Pattern[str], str], list[Span]] = {}

    def keyword(self, word: str, place: int = 0) -> Span:
        """The range of a keyword."""
        spaced = re.escape(word).replace(r"\ ", r"\s+")
        # Do not match a variable or a part of a prefixed name with the same letters.
        pattern = re.compile(rf"(?<![\w?$:-]){spaced}(?![\w:-])", re.IGNORECASE)
        return self._find(pattern, place, self._bare) or self._whole

    def sign(self, pattern: str, place: int = 0) -> Span:
        """The range that a regular expression matches outside of strings, IRIs and comments."""
        return self._find(re.compile(pattern), place, self._bare) or self._whole

    def variable(self, name: str) -> Span:
        """The range of a variable's first use in the pattern."""
        where = self._bare.find("{")  # skip the SELECT clause
        match = re.compile(rf"[?$]{re.escape(name)}\b").search(self._bare, max(where, 0))
        return match.span() if match else self._whole

    def prefixed_name(self, written: str, place: int) -> Span:
        """The range of a name with a prefix."""
        return self.sign(rf"(?<![\w:]){re.escape(written)}(?![\w%-])", place)

    def full_iri(self, written: str, place: int) -> Span:
        """The range of an IRI in angle brackets; if not found, of what the grammar read as the IRI.

        That is the empty list `()` for rdf:nil, otherwise the keyword `a`.
        """
        span = self._find(re.compile(re.escape(f"<{written}>")), place, self.text)
        is_nil = written == "http://www.w3.org/1999/02/22-rdf-syntax-ns#nil"
        return span or self.sign(r"\(\s*\)" if is_nil else r"(?<![\w?$:-])a(?![\w:-])", place)

    def literal(self, value: str) -> Span:
        """The range of a string's or a number's first occurrence."""
        for mark in ('"', "'"):
            start = self.text.find(f"{mark}{value}{mark}")
            if start >= 0:
                return start, start + len(value) + 2
        return self.sign(rf"(?<![\w:?$.]){re.escape(value)}(?!\w)")

    def nesting(self) -> int:
        """The number of levels that braces, brackets and parentheses are nested."""
        depth = deepest = 0
        for character in self._bare:
            depth += (character in "{([") - (character in "})]")
            deepest = max(deepest, depth)
        return deepest

    def unescaped(self) -> tuple[str, list[int]]:
        r"""The text with `\uXXXX` and `\UXXXXXXXX` replaced, and where each character came from.

        SPARQL replaces these escapes everywhere, before it parses the text. The positions have one
        more entry, for the end of the text.
        """
        text = ""
        positions: list[int] = []
        done = 0
        for escape in _ESCAPE.finditer(self.text):
            code = int(escape[1] or escape[2], 16)
            if code > sys.maxunicode or 0xD800 <= code < 0xE000:
                raise self.error(
                    "this escape stands for no Unicode character",
                    escape.span(),
                    hint="escapes end at \\U0010FFFF, and \\uD800 to \\uDFFF are not characters",
                )
            text += self.text[done : escape.start()] + chr(code)
            positions += range(done, escape.start() + 1)
            done = escape.end()
        return text + self.text[done:], [*positions, *range(done, len(self.text) + 1)]

    def error(self, message: str, span: Span, *, hint: str | None = None) -> QuerySyntaxError:
        """An error about a range of this text."""
        return QuerySyntaxError(message, text=self.text, span=span, hint=hint)

    @property
    def _whole(self) -> Span:
        return 0, len(self.text)

    def _find(self, pattern: re.Pattern[str], place: int, text: str) -> Span | None:
        """The match of a pattern after the first `place`, or the first match; None without a match.

        All matches are cached, because long queries repeat their names.
        """
        if (pattern, text) not in self._spans:
            self._spans[pattern, text] = [match.span() for match in pattern.finditer(text)]
        spans = self._spans[pattern, text]
        return spans[place if place < len(spans) else 0] if spans else None


def _blank(hidden: re.Match[str]) -> str:
    """A string, IRI or comment replaced by as many blanks, so that positions stay the same.

    An IRI keeps its brackets and gets underscores, because a path operator is recognised by the
    character before it.
    """
    text = hidden.group()
    return f"<{'_' * (len(text) - 2)}>" if text.startswith("<") else " " * len(text)


class Order:
    """For each node of a parse tree, how many similar nodes come before it in the text.

    Nodes are similar if they have the same keyword or the same written name.
    """

    def __init__(self, tree: Any) -> None:
        self._places: dict[int, int] = {}
        self._seen: Counter[Hashable] = Counter()
        self._tree = tree  # keeps the nodes alive, since `_places` is keyed by their id()
        self._visit(tree)

    def place(self, node: Any) -> int:
        """The number of similar nodes before this one; 0 if the node is not known."""
        return self._places.get(id(node), 0)

    def _visit(self, node: Any) -> None:
        if id(node) in self._places:
            return  # with `;` and `,` the same node object occurs in several triples
        if isinstance(node, str):
            self._count(node, str(node))
        elif isinstance(node, dict):
            name = str(getattr(node, "name", ""))
            branches = node["graph"] if name == "GroupOrUnionGraphPattern" else ()
            if branches:
                self._visit(branches[0])  # the first branch comes before the first UNION
            keyword = "Builtin_EXISTS" if name == "Builtin_NOTEXISTS" else name
            kind = (keyword, *(str(node[key]) if key in node else "" for key in _KIND_KEYS))
            self._count(node, kind, len(branches) - 1 if branches else 1)
            for child in node.values():
                self._visit(child)
        elif isinstance(node, Iterable):
            for child in node:
                self._visit(child)

    def _count(self, node: Any, kind: Hashable, amount: int = 1) -> None:
        self._places[id(node)] = self._seen[kind]
        self._seen[kind] += amount


_KIND_KEYS = ("prefix", "localname", "mod")
"""Fields that distinguish names and path operators for which the grammar has only one node type."""
