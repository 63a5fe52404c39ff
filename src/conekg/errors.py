"""Every failure a user can cause, as an exception that carries its facts.

Inner code raises these errors; the command line prints them as a message and the server
returns them as a JSON object. A traceback therefore always means a bug in conekg. The only
conekg module imported here is `lines`, so that every module can import this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

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
    """A file of facts or queries that cannot be read, or whose content is invalid."""

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
    """A folder or file in conekg's own format that is damaged, too new, or of another kind."""


class DownloadError(ConeKGError):
    """A public data set that could not be downloaded, or whose checksum is wrong."""


class UnknownNameError(ConeKGError):
    """An entity or relation name that the graph does not have, or an ambiguous label."""

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
        """Store the facts of the error and build its message and hint.

        `hint` says what to write instead; `where_to_look` says which command lists the names;
        `message` replaces the default "unknown KIND NAME".
        """
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
        """Add a description to each suggestion in the hint; an empty text adds nothing.

        `about` has one text per suggestion, in the same order.
        """
        self.about = tuple(about)
        choices = [
            f"{name!r} ({description})" if description else repr(name)
            for name, description in zip(self.suggestions, self.about, strict=True)
        ]
        self.guess = f"did you mean {' or '.join(choices)}?" if choices else None
        parts = [part for part in (self.guess, self.extra_hint, self.where_to_look) if part]
        self.hint = " ".join(parts) or None


class QueryError(ConeKGError):
    """A query that cannot be read, or cannot be answered as asked."""


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
    """A query needs an operator that the model does not have, such as negation of a box."""


class ConfigError(ConeKGError):
    """An option or recipe key that is unknown, of the wrong type, or out of range."""

    def __init__(
        self, message: str, *, key: str | None = None, suggestions: tuple[str, ...] = ()
    ) -> None:
        hint = f"did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else None
        super().__init__(message, hint=hint)
        self.key = key
        self.suggestions = suggestions


def unknown_choice(
    kind: str, name: str, choices: Iterable[str], *, key: str | None = None
) -> ConfigError:
    """The error for a name that is none of the choices; it suggests those that are spelt alike.

    `kind` says what the name should be, such as "model"; it is also the key, if none is given.
    """
    known = list(choices)
    return ConfigError(
        f"unknown {kind} {name!r}; there are {', '.join(known)}",
        key=key or kind,
        suggestions=tuple(get_close_matches(name, known)),
    )


class CheckpointError(ConeKGError):
    """A run folder or checkpoint that is missing, damaged or belongs to another graph."""


class TrainingDivergedError(ConeKGError):
    """Training stopped because the loss is not finite or has collapsed."""


def lack_of_memory(error: BaseException) -> str | None:
    """What an error says of a lack of memory, on the CPU or a GPU; None if it is another error.

    The text is empty if Python itself ran out of memory.
    """
    # torch's own class is named, because this module does not import torch. It is raised where the
    # GPU has no room for tensors. Plain RuntimeErrors, told by their text alone, are raised for the
    # CPU's memory and for what CUDA and Triton need, as on a GPU that other programs have filled.
    is_lack = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    text = str(error)
    is_of_gpu = "CUDA" in text and "out of memory" in text
    if not is_lack and not is_of_gpu and "DefaultCPUAllocator" not in text:
        return None
    detail, _, _ = text.partition("\n")
    return detail


def located(message: str, text: str | None, span: tuple[int, int] | None) -> str:
    """`message`, followed by the place, that line of `text` and a marker under the range `span`.

    The place is a column, after the number of its line if the text has several. Only the first line
    of the range is shown; a long line is cut around the range. Without `text` or `span` the result
    is `message` alone.
    """
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
    # Tabs are kept, so that the marker is indented exactly as far as the text above it.
    space = "".join("\t" if char == "\t" else " " * columns(char) for char in shown[:place])
    breaks = text.count("\n", 0, start)
    number = f"line {breaks + 1}, " if breaks or "\n" in text.rstrip() else ""
    return f"{message} at {number}column {column + 1}\n  {shown}\n  {space}{marker}"


_LONGEST_LINE = 160
"""The most characters of a query's line that a message shows."""
