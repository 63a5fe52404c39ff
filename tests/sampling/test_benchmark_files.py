from __future__ import annotations

from pathlib import Path

import pytest

from conekg.errors import DataError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.sampling.benchmark_files import Form, read_queries, write_queries
from conekg.sampling.betae_files import write_betae
from conekg.sampling.source import open_all_queries
from release_files import content, sampled_queries, write_pickle


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


@pytest.mark.parametrize(("first", "second"), [("betae", "query2box"), ("query2box", "betae")])
def test_queries_of_one_form_are_not_hidden_behind_those_of_the_other(
    random_graph: KnowledgeGraph, tmp_path: Path, first: Form, second: Form
) -> None:
    """Of two forms in one folder only one is read, so the later export would be read as the earlier
    one, or hide a release's queries."""
    earlier, later = (
        sampled_queries(random_graph, "test", ("1p", "2i"), count=5, seed=seed) for seed in (0, 1)
    )
    assert content(earlier) != content(later)
    write_queries(tmp_path, earlier, first)
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DataError, match="test queries in the form of") as caught:
        write_queries(tmp_path, later, second)
    assert "choose another folder" in str(caught.value.hint)
    assert files == {path: path.read_bytes() for path in tmp_path.iterdir()}
    # The same form again replaces them, and other splits are no obstacle.
    write_queries(tmp_path, later, first)
    write_queries(tmp_path, sampled_queries(random_graph, "valid", ("2i",)), second)
    assert content(read_queries(tmp_path, "test", random_graph)) == content(later)
    assert read_queries(tmp_path, "valid", random_graph).split == "valid"
