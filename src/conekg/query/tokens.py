"""Tokens: the names and signs of which path algebra and formulas consist, and name look-up.

Each token has its position, so that every error can point at the characters it is about. The
meaning of tokens is left to `parse` and `formula`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from conekg.errors import QuerySyntaxError, QueryTooLargeError, UnknownNameError
from conekg.graph.vocabulary import Vocabulary

Span = tuple[int, int]
Kind = Literal[
    "name", "quoted", "variable", ".", "&", "|", "!", "(", ")", "^", "*", ",", ":", "=", "end"
]
NameKind = Literal["entity", "relation"]

_SIGNS: dict[str, Kind] = {
    ".": ".", "&": "&", "|": "|", "!": "!", "(": "(", ")": ")", "^": "^", "*": "*",
    ",": ",", ":": ":", "=": "=",
    # Signs of mathematical logic; they are read but never rendered.
    "∧": "&", "∨": "|", "¬": "!",
}  # fmt: skip
_BARE_SIGNS = frozenset("_-/:#@$%+~")
# The common kinds of name, which a regular expression reads faster than a loop over characters.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_/#@$%+~-][A-Za-z0-9_\-/:#@$%+~]*")
_PLAIN_QUOTED = re.compile(r"""\"([^"\\]*)\"|'([^'\\]*)'""")
_CURLY_QUOTES = frozenset("“”„‟‘’‚‛«»‹›`´")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPED = {value: name for name, value in _ESCAPES.items()}
_FOR_ALL = "'for all y: ...' is written as its double negation: !(exists y. !(...))"
_IMPLIES = "'if a, then b' is written !a | b, and a relation is followed by '.'"
_UNEQUAL = "'x is not a' is written !(x = a)"
_INSTEAD = {
    "and": "'and' is written '&'",
    "or": "'or' is written '|'",
    "not": "'not' is written '!'",
    **dict.fromkeys(("-", "\\", "∖"), "'a without b' is written a & !b"),
    **dict.fromkeys(("forall", "∀"), _FOR_ALL),
    **dict.fromkeys(("implies", "->", "=>", "→", "⇒"), _IMPLIES),
    **dict.fromkeys(("!=", "≠"), _UNEQUAL),
    **{sign * 2: f"{sign!r} is written once" for sign in "&|="},
}
"""Remedies for words and signs of other notations."""
_LONGEST_UNQUOTED = 200
"""The most characters of a name that is searched for to suggest that quotes are missing."""
_MISPLACED: dict[NameKind, str] = {
    "entity": "it is the name of a relation, and here an entity is needed",
    "relation": "it is the name of an entity, and here a relation is needed",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A name, variable or sign; `text` is a name without its quotes, a variable without its `?`."""

    kind: Kind
    text: str
    span: Span

    def __str__(self) -> str:
        match self.kind:
            case "end":
                return "the end of the query"
            case "variable":
                return f"'?{self.text}'"
            case _:
                return repr(self.text)


def is_bare_character(character: str) -> bool:
    """Whether a name may contain this character without being quoted.

    Letters, marks and digits of any script, and the signs `_ - / : # @ $ % + ~`.
    """
    return character in _BARE_SIGNS or unicodedata.category(character)[0] in "LMN"


def is_bare_name(name: str) -> bool:
    """Whether a name can be written without quotes; one that begins with a colon cannot.

    >>> is_bare_name("/m/02x"), is_bare_name("New Zealand"), is_bare_name(":France")
    (True, False, False)
    """
    if _PLAIN_NAME.fullmatch(name):
        return True
    return bool(name) and name[0] != ":" and all(map(is_bare_character, name))


def quote(name: str) -> str:
    """The name between double quotes on one line: double quotes, backslashes, line ends escaped.

    >>> print(quote('a "b"'))
    "a \\"b\\""
    """
    body = "".join(
        f"\\{c}" if c in '"\\' else f"\\{_ESCAPED[c]}" if c in _ESCAPED else c for c in name
    )
    return f'"{body}"'


def as_written(name: str) -> str:
    """The name as it is written in a query: between quotes if it needs them.

    >>> print(as_written("Japan"), as_written("New Zealand"))
    Japan "New Zealand"
    """
    return name if is_bare_name(name) else quote(name)


def tokenize(text: str) -> list[Token]:
    """The tokens of a query, the last of which is of kind "end".

    Raises `QuerySyntaxError` at a character that begins no token.
    """
    tokens: list[Token] = []
    position = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return [*tokens, Token("end", "", (position, position))]
        token = _read_token(text, position)
        tokens.append(token)
        position = token.span[1]


def _read_token(text: str, start: int) -> Token:
    """The token that begins at `start`, which is not white space."""
    character = text[start]
    if character in "\"'":
        return _read_quoted(text, start)
    if character == "?":
        stop = _end_of_run(text, start + 1, _is_word_character)
        if stop == start + 1:
            raise QuerySyntaxError(
                "a variable needs a name after '?'", text=text, span=(start, stop)
            )
        return Token("variable", text[start + 1 : stop], (start, stop))
    if character in _SIGNS:
        return Token(_SIGNS[character], character, (start, start + 1))
    if character == "∃":
        return Token("name", "exists", (start, start + 1))
    plain = _PLAIN_NAME.match(text, start)
    stop = _end_of_run(text, plain.end() if plain else start, is_bare_character)
    if stop == start:
        signs = [character, text[start - 1 : start + 1]] if start else [character]
        hints = [_INSTEAD.get(sign) for sign in signs]
        if character in _CURLY_QUOTES:
            hints.append("""write names in straight quotes, " or '""")
        hints.append("put names that contain it in quotes")
        raise QuerySyntaxError(
            f"unexpected character {character!r}",
            text=text,
            span=(start, start + 1),
            hint="; ".join(filter(None, hints)),
        )
    return Token("name", text[start:stop], (start, stop))


