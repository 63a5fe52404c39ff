"""Means of answers by either draw, against plain sets, and beside what was published."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_path_draws
from compare_path_draws import Mean, mean_answers

from conekg.graph.knowledge_graph import SPLITS
from conekg.query.shape import STRUCTURES
from oracle import Oracle


def test_all_paths_of_a_graph_have_their_mean(film_graph):
    """Asked for as many as there are, both draws find every path that lacks an answer."""
    small, full = (
        Oracle(
            [tuple(edge) for part in SPLITS[:count] for edge in film_graph.edges(part).tolist()],
            film_graph.num_entities,
        )
        for count in (2, 3)
    )
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


def test_a_distance_is_in_errors_of_the_difference():
    assert Mean(10.0, 3.0).errors_from(10.0 + 6 * 2**0.5) == pytest.approx(2.0)


@pytest.mark.slow
def test_query2boxs_paths_were_drawn_from_their_anchors(benchmark_data, monkeypatch, capsys):
    folder = str(benchmark_data / "NELL")
    monkeypatch.setattr(sys, "argv", ["compare_path_draws.py", folder, "--seed", "1"])
    assert compare_path_draws.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("from an answer" in line for line in lines[4:]), "intersections have no first hop"
    for line in lines[:4]:
        z = float(line.split()[-1])
        assert abs(z) < 3 if "from its anchor" in line else z < -10, line


def test_a_graph_that_query2box_has_not_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compare_path_draws.py", "geography"])
    assert compare_path_draws.main() == 2
    assert "Query2Box has no queries of 'geography'" in capsys.readouterr().err
