from __future__ import annotations

import pickle
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conekg.errors import DataError, QueryError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.source import open_graph
from conekg.query.shape import STRUCTURES, shape_of
from conekg.query.tree import Anchor, Universe
from conekg.query.tuples import query_from_tuple
from conekg.sampling.benchmark_files import read_queries
from conekg.sampling.betae_files import write_betae
from conekg.sampling.query_set import QueryBlock, load_query_set, save_query_set
from conekg.sampling.sample import sample_query_set
from oracle import Oracle
from release_files import (
    PLAIN,
    content,
    sampled_queries,
    write_pickle,
)


@pytest.mark.parametrize("split", SPLITS)
def test_betae_files_read_back(random_graph: KnowledgeGraph, tmp_path: Path, split: Split) -> None:
    query_set = replace(sampled_queries(random_graph, split, tuple(STRUCTURES)), release="BetaE")
    written = write_betae(tmp_path, query_set)
    assert sorted(written) == sorted(tmp_path.iterdir())
    names = {file.name for file in written}
    kinds = ("answers",) if split == "train" else ("easy-answers", "hard-answers")
    assert names == {
        f"{split}-queries-origin.json",
        *(f"{split}-{kind}.pkl" for kind in ("queries", *kinds)),
    }
    loaded = read_queries(tmp_path, split, random_graph)
    assert content(loaded) == content(query_set)
    assert loaded.graph_fingerprint == random_graph.fingerprint
    assert loaded.release == "BetaE"
    assert content(read_queries(tmp_path, split, random_graph, recompute=True)) == content(
        query_set
    )


def test_betae_files_hold_what_published_code_expects(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    write_betae(tmp_path, sampled_queries(random_graph, "test", ("2in", "up")))
    queries = pickle.loads((tmp_path / "test-queries.pkl").read_bytes())
    hard = pickle.loads((tmp_path / "test-hard-answers.pkl").read_bytes())
    easy = pickle.loads((tmp_path / "test-easy-answers.pkl").read_bytes())
    assert {type(found) for found in (queries, hard, easy)} == {defaultdict}
    assert set(queries) == {
        (("e", ("r",)), ("e", ("r", "n"))),
        ((("e", ("r",)), ("e", ("r",)), ("u",)), ("r",)),
    }
    small, full = (
        Oracle(np.concatenate([random_graph.edges(s) for s in splits]).tolist(), 60)
        for splits in (("train", "valid"), SPLITS)
    )
    for query in set().union(*queries.values()):
        tree = query_from_tuple(query)
        assert easy[query] == small.answer(tree)
        assert hard[query] == full.answer(tree) - small.answer(tree)


def test_betae_files_cannot_hold_the_universe_or_a_bare_entity(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    link = Anchor(0).project(0)
    for query, name in ((link & Universe().project(1), "*.r"), (link & Anchor(1), "e")):
        shapes = [STRUCTURES["2i"], shape_of(query)]
        both = sample_query_set(random_graph, "train", PLAIN, 0, shapes=shapes, count=2).query_set
        told = f"no place for queries of shape (e.r & {name}): nested tuples have no notation"
        with pytest.raises(QueryError, match=re.escape(told)) as caught:
            write_betae(tmp_path, both)
        assert caught.value.hint is not None
        assert "--shapes" in caught.value.hint
        assert not list(tmp_path.iterdir())


def test_two_structures_of_one_shape_are_one_block(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    """A query set has one block per shape, so the set that was read can be saved."""
    flat, nested = ("e", ("r", "r")), (("e", ("r",)), ("r",))
    write_pickle(tmp_path / "test-queries.pkl", {flat: {(1, (2, 3))}, nested: {((4, (0,)), (1,))}})
    found = read_queries(tmp_path, "test", random_graph, recompute=True)
    (block,) = found
    assert block.shape == STRUCTURES["2p"]
    assert block.anchors.tolist() == [[1], [4]]
    assert block.relations.tolist() == [[2, 3], [0, 1]]
    save_query_set(tmp_path / "kept.arrow", found)
    assert content(load_query_set(tmp_path / "kept.arrow", random_graph)) == content(found)


def test_a_de_morgan_form_can_be_written_without_its_union(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    query_set = sampled_queries(random_graph, "test", ("2u",))
    block = query_set.blocks[0]
    rewritten = QueryBlock(
        STRUCTURES["2u-DM"], block.anchors, block.relations, block.easy, block.hard
    )
    alone = replace(query_set, blocks=(rewritten,))
    write_betae(tmp_path, alone)
    assert content(read_queries(tmp_path, "test", random_graph)) == content(alone)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("test-queries.pkl", [1, 2], "holds a list, not a dictionary"),
        ("test-queries.pkl", {("e", ("x",)): {(1, (2,))}}, "'x' in a structure tuple"),
        ("test-queries.pkl", {("e", ("r",)): {(1, 2)}}, "does not have the form"),
        ("test-queries.pkl", {("e", ("r",)): {(60, (2,))}}, "entity id 60"),
        ("test-queries.pkl", {("e", ("r",)): 7}, "not iterable"),
        ("test-hard-answers.pkl", {}, r"(?s)no answers to the query .*--recompute"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, name: str, value: object, told: str
) -> None:
    write_betae(tmp_path, sampled_queries(random_graph, "test", ("1p",)))
    write_pickle(tmp_path / name, value)
    with pytest.raises(DataError, match=told):
        read_queries(tmp_path, "test", random_graph)


@pytest.mark.slow
def test_recomputed_official_answers_have_the_published_sizes(
    benchmark_data: Path, tmp_path: Path
) -> None:
    folder = benchmark_data / "NELL"
    query_set = read_queries(folder, "test", open_graph(folder), recompute=True)
    assert len(query_set) == 77_021
    # The mean numbers of hard answers that are published, to two digits.
    means = {block.shape.name: round(float(block.hard.lengths.mean()), 2) for block in query_set}
    assert means == {
        "1p": 1.59, "2p": 14.86, "3p": 17.52, "2i": 5.71, "3i": 6.01, "ip": 17.41, "pi": 11.85,
        "2u": 14.85, "up": 19.05, "2in": 12.87, "3in": 11.13, "inp": 12.90, "pin": 15.97,
        "pni": 12.95, "2u-DM": 14.85, "up-DM": 19.05,
    }  # fmt: skip
    write_betae(tmp_path, query_set)
    sizes = {file.name: file.stat().st_size for file in tmp_path.glob("*.pkl")}
    assert sizes == {
        "test-queries.pkl": (folder / "test-queries.pkl").stat().st_size,
        "test-hard-answers.pkl": 6_954_818,
        "test-easy-answers.pkl": 22_896_671,
    }
