from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from conekg.errors import DataError, QueryError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.sampling.benchmark_files import read_queries
from conekg.sampling.query2box_files import write_query2box
from conekg.sampling.source import open_all_queries
from release_files import (
    content,
    sampled_queries,
    write_pickle,
)

QUERY2BOX = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up")


@pytest.mark.parametrize("split", SPLITS)
def test_query2box_files_read_back(
    random_graph: KnowledgeGraph, tmp_path: Path, split: Split
) -> None:
    query_set = replace(sampled_queries(random_graph, split, QUERY2BOX), release="Query2Box")
    written = write_query2box(tmp_path, query_set)
    assert sorted(written) == sorted(tmp_path.iterdir())
    pickles = [file for file in written if file.suffix == ".pkl"]
    assert len(pickles) == (2 if split == "train" else 3) * len(QUERY2BOX) == len(written) - 1
    loaded = read_queries(tmp_path, split, random_graph)
    assert content(loaded) == content(query_set)
    assert loaded.release == "Query2Box"
    assert content(read_queries(tmp_path, split, random_graph, recompute=True)) == content(
        query_set
    )


def test_query2box_files_hold_what_published_code_expects(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    query_set = sampled_queries(random_graph, "valid", ("2p", "ip"))
    write_query2box(tmp_path, query_set)
    chains = pickle.loads((tmp_path / "valid_triples_2c.pkl").read_bytes())
    block = query_set.block("2p")
    (anchor,), relations = block.anchors[0].tolist(), tuple(block.relations[0].tolist())
    assert chains[0] == ((anchor, relations, 0), "2-chain")
    answers = pickle.loads((tmp_path / "valid_ans_2c.pkl").read_bytes())
    both = set(block.easy[0].tolist()) | set(block.hard[0].tolist())
    assert answers[((anchor, relations),)] == both
    block = query_set.block("ip")
    (a, b), (r, s, t) = block.anchors[0].tolist(), block.relations[0].tolist()
    entry = pickle.loads((tmp_path / "valid_triples_ic.pkl").read_bytes())[0]
    assert entry == ((a, (r,)), (b, (s,)), t, 0, "inter-chain")
    hard = pickle.loads((tmp_path / "valid_ans_ic_hard.pkl").read_bytes())
    assert hard[(a, (r,)), (b, (s,)), t] == set(block.hard[0].tolist())


def test_query2box_files_cannot_hold_negation(random_graph: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="no place for queries of shape 2in"):
        write_query2box(tmp_path, sampled_queries(random_graph, "test", ("2p", "2in")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (((60, (2,), 0), "1-chain"), "entity id 60 in a query of shape 1p"),
        (((1, (10,), 0), "1-chain"), "relation id 10 in a query of shape 1p"),
        (((1, (2,)), "1-chain"), "is not a query of kind '1-chain'"),
        ((1, "1-chain"), "is not a query of kind '1-chain'"),
        (((1, (2,), 0), "2-chain"), "is not a query of kind '1-chain'"),
        (((1, (2, 3), 0), "1-chain"), "does not have the form"),
    ],
)
def test_query2box_queries_that_do_not_fit_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, entry: object, told: str
) -> None:
    write_pickle(tmp_path / "test_triples_1c.pkl", [entry])
    for name in ("test_ans_1c.pkl", "test_ans_1c_hard.pkl"):
        write_pickle(tmp_path / name, {((60, (2,)),): {3}, ((1, (10,)),): {3}, ((1, (2,)),): {3}})
    with pytest.raises(DataError, match=told) as caught:
        read_queries(tmp_path, "test", random_graph)
    assert caught.value.path == str(tmp_path / "test_triples_1c.pkl")


def test_a_query2box_folder_without_links_holds_queries(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    query_set = sampled_queries(random_graph, "valid", ("2i",))
    write_query2box(tmp_path, query_set)
    found = open_all_queries(tmp_path, random_graph)
    assert list(found) == ["valid"]
    assert content(found["valid"]) == content(query_set)
