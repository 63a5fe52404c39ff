"""The tokens of a text in order, with the look-up of names and what to write instead of mistakes.

The parsers of path algebra and formulas read from a `TokenStream`; SPARQL uses the look-up alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from conekg.errors import QuerySyntaxError, UnknownNameError
from conekg.graph.vocabulary import Vocabulary
from conekg.query.tokens import (
    INSTEAD,
    Kind,
    Span,
    Token,
    check_depth,
    is_bare_character,
    quote,
    tokenize,
)

NameKind = Literal["entity", "relation"]
"""What a name is looked up as."""

_LONGEST_UNQUOTED = 200
"""The most characters of a name that is searched for to suggest that quotes are missing."""
_MISPLACED: dict[NameKind, str] = {
    "entity": "it is the name of a relation, and here an entity is needed",
    "relation": "it is the name of an entity, and here a relation is needed",
}


class TokenStream:
    """The tokens of a text, read from left to right, with name look-up and errors.

    Names are looked up in `vocabulary`. `max_depth` is the most levels that `enter` may nest.
    """

    def __init__(self, text: str, vocabulary: Vocabulary, *, max_depth: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self._vocabulary = vocabulary
        self._tokens = tokenize(text)
        self._index = 0
        self._depth = 0

    @property
    def next(self) -> Token:
        """The next token, which is not consumed."""
        return self._tokens[self._index]

    @property
    def after_next(self) -> Token:
        """The token after the next one; the end token if there is none."""
        return self._tokens[min(self._index + 1, len(self._tokens) - 1)]

    @property
    def stop(self) -> int:
        """Where the token that was consumed last ends in the text."""
        return self._tokens[self._index - 1].span[1]

    def has(self, kind: Kind) -> bool:
        """Whether a token of this kind comes next or later."""
        return any(token.kind == kind for token in self._tokens[self._index :])

    def take(self) -> Token:
        """Consume and return the next token; the end token can be taken again and again."""
        token = self.next
        self._index = min(self._index + 1, len(self._tokens) - 1)
        return token

    def accept(self, kind: Kind) -> Token | None:
        """Consume and return the next token if it is of this kind; otherwise return None."""
        return self.take() if self.next.kind == kind else None

    def expect(self, kind: Kind, wanted: str) -> Token:
        """Consume and return the next token, which must be of this kind.

        `wanted` says in the error what was expected.
        """
        if self.next.kind != kind:
            raise self.surprise(wanted)
        return self.take()

    def surprise(self, wanted: str) -> QuerySyntaxError:
        """The error that `wanted` was expected instead of the next token."""
        return self.error(
            f"expected {wanted}, found {self.next}", self.next.span, hint=self._remedy(wanted)
        )

    def _remedy(self, wanted: str) -> str | None:
        """What to write instead of a next token other than `wanted`, if there is a good guess."""
        start, stop = self.next.span
        if self.next.kind == "name" and (instead := INSTEAD.get(self.next.text.lower())):
            return instead
        for sign in (self.text[start : stop + 1], self.text[max(start - 1, 0) : stop]):
            if sign in INSTEAD:
                return INSTEAD[sign]
        before = self._tokens[self._index - 1] if self._index else None
        if before is not None and before.kind == "name" and (name := self._name_from(before)):
            return f"this name needs quotes: {quote(name)}"
        if self.next.kind == "," and "'&'" in wanted:
            return "'a, b' is written a & b; a name that contains a comma needs quotes"
        if before is None or before.kind != "name":
            return None
        if self.next.kind == "name":
            if self.is_relation(self.next):
                return f"a relation is followed by '.': {before.text}.{self.next.text}"
            words, _ = self._words_from(self._index - 1)
            return f"a name with spaces needs quotes: {quote(words)}"
        return None

    def _words_from(self, first: int) -> tuple[str, Span]:
        """The unbroken row of names from token number `first` on, as one text, and its range."""
        last = first
        while self._tokens[last + 1].kind == "name":
            last += 1
        row = self._tokens[first : last + 1]
        return " ".join(token.text for token in row), (row[0].span[0], row[-1].span[1])

    def error(self, message: str, span: Span, *, hint: str | None = None) -> QuerySyntaxError:
        """An error about a range of this text."""
        return QuerySyntaxError(message, text=self.text, span=span, hint=hint)

    def enter(self) -> None:
        """Count one more level of nesting, until `leave`; raises beyond `max_depth`."""
        self._depth += 1
        check_depth(self._depth, self.max_depth)

    def leave(self) -> None:
        """Count one level of nesting less."""
        self._depth -= 1

    def is_relation(self, token: Token) -> bool:
        """Whether the token's text is the name or the label of a relation."""
        return self._vocabulary.relations.knows(token.text)

    def look_up(self, kind: NameKind, token: Token, remedy: str | None = None) -> int:
        """The id of a token's name; an error for an unknown name points at the token.

        `remedy` is the hint of that error if the name is not in quotes.
        """
        if token.kind == "quoted":
            return look_up(kind, self._vocabulary, token.text, self.text, lambda: token.span)
        remedy = INSTEAD.get(token.text.lower(), remedy)
        try:
            return look_up(
                kind, self._vocabulary, token.text, self.text, lambda: token.span, remedy
            )
        except UnknownNameError as error:
            if name := self._name_from(token):
                raise UnknownNameError(
                    error.kind,
                    error.name,
                    span=token.span,
                    text=self.text,
                    hint=f"this name needs quotes: {quote(name)}",
                ) from None
            if remedy is None and error.bare_message is None:
                self._refuse_words_like_a_name(kind, token)
            raise

    def _refuse_words_like_a_name(self, kind: NameKind, token: Token) -> None:
        """Raise an error about a row of words as one misspelt name, if a similar name exists."""
        words, span = self._words_from(self._tokens.index(token))
        if span == token.span or INSTEAD.keys() & words.lower().split():
            return
        names = self._vocabulary
        table = names.entities if kind == "entity" else names.relations
        try:
            table.id_of(words)
        except UnknownNameError as error:
            if error.suggestions:
                raise UnknownNameError(
                    kind,
                    words,
                    suggestions=error.suggestions,
                    span=span,
                    text=self.text,
                    hint=error.extra_hint,
                ) from None

    def _name_from(self, token: Token) -> str | None:
        """The longest known name that begins at a token and extends beyond its end."""
        start, first = token.span
        last = min(len(self.text), start + _LONGEST_UNQUOTED)
        entities, relations = self._vocabulary.entities, self._vocabulary.relations
        for stop in range(last, first, -1):
            ends = stop == len(self.text) or not is_bare_character(self.text[stop])
            name = self.text[start:stop]
            if ends and (entities.knows(name) or relations.knows(name)):
                return name
        return None

    def take_relation(self) -> int:
        """Consume a relation, with `^` before it if it is an inverse, and return its id."""
        inverse = self.accept("^") is not None
        if self.next.kind not in ("name", "quoted"):
            raise self.surprise("a relation")
        return 2 * self.look_up("relation", self.take()) + inverse


def look_up(
    kind: NameKind,
    vocabulary: Vocabulary,
    name: str,
    text: str,
    span: Callable[[], Span],
    remedy: str | None = None,
) -> int:
    """The number of the entity or relation called `name`.

    The number k of a relation is not its id: callers turn it into 2k, or 2k+1 for the inverse.

    An `UnknownNameError` points at the range of `text` that `span` returns; it is a function
    because finding the range can take long. `remedy` is the hint for an unknown name.
    """
    table, other = vocabulary.entities, vocabulary.relations
    if kind == "relation":
        table, other = other, table
    try:
        return table.id_of(name)
    except UnknownNameError as error:
        suggestions, hint, where = error.suggestions, error.extra_hint, error.where_to_look
        if error.bare_message is None and other.knows(name):
            suggestions, hint, where = (), _MISPLACED[kind], None
        elif error.bare_message is None and remedy is not None:
            suggestions, hint, where = (), remedy, None
        raise UnknownNameError(
            error.kind,
            error.name,
            suggestions=suggestions,
            span=span(),
            text=text,
            hint=hint,
            where_to_look=where,
            message=error.bare_message,
        ) from None
