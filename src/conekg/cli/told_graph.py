"""The graph a command was given, opened with a word on what happened to it.

A benchmark that has to be fetched shows its progress; what was merged, left out or may be
a mistake in a file is told on standard error.
"""

from __future__ import annotations

from pathlib import Path

from conekg.cli.console import progress, say
from conekg.graph.assemble import Assembled
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import ReadOptions, read_source


def open_told(source: str) -> KnowledgeGraph:
    """The graph that `source` names or holds."""
    return read_told(source).graph


def read_told(
    source: str, options: ReadOptions | None = None, from_folder: Path | None = None
) -> Assembled:
    """The same, with the notes that were told; a benchmark may be read from a folder."""
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