def is_word(text: str) -> bool:
    """Whether `text` can be the name of a variable: letters, digits and `_`.

    >>> is_word("x_1"), is_word("x-1")
    (True, False)
    """
    return bool(text) and all(map(_is_word_character, text))


def _is_word_character(character: str) -> bool:
    return character == "_" or character.isalnum()


def _end_of_run(text: str, start: int, accepts: Callable[[str], bool]) -> int:
    """The end of the longest run of accepted characters that begins at `start`."""
    stop = start
    while stop < len(text) and accepts(text[stop]):
        stop += 1
    return stop


def _read_quoted(text: str, start: int) -> Token:
    """The quoted name that begins at `start`."""
    if plain := _PLAIN_QUOTED.match(text, start):
        return Token("quoted", plain[plain.lastindex or 0], plain.span())
    mark = text[start]
    body: list[str] = []
    position = start + 1
    while position < len(text) and text[position] != mark:
        if text[position] != "\\":
            body.append(text[position])
            position += 1
            continue
        escaped = text[position + 1 : position + 2]
        if escaped and escaped in "\"'\\":
            body.append(escaped)
        elif escaped in _ESCAPES:
            body.append(_ESCAPES[escaped])
        else:
            raise QuerySyntaxError(
                f"unknown escape {text[position : position + 2]!r}",
                text=text,
                span=(position, position + 2),
                hint="""accepted: \\" \\' \\\\ \\n \\t \\r""",
            )
        position += 2
    if position >= len(text):
        raise QuerySyntaxError(
            f"this quoted name has no closing {mark}",
            text=text,
            span=(start, len(text)),
            hint=f"a name that contains {mark} is written in the other quotes",
        )
    return Token("quoted", "".join(body), (start, position + 1))


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
            f"expected {wanted}, found {self.next}", self.next.span, hint=self._remedy()
        )

    def _remedy(self) -> str | None:
        """What to write instead of an unexpected next token, if there is a good guess."""
        start, stop = self.next.span
        if self.next.kind == "name" and (instead := _INSTEAD.get(self.next.text.lower())):
            return instead
        for sign in (self.text[start : stop + 1], self.text[max(start - 1, 0) : stop]):
            if sign in _INSTEAD:
                return _INSTEAD[sign]
        before = self._tokens[self._index - 1] if self._index else None
        if before is None or before.kind != "name":
            return None
        if name := self._name_from(before):
            return f"this name needs quotes: {quote(name)}"
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
        remedy = _INSTEAD.get(token.text.lower(), remedy)
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
        if span == token.span or _INSTEAD.keys() & words.lower().split():
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


def check_depth(depth: int, max_depth: int) -> None:
    """Raise `QueryTooLargeError` if a query is nested deeper than allowed."""
    if depth > max_depth:
        raise QueryTooLargeError(f"the query is nested more than {max_depth} levels deep")


def check_text(text: str, max_length: int) -> None:
    """Raise an error if a text is longer than allowed or contains a lone surrogate."""
    if len(text) > max_length:
        raise QueryTooLargeError(
            f"the query has {len(text):,} characters; at most {max_length:,} are allowed"
        )
    if match := _SURROGATE.search(text):  # from undecodable bytes on a command line
        raise QuerySyntaxError("this character is not valid Unicode", text=text, span=match.span())
