"""Opens the graph that a command was given, and prints what the user should know about it.

A benchmark that has to be downloaded shows its progress. Facts that were merged or left out, and
possible mistakes in a file, are reported on standard error.
"""

from __future__ import annotations

from pathlib import Path

from conekg.cli.console import progress, say
from conekg.graph.assemble import Assembled
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import ReadOptions, read_source


def open_told(source: str) -> KnowledgeGraph:
    """The graph that `source` names or contains; notes about it are printed."""
    return read_told(source).graph


def read_told(
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
