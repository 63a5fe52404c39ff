from __future__ import annotations

import os
import pickle
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from conekg.errors import DataError, QueryError, StoreError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.source import open_graph
from conekg.query.shape import STRUCTURES, shape_of
from conekg.query.tree import Anchor, Universe
from conekg.query.tuples import query_from_tuple
from conekg.sampling.benchmark_files import read_queries, write_betae, write_query2box
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.query_set import QueryBlock, QuerySet, load_query_set, save_query_set
from conekg.sampling.sample import sample_query_set
from conekg.sampling.source import open_all_queries
from oracle import Oracle

PLAIN = SamplingProtocol("plain", cap=12, patience=20_000)
QUERY2BOX = ("1p", "2p", "3p", "2i", "3i", "ip", "pi", "2u", "up")


def sampled(graph: KnowledgeGraph, split: Split, names: tuple[str, ...]) -> QuerySet:
    shapes = [STRUCTURES[name] for name in names]
    return sample_query_set(graph, split, PLAIN, 0, shapes=shapes, count=10).query_set


def content(query_set: QuerySet) -> dict[str, dict[tuple, tuple[list[int], list[int]]]]:
    """Answers by shape and query, whatever the order of the queries."""
    return {
        block.shape.name: {
            (*block.anchors[row].tolist(), *block.relations[row].tolist()): (
                block.easy[row].tolist(),
                block.hard[row].tolist(),
            )
            for row in range(len(block))
        }
        for block in query_set
    }


@pytest.mark.parametrize("split", SPLITS)
def test_betae_files_read_back(random_graph: KnowledgeGraph, tmp_path: Path, split: Split) -> None:
    query_set = replace(sampled(random_graph, split, tuple(STRUCTURES)), release="BetaE")
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


@pytest.mark.parametrize("split", SPLITS)
def test_query2box_files_read_back(
    random_graph: KnowledgeGraph, tmp_path: Path, split: Split
) -> None:
    query_set = replace(sampled(random_graph, split, QUERY2BOX), release="Query2Box")
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


def test_betae_files_hold_what_published_code_expects(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    write_betae(tmp_path, sampled(random_graph, "test", ("2in", "up")))
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


def test_query2box_files_hold_what_published_code_expects(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    query_set = sampled(random_graph, "valid", ("2p", "ip"))
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


@pytest.mark.parametrize("write", [write_betae, write_query2box])
@pytest.mark.parametrize(
    ("error", "told"), [(OSError, "cannot be written: No space left"), (KeyboardInterrupt, None)]
)
def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    random_graph: KnowledgeGraph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path, QuerySet], list[Path]],
    error: type[BaseException],
    told: str | None,
) -> None:
    query_set = sampled(random_graph, "test", ("2p",))
    write(tmp_path, query_set)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 4

    def stop(_content: object, file: BinaryIO, **_: object) -> None:
        file.write(b"half")
        raise error(28, "No space left on device")

    monkeypatch.setattr(pickle, "dump", stop)
    with pytest.raises(StoreError if error is OSError else error, match=told):
        write(tmp_path, query_set)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


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


def test_query2box_files_cannot_hold_negation(random_graph: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="no place for queries of shape 2in"):
        write_query2box(tmp_path, sampled(random_graph, "test", ("2p", "2in")))
    assert list(tmp_path.iterdir()) == []


class Hostile:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.trace}",)


@pytest.mark.parametrize("name", ["test-queries.pkl", "test-hard-answers.pkl"])
def test_a_hostile_pickle_runs_nothing(
    random_graph: KnowledgeGraph, tmp_path: Path, name: str
) -> None:
    trace = tmp_path / "trace"
    write_betae(tmp_path, sampled(random_graph, "test", ("2i",)))
    (tmp_path / name).write_bytes(pickle.dumps({("e", ("r",)): Hostile(trace)}))
    with pytest.raises(DataError, match=r"refused to unpickle: it asks for (posix|nt)\.system"):
        read_queries(tmp_path, "test", random_graph)
    assert not trace.exists()
    pickle.loads((tmp_path / name).read_bytes())  # the trap itself works
    assert trace.exists()


def broken(folder: Path, name: str, value: object) -> None:
    (folder / name).write_bytes(pickle.dumps(value))


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
    write_betae(tmp_path, sampled(random_graph, "test", ("1p",)))
    broken(tmp_path, name, value)
    with pytest.raises(DataError, match=told):
        read_queries(tmp_path, "test", random_graph)


