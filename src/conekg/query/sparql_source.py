"""Where things stand in a SPARQL text.

The SPARQL parser says what a query contains but not where, so that constructs,
variables and names are searched for again, outside of strings, IRIs and comments.
Of several alike, the parse tree says which is meant: it is in the order of the text.
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
    """A SPARQL text to find things in; what cannot be found spans the whole text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = _HIDDEN.sub(_blank, text)
        self._found: dict[tuple[re.Pattern[str], str], list[Span]] = {}

    def keyword(self, word: str, place: int = 0) -> Span:
        """Where a keyword stands, the first or the one after `place` others."""
        spaced = re.escape(word).replace(r"\ ", r"\s+")
        # Not a variable, nor a part of a prefixed name, that is called as the keyword is.
        pattern = re.compile(rf"(?<![\w?$:-]){spaced}(?![\w:-])", re.IGNORECASE)
        return self._find(pattern, place, self._bare) or self._whole

    def sign(self, pattern: str, place: int = 0) -> Span:
        """Where a regular expression matches outside of strings, IRIs and comments."""
        return self._find(re.compile(pattern), place, self._bare) or self._whole

    def variable(self, name: str) -> Span:
        """Where a variable is first used."""
        where = self._bare.find("{")  # not where it is merely selected
        match = re.compile(rf"[?$]{re.escape(name)}\b").search(self._bare, max(where, 0))
        return match.span() if match else self._whole

    def prefixed_name(self, written: str, place: int) -> Span:
        """Where a name with a prefix stands."""
        return self.sign(rf"(?<![\w:]){re.escape(written)}(?![\w%-])", place)

    def full_iri(self, written: str, place: int) -> Span:
        """Where an IRI in angle brackets stands; `a` where it stands for the IRI."""
        found = self._find(re.compile(re.escape(f"<{written}>")), place, self.text)
        return found or self.sign(r"(?<![\w?$:-])a(?![\w:-])", place)

    def literal(self, value: str) -> Span:
        """Where a string or a number is first written."""
        for mark in ('"', "'"):
            place = self.text.find(f"{mark}{value}{mark}")
            if place >= 0:
                return place, place + len(value) + 2
        return self.sign(rf"(?<![\w:?$.]){re.escape(value)}(?!\w)")

    def nesting(self) -> int:
        """How deep braces, brackets and parentheses nest."""
        depth = deepest = 0
        for character in self._bare:
            depth += (character in "{([") - (character in "})]")
            deepest = max(deepest, depth)
        return deepest

    def unescaped(self) -> tuple[str, list[int]]:
        r"""The text with `\uXXXX` and `\UXXXXXXXX` replaced, and where each character came from.

        SPARQL replaces them anywhere, before it looks at anything else. The places have one
        more entry, for the end.
        """
        text = ""
        places: list[int] = []
        done = 0
        for escape in _ESCAPE.finditer(self.text):
            code = int(escape[1] or escape[2], 16)
            if code > sys.maxunicode or 0xD800 <= code < 0xE000:
                raise self.error(
                    "this escape stands for no Unicode character",
                    escape.span(),
                    hint="escapes end at \\U0010FFFF, and those from \\uD800 to \\uDFFF are none",
                )
            text += self.text[done : escape.start()] + chr(code)
            places += range(done, escape.start() + 1)
            done = escape.end()
        return text + self.text[done:], [*places, *range(done, len(self.text) + 1)]

    def error(self, message: str, span: Span, *, hint: str | None = None) -> QuerySyntaxError:
        """A complaint about a range of this text."""
        return QuerySyntaxError(message, text=self.text, span=span, hint=hint)

    @property
    def _whole(self) -> Span:
        return 0, len(self.text)

    def _find(self, pattern: re.Pattern[str], place: int, text: str) -> Span | None:
        """The place of a pattern after `place` others, or the first; None where there is none.

        Searched for once: long queries repeat their names.
        """
        if (pattern, text) not in self._found:
            self._found[pattern, text] = [match.span() for match in pattern.finditer(text)]
        spans = self._found[pattern, text]
        return spans[place if place < len(spans) else 0] if spans else None


def _blank(hidden: re.Match[str]) -> str:
    """Blanks of the same length, so that nothing moves; an IRI keeps its brackets.

    Path operators are told by what they follow.
    """
    text = hidden.group()
    return f"<{'_' * (len(text) - 2)}>" if text.startswith("<") else " " * len(text)


class Order:
    """How many others alike stand before each node of a parse tree, in the order of the text."""

    def __init__(self, tree: Any) -> None:
        self._places: dict[int, int] = {}
        self._seen: Counter[Hashable] = Counter()
        self._tree = tree  # ids are those of living nodes only
        self._visit(tree)

    def place(self, node: Any) -> int:
        """The number of nodes alike before this one; 0 where that is not known."""
        return self._places.get(id(node), 0)

    def _visit(self, node: Any) -> None:
        if id(node) in self._places:
            return  # `;` and `,` repeat the very node
        if isinstance(node, str):
            self._count(node, str(node))
        elif isinstance(node, dict):
            name = str(getattr(node, "name", ""))
            branches = node["graph"] if name == "GroupOrUnionGraphPattern" else ()
            if branches:
                self._visit(branches[0])  # it stands before the first UNION
            keyword = "Builtin_EXISTS" if name == "Builtin_NOTEXISTS" else name
            kind = (keyword, *(str(node[key]) if key in node else "" for key in _TELLING))
            self._count(node, kind, len(branches) - 1 if branches else 1)
            for child in node.values():
                self._visit(child)
        elif isinstance(node, Iterable):
            for child in node:
                self._visit(child)

    def _count(self, node: Any, kind: Hashable, amount: int = 1) -> None:
        self._places[id(node)] = self._seen[kind]
        self._seen[kind] += amount


_TELLING = ("prefix", "localname", "mod")
"""What tells names and path operators apart that the grammar calls the same."""
