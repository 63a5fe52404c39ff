"""Notes a file whose columns hardly hold heads, relations and tails in this order.

Such a file can be read, and a model trained on it answers nothing that was meant. Two mistakes are
looked for: a table with a row for each thing, and the relation in the first or the last column.
Files that name their columns are left to `triples`.
"""

from __future__ import annotations

from conekg.graph.triples import TripleTable

_FEWEST = 10
"""Files with fewer facts are too small to tell."""
_FEWEST_CELLS = 5
"""A column with fewer names may well be one of relations, even if each head has only one fact."""
_FEWEST_MISPLACED = 10
"""The fewest names in the second column that tell that it is not the relations' column."""


def misplaced_note(table: TripleTable) -> str | None:
    """A note on a table of training facts whose columns hold something else; `None` if none does.

    Facts say several things of a head, by means of a few relations. In a table with a row for each
    thing nearly every row begins with a new name. Where the relation stands first or last, the
    second column has more names than that one.
    """
    rows = len(table)
    heads, relations, tails = (len(column.dictionary) for column in table.columns)
    if table.names_columns or rows < _FEWEST:
        return None
    if 10 * heads >= 9 * rows and relations >= _FEWEST_CELLS:
        return (
            f"{rows:,} lines begin with {heads:,} different names and have {relations:,} "
            "relations, as a table with a row for each thing has; if it is one, write each of its "
            "cells as a fact: the name of its row, the name of its column, the cell"
        )
    if relations >= _FEWEST_MISPLACED and relations > 2 * min(heads, tails):
        place, fewest = ("first", heads) if heads < tails else ("third", tails)
        return (
            f"the second column, the relation, has {relations:,} different names, and the {place} "
            f"only {fewest:,}; if the columns are in another order, name them in the first line, "
            "such as head, tail, relation"
        )
    return None