NO_ANSWERS = (
    r": the answers (to \(.*\) are no set of entity ids\n.*--recompute|name entity (60|-1);)"
)


@pytest.mark.parametrize("answer", [{60}, {-1}, {"x"}, {1.5}, "12", 5])
def test_answers_that_are_not_entity_ids_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, answer: object
) -> None:
    for name in ("queries", "easy-answers", "hard-answers"):
        key = ("e", ("r",)) if name == "queries" else (1, (2,))
        broken(tmp_path, f"test-{name}.pkl", {key: {(1, (2,))} if name == "queries" else answer})
    with pytest.raises(DataError, match=NO_ANSWERS):
        read_queries(tmp_path, "test", random_graph)


def test_answers_in_a_list_count_once_each(random_graph: KnowledgeGraph, tmp_path: Path) -> None:
    broken(tmp_path, "train-queries.pkl", {("e", ("r",)): {(1, (2,))}})
    broken(tmp_path, "train-answers.pkl", {(1, (2,)): [7, 3, 7]})
    (block,) = read_queries(tmp_path, "train", random_graph)
    assert block.hard[0].tolist() == [3, 7]


@pytest.mark.parametrize("answer", [{60}, {"x"}, 5])
@pytest.mark.parametrize("file_name", ["test_ans_1c.pkl", "test_ans_1c_hard.pkl"])
def test_query2box_answers_that_are_not_entity_ids_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, file_name: str, answer: object
) -> None:
    broken(tmp_path, "test_triples_1c.pkl", [((1, (2,), 0), "1-chain")])
    for name in ("test_ans_1c.pkl", "test_ans_1c_hard.pkl"):
        broken(tmp_path, name, {((1, (2,)),): answer if name == file_name else {3}})
    with pytest.raises(DataError, match=NO_ANSWERS):
        read_queries(tmp_path, "test", random_graph)


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
    broken(tmp_path, "test_triples_1c.pkl", [entry])
    for name in ("test_ans_1c.pkl", "test_ans_1c_hard.pkl"):
        broken(tmp_path, name, {((60, (2,)),): {3}, ((1, (10,)),): {3}, ((1, (2,)),): {3}})
    with pytest.raises(DataError, match=told) as caught:
        read_queries(tmp_path, "test", random_graph)
    assert caught.value.path == str(tmp_path / "test_triples_1c.pkl")


def test_two_structures_of_one_shape_are_one_block(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    """A query set has one block per shape, so the set that was read can be saved."""
    flat, nested = ("e", ("r", "r")), (("e", ("r",)), ("r",))
    broken(tmp_path, "test-queries.pkl", {flat: {(1, (2, 3))}, nested: {((4, (0,)), (1,))}})
    found = read_queries(tmp_path, "test", random_graph, recompute=True)
    (block,) = found
    assert block.shape == STRUCTURES["2p"]
    assert block.anchors.tolist() == [[1], [4]]
    assert block.relations.tolist() == [[2, 3], [0, 1]]
    save_query_set(tmp_path / "kept.arrow", found)
    assert content(load_query_set(tmp_path / "kept.arrow", random_graph)) == content(found)


def test_a_query2box_folder_without_links_holds_queries(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    query_set = sampled(random_graph, "valid", ("2i",))
    write_query2box(tmp_path, query_set)
    found = open_all_queries(tmp_path, random_graph)
    assert list(found) == ["valid"]
    assert content(found["valid"]) == content(query_set)


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
    write_betae(tmp_path, sampled(random_graph, "test", ("2i",)))
    (tmp_path / "test-easy-answers.pkl").unlink()
    with pytest.raises(DataError, match="--recompute"):
        read_queries(tmp_path, "test", random_graph)
    broken(tmp_path, "valid_triples_2c.pkl", [((1, (2, 3), 0), "3-chain")])
    with pytest.raises(DataError, match="not a query of kind '2-chain'"):
        read_queries(tmp_path, "valid", random_graph)


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


def test_a_de_morgan_form_can_be_written_without_its_union(
    random_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    query_set = sampled(random_graph, "test", ("2u",))
    block = query_set.blocks[0]
    rewritten = QueryBlock(
        STRUCTURES["2u-DM"], block.anchors, block.relations, block.easy, block.hard
    )
    alone = replace(query_set, blocks=(rewritten,))
    write_betae(tmp_path, alone)
    assert content(read_queries(tmp_path, "test", random_graph)) == content(alone)
