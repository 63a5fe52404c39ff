from __future__ import annotations

from pathlib import Path

import pytest

from conekg.errors import DataError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.sampling.benchmark_files import read_queries
from conekg.sampling.betae_files import write_betae
from conekg.sampling.source import open_all_queries
from release_files import (
    sampled_queries,
    write_pickle,
)


def test_a_missing_folder_or_a_file_is_refused(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="no such folder"):
        open_all_queries(tmp_path / "nowhere", random_graph)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="it is a file"):
        open_all_queries(tmp_path / "file", random_graph)


def test_a_folder_without_queries_or_answers_says_what_it_needs(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="no test queries here") as caught:
        read_queries(tmp_path, "test", random_graph)
    for file in ("test.arrow", "test-queries.pkl", "test_triples_1c.pkl"):
        assert file in str(caught.value.hint)
    write_betae(tmp_path, sampled_queries(random_graph, "test", ("2i",)))
    (tmp_path / "test-easy-answers.pkl").unlink()
    with pytest.raises(DataError, match="--recompute"):
        read_queries(tmp_path, "test", random_graph)
    write_pickle(tmp_path / "valid_triples_2c.pkl", [((1, (2, 3), 0), "3-chain")])
    with pytest.raises(DataError, match="not a query of kind '2-chain'"):
        read_queries(tmp_path, "valid", random_graph)
