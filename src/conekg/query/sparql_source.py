"""Where things stand in a SPARQL text.

The SPARQL parser says what a query contains but not where, so that constructs,
variables and names are searched for again, outside of strings, IRIs and comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from conekg.errors import QuerySyntaxError
from conekg.query.tokens import Span

_HIDDEN = re.compile(
    r"""  "{3}.*?"{3} | '{3}.*?'{3}
        | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
        | <[^\x00-\x20<>"{}|\\^`]*>
        | \#[^\n]* """,
    re.VERBOSE | re.DOTALL,
)


class SparqlSource:
    """A SPARQL text to find things in; what cannot be found spans the whole text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = _HIDDEN.sub(lambda hidden: " " * len(hidden.group()), text)

    def keyword(self, *words: str) -> Span:
        """Where the first of the given keywords stands."""
        pattern = "|".join(rf"\b{re.escape(word)}\b".replace(r"\ ", r"\s+") for word in words)
        return self._find(re.compile(pattern, re.IGNORECASE), self._bare)

    def sign(self, pattern: str) -> Span:
        """Where a regular expression matches outside of strings, IRIs and comments."""
        return self._find(re.compile(pattern), self._bare)

    def variable(self, name: str) -> Span:
        """Where a variable is first used."""
        where = self._bare.find("{")  # not where it is merely selected
        match = re.compile(rf"[?$]{re.escape(name)}\b").search(self._bare, max(where, 0))
        return match.span() if match else self._whole

    def iri(self, iri: str, prefixes: Mapping[str, str]) -> Span:
        """Where an IRI is first written, in full or with one of the prefixes."""
        place = self.text.find(f"<{iri}>")
        if place >= 0:
            return place, place + len(iri) + 2
        for prefix, namespace in prefixes.items():
            if iri.startswith(namespace):
                written = re.escape(f"{prefix}:{iri.removeprefix(namespace)}")
                match = re.search(rf"(?<![\w:]){written}(?![\w%-])", self._bare)
                if match:
                    return match.span()
        return self._whole

    def literal(self, value: str) -> Span:
        """Where a string is first written."""
        for mark in ('"', "'"):
            place = self.text.find(f"{mark}{value}{mark}")
            if place >= 0:
                return place, place + len(value) + 2
        return self._whole

    def nesting(self) -> int:
        """How deep braces, brackets and parentheses nest."""
        depth = deepest = 0
        for character in self._bare:
            depth += (character in "{([") - (character in "})]")
            deepest = max(deepest, depth)
        return deepest

    def error(self, message: str, span: Span, *, hint: str | None = None) -> QuerySyntaxError:
        """A complaint about a range of this text."""
        return QuerySyntaxError(message, text=self.text, span=span, hint=hint)

    @property
    def _whole(self) -> Span:
        return 0, len(self.text)

    def _find(self, pattern: re.Pattern[str], text: str) -> Span:
        match = pattern.search(text)
        return match.span() if match else self._whole
