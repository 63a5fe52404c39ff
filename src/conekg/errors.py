"""Every failure a user can cause, as an exception that carries its facts.

Inner code raises the fact; the command line and the server turn it into one
message or one JSON object. A traceback therefore always means a bug of ours.
Of ours it imports only `lines`, so that anything may import it.
"""

from __future__ import annotations

from collections.abc import Sequence

from conekg.lines import columns


class ConeKGError(Exception):
    """Base of all failures caused by input, files or options.

    `message` says what was wrong, where, and what is accepted; `hint` says what to do next.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class DataError(ConeKGError):
    """A file of facts or queries that cannot be read as promised."""

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + message, hint=hint)
        self.path = path
        self.line = line


class StoreError(DataError):
    """A folder or file of our own that is damaged, too new, or not what it claims."""


class DownloadError(ConeKGError):
    """A public data set that could not be fetched or whose checksum differs."""


class UnknownNameError(ConeKGError):
    """An entity or relation name that the graph does not have, or that is ambiguous."""

    def __init__(
        self,
        kind: str,
        name: str,
        *,
        suggestions: tuple[str, ...] = (),
        span: tuple[int, int] | None = None,
        text: str | None = None,
        hint: str | None = None,
        where_to_look: str | None = None,
        message: str | None = None,
    ) -> None:
        """`hint` says what to write instead, `where_to_look` which command lists the names."""
        super().__init__(located(message or f"unknown {kind} {name!r}", text, span))
        self.kind = kind
        self.name = name
        self.suggestions = suggestions
        self.span = span
        self.text = text
        self.extra_hint = hint
        self.where_to_look = where_to_look
        self.bare_message = message
        self.tell([""] * len(suggestions))

    def tell(self, about: Sequence[str]) -> None:
        """Say beside each suggestion what is known of it, or nothing where the text is empty."""
        self.about = tuple(about)
        choices = [
            f"{name!r} ({known})" if known else repr(name)
            for name, known in zip(self.suggestions, self.about, strict=True)
        ]
        self.guess = f"did you mean {' or '.join(choices)}?" if choices else None
        parts = [part for part in (self.guess, self.extra_hint, self.where_to_look) if part]
        self.hint = " ".join(parts) or None


class QueryError(ConeKGError):
    """A query that is well-formed text but cannot be answered as asked."""


class QuerySyntaxError(QueryError):
    """Query text that does not parse; `span` is the offending range of characters."""

    def __init__(
        self, message: str, *, text: str, span: tuple[int, int], hint: str | None = None
    ) -> None:
        super().__init__(located(message, text, span), hint=hint)
        self.text = text
        self.span = span


class QueryTooLargeError(QueryError):
    """A query whose depth, length or number of union-free branches exceeds a limit."""


class UnsupportedOperatorError(QueryError):
    """A model was asked for an operator it does not have, such as negation of a box."""


class ConfigError(ConeKGError):
    """An option or recipe key that is unknown, of the wrong type, or out of range."""

    def __init__(
        self, message: str, *, key: str | None = None, suggestions: tuple[str, ...] = ()
    ) -> None:
        hint = f"did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else None
        super().__init__(message, hint=hint)
        self.key = key
        self.suggestions = suggestions


class CheckpointError(ConeKGError):
    """A run folder or checkpoint that is missing, damaged or of another graph."""


class TrainingDivergedError(ConeKGError):
    """Training stopped because the loss is not finite or has collapsed."""


def located(message: str, text: str | None, span: tuple[int, int] | None) -> str:
    """`message` with the column, the line of text and a marker under the offending range."""
    if text is None or span is None:
        return message
    start, stop = span
    line_start = text.rfind("\n", 0, start) + 1
    line_stop = text.find("\n", start)
    line = text[line_start : len(text) if line_stop < 0 else line_stop]
    column = start - line_start
    end = min(stop - line_start, len(line))
    if len(line) > _LONGEST_LINE:
        first = max(0, column - _LONGEST_LINE // 2)
        last = min(len(line), first + _LONGEST_LINE)
        before, after = "…" * (first > 0), "…" * (last < len(line))
        shown, end = before + line[first:last] + after, min(end, last) - first + len(before)
        place = column - first + len(before)
    else:
        shown, place = line, column
    marker = "^" * max(1, columns(shown[place:end]))
    # A tab stays one, so that the marker is as far to the right as what it marks.
    space = "".join("\t" if sign == "\t" else " " * columns(sign) for sign in shown[:place])
    return f"{message} at column {column + 1}\n  {shown}\n  {space}{marker}"


_LONGEST_LINE = 160
"""Characters of a query's line that a message shows."""
