"""Case files of rewrites, and the answers of queries that rewrites must keep."""

from __future__ import annotations

from pathlib import Path

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.tree import Query
from oracle import Oracle

LETTERS = Vocabulary(NameTable("entity", "abcde"), NameTable("relation", "rst"))
"""The names in case files."""


def read_cases(module: str) -> list[tuple[str, str, list[str]]]:
    """(function, query, expected lines) of each case of a module's functions."""
    cases = []
    for path in sorted((Path(__file__).parent / "query" / "cases" / module).glob("*.txt")):
        for block in path.read_text().split("\n\n"):
            lines = [line for line in block.splitlines() if not line.startswith("# ")]
            query, *expected = lines
            assert expected, f"{path.name}: {query} has no expectation"
            assert all(line.startswith("=> ") for line in expected), f"{path.name}: {query}"
            cases.append((path.stem, query, [line.removeprefix("=> ") for line in expected]))
    assert cases, f"no case files for {module}"
    return cases


def known_answers(graph: KnowledgeGraph, query: Query) -> set[int]:
    """The answers that training and validation facts give, by the oracle."""
    triples = [edge for split in ("train", "valid") for edge in graph.edges(split).tolist()]
    return Oracle(triples, graph.num_entities).answer(query)
