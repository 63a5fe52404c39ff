"""One door to all graphs: a name, a store, a benchmark folder or a file of triples."""

from __future__ import annotations

from pathlib import Path

from conekg.errors import DataError
from conekg.graph.geography import load_geography
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.store import is_store, load_graph


def open_graph(source: str | Path) -> KnowledgeGraph:
    """The graph that `source` names."""
    if source == "geography":
        return load_geography()
    path = Path(source)
    if path.is_dir() and is_store(path):
        return load_graph(path)
    raise DataError(f"no graph {str(source)!r}")
