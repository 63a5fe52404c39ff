from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from conekg.errors import DataError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.sampling.benchmark_files import read_queries
from conekg.sampling.betae_files import write_betae
from conekg.sampling.release_pickles import load_answers, load_dictionary
from release_files import (
    sampled_queries,
    write_pickle,
)


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
    write_betae(tmp_path, sampled_queries(random_graph, "test", ("2i",)))
    (tmp_path / name).write_bytes(pickle.dumps({("e", ("r",)): Hostile(trace)}))
    with pytest.raises(DataError, match=r"refused to unpickle: it asks for (posix|nt)\.system"):
        read_queries(tmp_path, "test", random_graph)
    assert not trace.exists()
    pickle.loads((tmp_path / name).read_bytes())  # the trap itself works
    assert trace.exists()


def test_a_file_that_is_missing_or_holds_no_dictionary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "test-hard-answers.pkl"
    with pytest.raises(DataError, match=r"(?s)no such file of answers.*--recompute") as caught:
        load_answers(path)
    assert caught.value.path == str(path)
    for value, kind in (([1, 2], "list"), ({(1, 2)}, "set"), (None, "NoneType")):
        write_pickle(path, value)
        for load in (load_answers, load_dictionary):
            with pytest.raises(DataError, match=f"holds a {kind}, not a dictionary") as caught:
                load(path)
            assert caught.value.path == str(path)
    write_pickle(path, {(1, (2,)): {3}})
    assert load_answers(path) == load_dictionary(path) == {(1, (2,)): {3}}


NO_ANSWERS = (
    r": the answers (to \(.*\) are no set of entity ids\n.*--recompute|name entity (60|-1);)"
)


@pytest.mark.parametrize("answer", [{60}, {-1}, {"x"}, {1.5}, "12", 5])
def test_answers_that_are_not_entity_ids_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, answer: object
) -> None:
    for name in ("queries", "easy-answers", "hard-answers"):
        key = ("e", ("r",)) if name == "queries" else (1, (2,))
        write_pickle(
            tmp_path / f"test-{name}.pkl", {key: {(1, (2,))} if name == "queries" else answer}
        )
    with pytest.raises(DataError, match=NO_ANSWERS):
        read_queries(tmp_path, "test", random_graph)


@pytest.mark.parametrize("answer", [{60}, {"x"}, 5])
@pytest.mark.parametrize("file_name", ["test_ans_1c.pkl", "test_ans_1c_hard.pkl"])
def test_query2box_answers_that_are_not_entity_ids_are_refused(
    random_graph: KnowledgeGraph, tmp_path: Path, file_name: str, answer: object
) -> None:
    write_pickle(tmp_path / "test_triples_1c.pkl", [((1, (2,), 0), "1-chain")])
    for name in ("test_ans_1c.pkl", "test_ans_1c_hard.pkl"):
        write_pickle(tmp_path / name, {((1, (2,)),): answer if name == file_name else {3}})
    with pytest.raises(DataError, match=NO_ANSWERS):
        read_queries(tmp_path, "test", random_graph)


def test_answers_in_a_list_count_once_each(random_graph: KnowledgeGraph, tmp_path: Path) -> None:
    write_pickle(tmp_path / "train-queries.pkl", {("e", ("r",)): {(1, (2,))}})
    write_pickle(tmp_path / "train-answers.pkl", {(1, (2,)): [7, 3, 7]})
    (block,) = read_queries(tmp_path, "train", random_graph)
    assert block.hard[0].tolist() == [3, 7]
