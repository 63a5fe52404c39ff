"""Mean numbers of answers by each way to draw, against plain sets and the published means."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_path_draws
from compare_path_draws import Mean, mean_answers

from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, with_inverses
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.shape import STRUCTURES
from oracle import Oracle


def validation_and_test_oracles(graph):
    """Oracles of the validation graph, for easy answers, and of the test graph, for all."""
    return [
        Oracle(
            [tuple(edge) for part in SPLITS[:count] for edge in graph.edges(part).tolist()],
            graph.num_entities,
        )
        for count in (2, 3)
    ]


def test_the_mean_over_all_paths_of_a_graph_is_that_of_plain_sets(film_graph):
    """If asked for all paths with a hard answer, both ways to draw find every one."""
    small, full = validation_and_test_oracles(film_graph)
    sizes = []
    relations = range(film_graph.num_relations)
    for anchor in range(film_graph.num_entities):
        for first in relations:
            for second in relations:
                query = STRUCTURES["2p"].ground([anchor], [first, second])
                answers = full.answer(query)
                if second != first ^ 1 and answers - small.answer(query):
                    sizes.append(len(answers))
    for forwards in (False, True):
        mean = mean_answers(film_graph, "2p", len(sizes), forwards=forwards, seed=0)
        assert mean.value == pytest.approx(sum(sizes) / len(sizes))
        spread = (sum((size - mean.value) ** 2 for size in sizes) / len(sizes)) ** 0.5
        assert mean.error == pytest.approx(spread / len(sizes) ** 0.5)


def test_narrowing_intersections_have_different_relations_and_fewer_answers_than_their_links():
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers([12, 3, 12], size=(90, 3), dtype=np.int32), axis=0)
    parts = np.split(rng.permutation(triples), [50, 65])
    vocabulary = Vocabulary(
        NameTable("entity", [f"e{i}" for i in range(12)]), NameTable("relation", ["a", "b", "c"])
    )
    graph = KnowledgeGraph(
        "random",
        vocabulary,
        {split: with_inverses(part) for split, part in zip(SPLITS, parts, strict=True)},
    )
    small, full = validation_and_test_oracles(graph)
    links = [
        (head, relation)
        for head in range(graph.num_entities)
        for relation in range(graph.num_relations)
        if full.answer(STRUCTURES["1p"].ground([head], [relation]))
    ]
    narrow, others = [], 0
    for first, second in itertools.permutations(links, 2):
        query = STRUCTURES["2i"].ground([first[0], second[0]], [first[1], second[1]])
        answers = full.answer(query)
        if not answers - small.answer(query):
            continue
        ends = [full.answer(STRUCTURES["1p"].ground([h], [r])) for h, r in (first, second)]
        if first[1] != second[1] and all(answers < end for end in ends):
            narrow.append(len(answers))
        else:
            others += 1
    assert len(narrow) > 50
    assert others > 50
    assert len(set(narrow)) > 2
    found = mean_answers(graph, "2i", len(narrow), seed=0, narrowing=True)
    assert found.value == pytest.approx(sum(narrow) / len(narrow))


def test_the_distance_to_the_published_mean_is_in_standard_errors_of_the_difference():
    assert Mean(10.0, 3.0).errors_from(10.0 + 6 * 2**0.5) == pytest.approx(2.0)


@pytest.mark.slow
def test_query2boxs_paths_were_drawn_from_their_anchors(benchmark_data, monkeypatch, capsys):
    folder = str(benchmark_data / "NELL")
    monkeypatch.setattr(sys, "argv", ["compare_path_draws.py", folder, "--seed", "1"])
    assert compare_path_draws.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert ["that narrows" in line for line in lines[4:]] == [False, True, False, True]
    for line in lines[:4]:
        z = float(line.split()[-1])
        assert abs(z) < 3 if "from its anchor" in line else z < -10, line


def test_a_graph_without_query2box_queries_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compare_path_draws.py", "geography"])
    assert compare_path_draws.main() == 2
    assert "Query2Box has no queries of 'geography'" in capsys.readouterr().err
