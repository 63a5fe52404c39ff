"""Text on one line of a terminal: control characters escaped, its width, counts with their noun.

This module imports nothing else from conekg, so that every module can import it.
"""

from __future__ import annotations

import re
import unicodedata

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """The text with line ends and other control characters escaped, so that it fits on one line."""
    return _CONTROLS.sub(lambda control: control[0].encode("unicode_escape").decode(), text)


def columns(text: str) -> int:
    """How many columns a text takes in a terminal; combining marks take none, wide letters two.

    >>> columns("Zoe\u0308"), columns("日本")
    (3, 4)
    """
    return sum(map(_columns_of_character, text))


def counted(number: int, noun: str) -> str:
    """The number and the noun, in the plural unless the number is one.

    >>> counted(1, "query"), counted(2000, "query"), counted(0, "fact")
    ('1 query', '2,000 queries', '0 facts')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def _columns_of_character(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("F", "W") else 1
