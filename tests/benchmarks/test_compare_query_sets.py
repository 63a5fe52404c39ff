"""Sets of one distribution differ only by chance; others differ in the right statistic."""

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_query_sets

from conekg.graph.ragged import Ragged
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock, QuerySet, save_query_set


def random_block(seed, count=4000, shape="2i", same=0.25, easy=3.0, relations=8):
    """Random queries; each relation but the first repeats the first with probability `same`."""
    rng = np.random.default_rng(seed)
    template = STRUCTURES[shape]
    first = rng.integers(relations, size=count)
    others = rng.integers(relations, size=(count, template.num_relations - 1))
    others = np.where(rng.random(others.shape) < same, first[:, None], others)

    def answers(mean):
        lengths = rng.poisson(mean, size=count)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Ragged(offsets, np.zeros(offsets[-1], np.int32))

    return QueryBlock(
        template,
        rng.integers(50, size=(count, template.num_anchors)).astype(np.int32),
        np.concatenate([first[:, None], others], axis=1).astype(np.int32),
        answers(easy),
        answers(2.0),
    )


def test_sets_of_one_distribution_differ_only_by_chance():
    squares, ratios = [], []
    for seed in range(20):
        one, other = random_block(2 * seed, shape="3i"), random_block(2 * seed + 1, shape="3i")
        squares += [z**2 for z in compare_query_sets.differences(one, other).values()]
        ratios += compare_query_sets.relation_chi2(one, other)
    assert len(squares) == 20 * 11
    assert np.mean(squares) == pytest.approx(1.0, abs=0.35)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)


def test_a_difference_shows_in_its_statistic_only():
    one = random_block(1)
    z = compare_query_sets.differences(one, random_block(2, same=0.4))
    assert min(z, key=z.get) == "relations 0 and 1 the same"
    assert z["relations 0 and 1 the same"] < -5
    assert all(abs(value) < 4 for name, value in z.items() if not name.startswith("relations"))
    z = compare_query_sets.differences(one, random_block(2, easy=3.3))
    assert z["easy answers"] < -5
    (first, _) = compare_query_sets.relation_chi2(one, random_block(2, relations=7))
    assert first > 10


def test_a_difference_is_given_in_standard_errors():
    """Two of four queries against one of four: (1/2 − 1/4) / √((1/2·1/2)/4 + (1/4·3/4)/4)."""

    def block(pairs):
        return QueryBlock(
            STRUCTURES["2i"],
            np.array([[0, 1]] * 4, np.int32),
            np.array(pairs, np.int32),
            Ragged.empty(4),
            Ragged.empty(4),
        )

    one = block([(0, 0), (2, 2), (0, 1), (4, 2)])
    other = block([(0, 0), (2, 4), (0, 6), (4, 2)])
    z = compare_query_sets.differences(one, other)
    assert z["relations 0 and 1 the same"] == pytest.approx(0.25 / np.sqrt(7 / 64))
    assert z["relations 0 and 1 inverse"] == pytest.approx(0.25 / np.sqrt(3 / 64))
    assert "easy answers" not in z, "no query has any"


def test_the_script_prints_a_line_per_shape_and_one_for_all(tmp_path, monkeypatch, capsys):
    for name, seeds in {"one": (1, 2), "two": (3, 4), "three": (5, 6)}.items():
        blocks = (random_block(seeds[0], 300), random_block(seeds[1], 300, shape="2p"))
        save_query_set(tmp_path / f"{name}.arrow", QuerySet("test", blocks))
    paths = [str(tmp_path / f"{name}.arrow") for name in ("one", "two", "three")]
    monkeypatch.setattr(sys, "argv", ["compare_query_sets.py", *paths])
    assert compare_query_sets.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["2i", "2p", "all"]
    assert "300 against 600 queries" in lines[0]


def test_sets_without_a_common_shape_are_refused(tmp_path, monkeypatch, capsys):
    for shape in ("2i", "2p"):
        blocks = (random_block(1, 30, shape=shape),)
        save_query_set(tmp_path / f"{shape}.arrow", QuerySet("test", blocks))
    paths = [str(tmp_path / f"{shape}.arrow") for shape in ("2i", "2p")]
    monkeypatch.setattr(sys, "argv", ["compare_query_sets.py", *paths])
    assert compare_query_sets.main() == 2
    assert "no shape in common" in capsys.readouterr().err
