from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import SamplingProtocol
from conekg.sampling.query_set import QueryBlock
from conekg.sampling.stream import QueryStream, ShapeStream
from oracle import Oracle

PROTOCOL = SamplingProtocol("plain", cap=12, train_cap=12, train_negation_cap=12, patience=5_000)
COUNTS = {STRUCTURES["1p"]: 5, STRUCTURES["2i"]: 8, STRUCTURES["pni"]: 3}


def ids(blocks: tuple[QueryBlock, ...]) -> list[list[list[int]]]:
    return [np.hstack([block.anchors, block.relations]).tolist() for block in blocks]


def test_streamed_queries_have_their_answers(random_graph: KnowledgeGraph) -> None:
    oracle = Oracle(random_graph.edges("train").tolist(), random_graph.num_entities)
    for blocks in islice(QueryStream(random_graph, COUNTS, PROTOCOL, seed=0), 5):
        assert [len(block) for block in blocks] == [5, 8, 3]
        for block in blocks:
            assert len(block.easy.values) == 0
            for row in range(len(block)):
                assert set(block.hard[row].tolist()) == oracle.answer(block.query(row))
                assert 1 <= len(block.hard[row]) <= 12


def test_a_stream_goes_on_where_another_stopped(random_graph: KnowledgeGraph) -> None:
    whole = QueryStream(random_graph, COUNTS, PROTOCOL, seed=4)
    expected = [ids(blocks) for blocks in islice(whole, 6)]
    first = QueryStream(random_graph, COUNTS, PROTOCOL, seed=4, workers=2)
    seen = [ids(next(first)) for _ in range(2)]
    rest = QueryStream(random_graph, COUNTS, PROTOCOL, seed=4, positions=first.positions)
    seen += [ids(next(rest)) for _ in range(4)]
    assert seen == expected
    assert expected[0] != expected[1]
    other = QueryStream(random_graph, COUNTS, PROTOCOL, seed=5)
    assert ids(next(other)) != expected[0]


def test_batches_of_any_size_cut_the_same_stream(random_graph: KnowledgeGraph) -> None:
    shape = STRUCTURES["2p"]
    whole = ShapeStream(random_graph, shape, PROTOCOL, 0).take(30)
    parts = ShapeStream(random_graph, shape, PROTOCOL, 0)
    pieces = [parts.take(size) for size in (1, 12, 17)]
    assert np.array_equal(whole.anchors, np.concatenate([piece.anchors for piece in pieces]))


def test_a_stream_of_paths_starts_where_its_protocol_says(random_graph: KnowledgeGraph) -> None:
    """Walks from the anchor do not favour paths with many answers."""
    open_ended = SamplingProtocol("open", cap=None, patience=5_000)
    streams = {
        end: ShapeStream(
            random_graph, STRUCTURES["2p"], replace(open_ended, train_paths_from=end), seed=0
        ).take(2000)
        for end in ("answer", "anchor")
    }
    means = {end: float(block.hard.lengths.mean()) for end, block in streams.items()}
    assert means["anchor"] < 0.9 * means["answer"]


@pytest.mark.parametrize("count", [0, -1])
@pytest.mark.parametrize("name", ["1p", "2p"])
def test_fewer_than_one_query_is_refused(
    random_graph: KnowledgeGraph, name: str, count: int
) -> None:
    stream = ShapeStream(random_graph, STRUCTURES[name], PROTOCOL, 0)
    with pytest.raises(ConfigError, match=f"{count} queries of shape {name} are asked for"):
        stream.take(count)
    assert stream.position == 0


def test_patience_counts_only_attempts_in_a_row_that_find_nothing(
    random_graph: KnowledgeGraph,
) -> None:
    hasty = replace(PROTOCOL, patience=2048)
    stream = ShapeStream(random_graph, STRUCTURES["2i"], hasty, 0)
    assert len(stream.take(6000)) == 6000
    assert stream.position > 2 * hasty.patience


def test_a_shape_the_graph_does_not_hold_ends_in_a_clear_error(film_graph: KnowledgeGraph) -> None:
    none = np.zeros((0, 3), dtype=np.int32)
    lonely = {**dict.fromkeys(SPLITS, none), "train": film_graph.edges("train")[:2]}
    graph = KnowledgeGraph("one fact", film_graph.vocabulary, lonely)
    with pytest.raises(ConfigError, match="no query of shape 2i was found in 6,144 attempts"):
        ShapeStream(graph, STRUCTURES["2i"], PROTOCOL, 0).take(1)
    empty = KnowledgeGraph("empty", film_graph.vocabulary, dict.fromkeys(SPLITS, none))
    with pytest.raises(ConfigError, match="no links"):
        ShapeStream(empty, STRUCTURES["1p"], PROTOCOL, 0).take(1)
