"""Spelling: finds the texts that what was typed may stand for.

A text is proposed if it is a few keystrokes away, has the typed text as a word, or is what a
typed acronym is short for.

The edit distances to all candidates are computed at once, one NumPy operation per cell of the
table, so that a misspelt name among 60,000 takes a fraction of a second without an index.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from conekg.graph.text_array import flat_bytes, true_indices

_CHUNK = 1 << 18
"""The number of candidates that are compared at once; it bounds the memory."""
_SMALL_WORD = "(?:and|d[aeiou]s?|for|in|la|of|the)"
"""A word that an acronym has no letter for."""


def nearest(text: str, candidates: pa.Array, limit: int) -> dict[int, int]:
    """Edit distances by candidate index, of at most `limit` near candidates, nearest first.

    A candidate is near if its distance is at most a third of the length of `text`, or 1.
    Insertions, deletions, replacements and swaps of neighbours cost one each. Lengths and distances
    count UTF-8 bytes, so a change of an accented letter costs up to two. A text of more than 200
    bytes is near nothing.
    """
    typed = np.frombuffer(text.encode(), dtype=np.uint8)
    allowed = max(1, len(typed) // 3)
    if len(typed) == 0 or len(typed) > 200 or len(candidates) == 0:
        return {}
    lengths = pc.binary_length(candidates).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(np.abs(lengths - len(typed)) <= allowed)
    distances = np.empty(len(places), dtype=np.int16)
    for start in range(0, len(places), _CHUNK):
        part = places[start : start + _CHUNK]
        distances[start : start + _CHUNK] = _distances(typed, candidates.take(pa.array(part)))
    close = np.flatnonzero(distances <= allowed)
    order = np.lexsort((places[close], distances[close]))[:limit]
    return dict(zip(places[close[order]].tolist(), distances[close[order]].tolist(), strict=True))


def spelled_out(text: str, candidates: pa.Array) -> list[int]:
    """Indices of the candidates whose words begin with the letters of an acronym, such as USA.

    Candidates are in lower case. Small words in between need no letter, nor does what follows "of":
    US and USA are both the United States of America. Those with few small words come first.
    """
    if not re.fullmatch("[A-Z]{2,6}", text):
        return []
    words = f"[ _-](?:{_SMALL_WORD}[ _-])*".join(f"{letter}[^ _-]*" for letter in text.lower())
    pattern = f"^({words})(?:[ _-]of[ _-].*)?$"
    small = re.compile(f"[ _-]{_SMALL_WORD}(?=[ _-])")

    def small_words(index: int) -> int:
        match = re.search(pattern, candidates[index].as_py())
        return len(small.findall(match[1])) if match else 0

    matching = true_indices(pc.match_substring_regex(candidates, pattern)).tolist()
    return sorted(matching, key=small_words)


def with_word(text: str, candidates: pa.Array) -> list[int]:
    """Indices of the candidates that have `text` as one or more whole words, shortest first."""
    containing = true_indices(pc.match_substring(candidates, text))
    found = candidates.take(pa.array(containing))
    pattern = rf"(?:^|[ _-]){re.escape(text)}(?:[ _-]|$)"
    whole = true_indices(pc.match_substring_regex(found, pattern)).tolist()
    lengths = pc.binary_length(found).to_pylist()
    return [int(containing[at]) for at in sorted(whole, key=lengths.__getitem__)]


def _distances(typed: NDArray[np.uint8], candidates: pa.Array) -> NDArray[np.int16]:
    """The edit distance from `typed` to each candidate (optimal string alignment)."""
    letters, lengths = _padded(candidates)
    count, width = letters.shape
    above = np.empty((width + 1, count), dtype=np.int16)  # the table's row i - 1, all candidates
    above[:] = np.arange(width + 1, dtype=np.int16)[:, None]
    two_above = above
    columns = np.ascontiguousarray(letters.T)
    for i, letter in enumerate(typed, start=1):
        row = np.empty_like(above)
        row[0] = i
        for j in range(1, width + 1):
            cost = (columns[j - 1] != letter).astype(np.int16)
            best = np.minimum(above[j], row[j - 1]) + np.int16(1)
            np.minimum(best, above[j - 1] + cost, out=best)
            if i > 1 and j > 1:
                swapped = (columns[j - 1] == typed[i - 2]) & (columns[j - 2] == letter)
                np.minimum(best, np.where(swapped, two_above[j - 2] + 1, best), out=best)
            row[j] = best
        two_above, above = above, row
    result: NDArray[np.int16] = above[lengths, np.arange(count)]
    return result


def _padded(candidates: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The candidates' bytes as rows [count, width] padded with zeros, and their lengths."""
    offsets, data = flat_bytes(candidates)
    lengths = np.diff(offsets)
    width = max(1, int(lengths.max(initial=1)))
    rows = np.zeros((len(lengths), width), dtype=np.uint8)
    rows[np.arange(width) < lengths[:, None]] = data
    return rows, lengths
