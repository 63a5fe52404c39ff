"""Opens the graph that a command was given, and prints what the user should know about it.

A benchmark that has to be downloaded shows its progress. Facts that were merged or left out, and
possible mistakes in a file, are reported on standard error.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conekg.cli.console import progress, say
from conekg.errors import ConeKGError
from conekg.graph.assemble import Assembled
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import ReadOptions, read_source


def open_and_report(source: str) -> KnowledgeGraph:
    """The graph that `source` names or contains; notes about it are printed."""
    return read_and_report(source).graph


def read_and_report(
    source: str, options: ReadOptions | None = None, from_folder: Path | None = None
) -> Assembled:
    """The graph and the notes that were printed; `from_folder` has the files of a benchmark."""
    if source not in BENCHMARKS or from_folder is not None:
        read = read_source(source, options, benchmark_folder=from_folder)
    else:
        with progress(f"fetch {source}", unit="bytes") as report:
            read = read_source(
                source, options, progress=lambda what, done, total: report.update(done, total, what)
            )
    for note in read.notes:
        say(note)
    return read


@contextmanager
def hint_if_swapped(place: str | Path, other: str | None, usage: str) -> Iterator[None]:
    """If the block fails because its two arguments are swapped, say so in the error's hint.

    `place` was given as the graph or run and `other` as the other argument. They are swapped if
    `other` is a file, a folder or the name of a graph, and `place` is none of these. `usage` is the
    correct command, with `{place}` and `{other}` for its arguments.
    """
    try:
        yield
    except ConeKGError as error:
        if _is_place(other) and not _is_place(place):
            place, other = shlex.quote(str(other)), shlex.quote(str(place))
            error.hint = (
                f"the two arguments are swapped: `{usage.format(place=place, other=other)}`"
            )
        raise


def _is_place(given: str | Path | None) -> bool:
    """Whether an argument is a file, a folder or the name of a graph."""
    if not given:
        return False
    return given in ("geography", *BENCHMARKS) or os.access(given, os.F_OK)
