"""Tokens: the names and signs of which path algebra and formulas consist.

Each token has its position, so that every error can point at the characters it is about. Reading
them in order is left to `token_stream`, their meaning to `parse` and `formula`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from conekg.errors import QuerySyntaxError, QueryTooLargeError

Span = tuple[int, int]
Kind = Literal[
    "name", "quoted", "variable", ".", "&", "|", "!", "(", ")", "^", "*", ",", ":", "=", "end"
]

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
_COMPARING = frozenset("<>≤≥")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ESCAPED = {value: name for name, value in _ESCAPES.items()}
_FOR_ALL = "'for all y: ...' is written as its double negation: !(exists y. !(...))"
_IMPLIES = "'if a, then b' is written !a | b, and a relation is followed by '.'"
_UNEQUAL = "'x is not a' is written !(x = a)"
INSTEAD = {
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
        hints = [INSTEAD.get(sign) for sign in signs]
        if character in _COMPARING and not any(hints):
            hints.append("values are not compared; an IRI is written in quotes, without < and >")
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
