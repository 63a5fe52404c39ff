import cmath
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from conekg.errors import UnsupportedOperatorError
from conekg.experiments import variability as experiment
from conekg.experiments.variability import apertures_and_spreads, spread, variability
from conekg.graph.knowledge_graph import SPLITS
from conekg.graph.ragged import Ragged
from conekg.model.embed import embed
from conekg.query.plan import plan_shapes
from conekg.training.run import open_run
from oracle import Oracle
from tiny import tiny_graph, tiny_queries


def plain_spread(model, entities):
    """δ of a set of entities: complex numbers for axes, one dimension after the other."""
    axes = [
        [math.pi * math.tanh(w / model.embedding_range) for w in model.entity[e].tolist()]
        for e in sorted(entities)
    ]
    total = np.zeros(len(axes))
    for column in zip(*axes, strict=True):
        average = sum(cmath.exp(1j * angle) for angle in column) / len(column)
        for place, angle in enumerate(column):
            total[place] += cmath.phase(cmath.exp(1j * angle) / average) ** 2
    return total.max()


def test_spread_is_the_largest_squared_distance_to_the_average(trained, monkeypatch):
    model = trained["cone"].load_model("best")
    rows = [[0, 3, 9, 20], [5], [1, 2], list(range(31))]
    expected = [plain_spread(model, row) for row in rows]
    with torch.no_grad():
        assert spread(model, Ragged.from_rows(rows)).tolist() == pytest.approx(expected, rel=1e-3)
        monkeypatch.setattr(experiment, "_ANGLES_AT_ONCE", 5 * model.dim)
        assert spread(model, Ragged.from_rows(rows)).tolist() == pytest.approx(expected, rel=1e-3)
    assert expected[1] == pytest.approx(0.0, abs=1e-9)


def test_correlations_of_apertures_and_spread(trained, reproduce):
    (table,) = reproduce("variability", trained["cone"].folder)
    rows = {row["label"]: row["values"] for row in table["rows"]}
    graph, model = tiny_graph(), trained["cone"].load_model("best")
    edges = np.concatenate([graph.edges(split) for split in ("train", "valid", "test")])
    oracle = Oracle(edges.tolist(), graph.num_entities)
    for name in ("1p", "2p", "2in"):
        block = tiny_queries()["test"].block(name)
        ids = [torch.from_numpy(p.astype(np.int64)) for p in (block.anchors, block.relations)]
        plan = plan_shapes([(block.shape, len(block))])
        with torch.no_grad():
            _, half = embed(model, plan, [ids[0]], [ids[1]])
        sizes = (2 * half).sum(dim=-1).tolist()
        answers = [oracle.answer(block.query(row)) for row in range(len(block))]
        # A single answer is its own average: its δ is zero without any rounding.
        spreads = [plain_spread(model, a) if len(a) > 1 else 0.0 for a in answers]
        found = rows["ConE (cone), spearman"][name], rows["ConE (cone), pearson"][name]
        assert found[0] == pytest.approx(stats.spearmanr(sizes, spreads).statistic, abs=0.05)
        assert found[1] == pytest.approx(stats.pearsonr(sizes, spreads).statistic, abs=1e-3)


def test_a_single_answer_has_no_spread_at_all(trained, monkeypatch):
    """Rounding would give each such query a small δ, and so a random rank."""
    model, block = trained["cone"].load_model("best"), tiny_queries()["test"].block("1p")
    sizes, spreads = apertures_and_spreads(model, tiny_graph(), "test", block)
    graph = tiny_graph()
    edges = np.concatenate([graph.edges(split) for split in ("train", "valid", "test")])
    oracle = Oracle(edges.tolist(), graph.num_entities)
    alone = np.array([len(oracle.answer(block.query(row))) == 1 for row in range(len(block))])
    assert 0 < alone.sum() < len(block) == len(sizes)
    assert (spreads[alone] == 0).all()
    assert (spreads[~alone] > 0).all()

    def rounded(model, answers):
        return spread(model, answers) + 1e-6

    monkeypatch.setattr(experiment, "spread", rounded)
    _, spreads = apertures_and_spreads(model, tiny_graph(), "test", block)
    assert (spreads[alone] == 0).all()


def test_queries_without_answers_are_left_out(trained):
    model, block = trained["cone"].load_model("best"), tiny_queries()["test"].block("1p")
    graph = tiny_graph()
    there = {tuple(edge) for split in SPLITS for edge in graph.edges(split)[:, :2].tolist()}
    pairs = itertools.product(range(graph.num_entities), range(graph.num_relations))
    head, relation = next(pair for pair in pairs if pair not in there)
    anchors, relations = block.anchors.copy(), block.relations.copy()
    anchors[1], relations[1] = head, relation
    sizes, spreads = apertures_and_spreads(model, graph, "test", block)
    fewer = apertures_and_spreads(
        model, graph, "test", replace(block, anchors=anchors, relations=relations)
    )
    np.testing.assert_allclose(fewer[0], np.delete(sizes, 1), rtol=1e-4)
    np.testing.assert_allclose(fewer[1], np.delete(spreads, 1), rtol=1e-4)


def test_the_papers_correlations_stand_beside(trained, options):
    run = open_run(trained["cone"].folder)
    run.graph.name = "FB15k"
    (table,) = variability([run], options)
    assert table.row("ConE, pearson, Table 17").values["1p"] == 0.40
    for name, theirs in (("spearman", 0.27), ("pearson", 0.28)):
        ours = table.row(f"ConE (cone), {name}").values["2p"]
        apart = table.row(f"ConE (cone), {name} − paper").values["2p"]
        assert apart == pytest.approx(ours - theirs)


def test_models_other_than_cone_are_refused(trained, options):
    with pytest.raises(UnsupportedOperatorError, match="beta has no cones"):
        variability([trained["beta"]], options)
