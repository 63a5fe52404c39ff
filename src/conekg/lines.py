"""Text within a line of a terminal: what may stand there, and how wide it is.

This module imports nothing of ours, so that anything may import it.
"""

from __future__ import annotations

import re
import unicodedata

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """A name as it can be printed within a line: line ends and other control characters escaped."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes.

    >>> columns("Zoe\u0308"), columns("日本")
    (3, 4)
    """
    return sum(map(_columns_of_sign, text))


def _columns_of_sign(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("F", "W") else 1
