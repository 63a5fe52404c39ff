from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError, DataError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, with_inverses
from conekg.graph.vocabulary import NameTable, Vocabulary

VOCABULARY = Vocabulary(NameTable("entity", ["a", "b", "c"]), NameTable("relation", ["r", "s"]))
triple_lists = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)), max_size=9
)


def make(
    train: list[tuple[int, int, int]], test: list[tuple[int, int, int]] = ()
) -> KnowledgeGraph:  # type: ignore[assignment]
    parts = {"train": train, "test": test}
    return KnowledgeGraph(
        "tiny",
        VOCABULARY,
        {s: with_inverses(np.array(p, dtype=np.int32).reshape(-1, 3)) for s, p in parts.items()},
    )


@given(triple_lists, triple_lists)
def test_nested_graphs_hold_the_splits_before_them(
    train: list[tuple[int, int, int]], test: list[tuple[int, int, int]]
) -> None:
    graph = make(train, test)
    told = {"train": train, "valid": [], "test": test}
    so_far: set[tuple[int, int, int]] = set()
    for split in SPLITS:
        so_far |= set(told[split])
        for h in range(3):
            for r in range(2):
                expected = sorted({t for x, y, t in so_far if (x, y) == (h, r)})
                assert graph.adjacency(split).neighbors(h, 2 * r).tolist() == expected
                backwards = sorted({x for x, y, t in so_far if (t, y) == (h, r)})
                assert graph.adjacency(split).neighbors(h, 2 * r + 1).tolist() == backwards


@given(triple_lists)
def test_triples_are_the_forward_edges(train: list[tuple[int, int, int]]) -> None:
    forward = [(h, r >> 1, t) for h, r, t in make(train).triples("train").tolist()]
    assert forward == train


@pytest.mark.parametrize("of", ["adjacency", "edges", "triples"])
def test_an_unknown_split_is_refused(film_graph: KnowledgeGraph, of: str) -> None:
    with pytest.raises(ConfigError, match="'all' is no split; there are train, valid, test"):
        getattr(film_graph, of)("all")


def test_edges_of_an_unknown_split_are_refused() -> None:
    edges = with_inverses(np.array([[0, 0, 1]], dtype=np.int32))
    with pytest.raises(ConfigError, match="'training' is no split; there are train, valid, test"):
        KnowledgeGraph("tiny", VOCABULARY, {"training": edges})  # type: ignore[dict-item]


def test_edges_cannot_be_changed() -> None:
    mine = with_inverses(np.array([[0, 0, 1]], dtype=np.int32))
    graph = KnowledgeGraph("tiny", VOCABULARY, {"train": mine})
    with pytest.raises(ValueError, match="read-only"):
        graph.edges("train")[0, 0] = 2
    mine[0, 0] = 2  # the graph has its own copy
    assert graph.edges("train")[0, 0] == 0


@given(triple_lists, st.randoms(use_true_random=False))
def test_the_fingerprint_ignores_the_order_of_edges(
    train: list[tuple[int, int, int]], random: object
) -> None:
    shuffled = list(train)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert make(train).fingerprint == make(shuffled).fingerprint


def test_the_fingerprint_sees_names_edges_and_splits() -> None:
    graph = make([(0, 0, 1)])
    renamed = Vocabulary(NameTable("entity", ["a", "bc", "d"]), VOCABULARY.relations)
    others = [
        make([(0, 1, 1)]),
        make([], [(0, 0, 1)]),
        make([(0, 0, 1)], [(0, 0, 2)]),
        KnowledgeGraph("tiny", renamed, {"train": graph.edges("train")}),
    ]
    assert len({graph.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_the_fingerprint_ignores_labels_and_the_graphs_name() -> None:
    graph = make([(0, 0, 1)])
    labelled = Vocabulary(
        NameTable("entity", ["a", "b", "c"], ["A", "B", "C"]), VOCABULARY.relations
    )
    other = KnowledgeGraph("other", labelled, {"train": graph.edges("train")})
    assert other.fingerprint == graph.fingerprint


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    code = (
        "import numpy as np\n"
        "from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses\n"
        "from conekg.graph.vocabulary import NameTable, Vocabulary\n"
        "v = Vocabulary(NameTable('entity', ['a', 'b', 'c']), NameTable('relation', ['r', 's']))\n"
        "e = with_inverses(np.array([[0, 0, 1]], dtype=np.int32))\n"
        "print(KnowledgeGraph('tiny', v, {'train': e}).fingerprint)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == make([(0, 0, 1)]).fingerprint


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ([3, 0, 0], "entity id 3 in the train edges of graph 'tiny'; ids go from 0 to 2"),
        ([0, 4, 0], "relation id 4"),
        ([0, 0, -1], "entity id -1"),
    ],
)
def test_ids_without_a_name_are_refused(edge: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        KnowledgeGraph("tiny", VOCABULARY, {"train": np.array([edge], dtype=np.int32)})


@pytest.mark.parametrize(
    "edges", [np.zeros((2, 2), np.int32), np.zeros((2, 3), np.int64), [[0, 0, 1], [1, 1, 0]]]
)
def test_edges_of_another_shape_or_type_are_refused(edges: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"\[n, 3\] array of int32"):
        KnowledgeGraph("tiny", VOCABULARY, {"train": edges})


def test_repr_names_the_graph_and_its_sizes() -> None:
    assert repr(make([(0, 0, 1)])) == (
        "<KnowledgeGraph 'tiny': 3 entities, 2 relations, triples: 1 train, 0 valid, 0 test>"
    )
