import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from conekg.errors import DataError, UnsupportedOperatorError
from conekg.experiments.membership import Curve, Tally, _Half, membership
from conekg.experiments.published import published
from conekg.model.embed import embed
from conekg.query.plan import plan_shapes
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.run import open_run
from oracle import Oracle
from tiny import tiny_graph, tiny_queries

GRAPHS = {"valid": ("train", "valid"), "test": ("train", "valid", "test")}


def inside(model, first, second, entity):
    """In how many dimensions one entity is inside one region, in plain arithmetic."""
    weights = model.entity[entity].tolist()
    count = 0
    for weight, a, b in zip(weights, first.tolist(), second.tolist(), strict=True):
        if model.name == "cone":
            angle = math.pi * math.tanh(weight / model.embedding_range)
            apart = abs((angle - a + math.pi) % (2 * math.pi) - math.pi)
        else:
            apart = abs(weight - a)
        count += apart <= b
    return count


def counted(model, split, structures):
    """By structure, for each query the dimensions inside by entity, and its set of answers."""
    graph = tiny_graph()
    edges = np.concatenate([graph.edges(part) for part in GRAPHS[split]])
    oracle = Oracle(edges.tolist(), graph.num_entities)
    found = {}
    for block in tiny_queries()[split]:
        if block.shape.name not in structures or not len(block):
            continue
        found[block.shape.name] = []
        for row in range(len(block)):
            plan = plan_shapes([(block.shape, 1)])
            ids = [
                torch.from_numpy(part[row : row + 1].astype(np.int64))
                for part in (block.anchors, block.relations)
            ]
            with torch.no_grad():
                branches = list(zip(*embed(model, plan, [ids[0]], [ids[1]]), strict=True))
            counts = [
                max(inside(model, *branch, entity) for branch in branches)
                for entity in range(graph.num_entities)
            ]
            found[block.shape.name].append((counts, oracle.answer(block.query(row))))
    return found


def expected(model, found, least):
    """Precision and recall at a threshold of `least` dimensions, with Python sets."""
    by_structure, where_taken, pooled = [], [], np.zeros(3)
    for queries in found.values():
        each, of_takers = [], []
        for counts, true in queries:
            taken = {entity for entity, count in enumerate(counts) if count >= least}
            both = len(taken & true)
            each.append((both / max(1, len(taken)), both / len(true)))
            of_takers += [both / len(taken)] if taken else []
            pooled += (len(taken), len(true), both)
        by_structure.append(np.mean(each, axis=0))
        where_taken += [np.mean(of_takers)] if of_takers else []
    precision, recall = np.mean(by_structure, axis=0)
    return {
        "share": least / model.dim,
        "precision": precision,
        "recall": recall,
        "precision where any is taken": np.mean(where_taken) if where_taken else 0.0,
        "pooled precision": pooled[2] / max(1, pooled[0]),
        "pooled recall": pooled[2] / pooled[1],
    }


@pytest.fixture(scope="module")
def wide_runs(trained):
    """Runs whose models have regions so wide that some entities are inside, but not all."""
    runs = {}
    for name in ("cone", "box"):
        run = open_run(trained[name].folder)
        model = run.new_model().eval()
        with torch.no_grad():
            if name == "cone":
                model.projection[-1].bias[model.dim :] += 0.2
            else:
                model.relation_offset += 0.25
            model.gate.outer.bias += 4.0
        runs[name] = with_model(run, model)
    return runs


def with_model(run, model):
    class Changed(type(run)):
        def load_model(self, which="best", device="cpu"):
            return model

    return Changed(run.folder)


def test_the_rule_is_a_majority_of_dimensions(wide_runs, options):
    positive, negative = membership([wide_runs["cone"], wide_runs["box"]], options)
    for split in ("valid", "test"):
        for name, title in (("cone", "ConE (cone)"), ("box", "Query2Box (box)")):
            model = wide_runs[name].load_model()
            assert model.dim == 32
            values = expected(model, counted(model, split, POSITIVE_STRUCTURES), 20)
            assert 0 < values["recall"] < 1
            assert 0 < values["precision"] < 1
            assert positive.row(f"{title}, {split}").values == pytest.approx(values, abs=1e-6)
        cone = wide_runs["cone"].load_model()
        values = expected(cone, counted(cone, split, NEGATION_STRUCTURES), 20)
        assert negative.row(f"ConE (cone), {split}").values == pytest.approx(values, abs=1e-6)
    assert len(negative.rows) == 3, "a box has no complement"
    assert any("Query2Box (box) has no negation" in note for note in negative.notes)


def test_a_majority_of_an_odd_number_is_rounded_up(wide_runs):
    values = np.arange(13) / 13
    half = _Half("twelve dimensions", POSITIVE_STRUCTURES, published("tab:answer_epfo", None))
    half.add(wide_runs["cone"], {"test": Curve(*(values for _ in range(5)))})
    (row,) = half.table([]).rows
    assert set(row.values.values()) == {8 / 12, 8 / 13}, "5/8 of 12 is 7.5"


def test_pooled_counts_are_taken_as_they_are():
    shares, taken = np.array([0.5, 1.0]), np.array([4.0, 1.0])
    tally = Tally(shares, shares, shares, taken, both=np.array([1.0, 1.0]), true=2.0)
    curve = Curve.of([tally])
    assert curve.pooled_precision.tolist() == [0.25, 1.0], "one entity taken, and rightly"
    assert curve.pooled_recall.tolist() == [0.5, 0.5]
    assert Curve.of([tally, tally]).pooled_precision.tolist() == [0.25, 1.0]


def test_ties_between_thresholds_go_to_the_highest():
    precision, recall = np.array([0.2, 0.5, 0.8, 0.9]), np.array([1.0, 0.8, 0.5, 0.1])
    assert Curve(precision, recall, precision, precision, recall).fittest() == 2


def test_queries_for_which_nothing_is_taken_may_be_left_out():
    half, none, ones = np.array([0.5]), np.array([0.0]), np.array([1.0])
    some = Tally(np.array([0.2]), half, takers=half, taken=ones, both=ones, true=1.0)
    nothing = Tally(none, none, takers=none, taken=none, both=none, true=1.0)
    assert Curve.of([some]).precision_where_taken.tolist() == [0.4]
    assert Curve.of([some, nothing]).precision_where_taken.tolist() == [0.4], "as if not there"
    assert Curve.of([some, nothing]).precision.tolist() == [0.1]
    assert Curve.of([nothing]).precision_where_taken.tolist() == [0.0]


def test_the_fitted_share_is_the_best_of_all_on_validation_queries(wide_runs, options):
    positive, _ = membership([wide_runs["cone"]], options)
    model = wide_runs["cone"].load_model()
    found, harmonic = counted(model, "valid", POSITIVE_STRUCTURES), {}
    for least in range(model.dim + 1):
        values = expected(model, found, least)
        precision, recall = values["precision"], values["recall"]
        harmonic[least] = precision * recall / max(precision + recall, 1e-9)
    best = max(harmonic, key=lambda least: (harmonic[least], least))
    assert 0 < best < model.dim
    values = expected(model, counted(model, "test", POSITIVE_STRUCTURES), best)
    assert positive.row("ConE (cone), test, fitted").values == pytest.approx(values, abs=1e-6)


def test_the_picture_shows_precision_and_recall_by_share(wide_runs, options):
    run = wide_runs["cone"]
    run.graph.name = "nell995"
    try:
        positive, _ = membership([run], options)
    finally:
        run.graph.name = "tiny"
    (plot,) = positive.plots
    precision, recall, *paper = plot.series
    assert recall.y[0] == 1.0, "everything is taken when nothing is demanded"
    assert all(a >= b for a, b in zip(recall.y, recall.y[1:], strict=False))
    ours = positive.row("ConE (cone), test").values
    assert (precision.x[20], precision.y[20]) == (0.625, ours["precision"])
    assert [(s.kind, s.x, s.y) for s in paper] == [
        ("paper", (0.625,), (0.604,)),
        ("paper", (0.625,), (0.645,)),
    ]


def test_a_run_without_held_out_queries_is_refused(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    monkeypatch.setattr(type(run), "has_queries", lambda self, split: split == "train")
    with pytest.raises(DataError, match="neither valid nor test queries"):
        membership([run], options)


def test_without_validation_queries_no_share_is_fitted(trained, options, monkeypatch):
    run = open_run(trained["cone"].folder)
    monkeypatch.setattr(type(run), "has_queries", lambda self, split: split == "test")
    positive, _ = membership([run], replace(options, max_queries=1))
    assert [row.label for row in positive.rows] == ["ConE (cone), test"]
    assert "ConE (cone) has no valid queries, so no share was fitted." in positive.notes


def test_the_papers_numbers_stand_beside(trained, options):
    run = open_run(trained["cone"].folder)
    run.graph.name = "nell995"
    positive, negative = membership([run], replace(options, max_queries=1))
    assert positive.row("Query2Box, valid, Table 18").values["recall"] == 0.581
    assert negative.row("ConE, test, Table 19").values["precision"] == 0.524
    ours = positive.row("ConE (cone), test").values["recall"]
    apart = positive.row("ConE (cone), test − paper").values["recall"]
    assert apart == pytest.approx(ours - 0.645)


def test_the_command_prints_both_tables(trained, reproduce):
    tables = reproduce("membership", trained["cone"].folder, "--max-queries", 2)
    assert [table["paper"] for table in tables] == ["tab:answer_epfo", "tab:answer_neg"]


def test_notes_count_the_queries_of_each_structure(trained, options):
    for table, structures in zip(  # Query2Box, without a row in the second, changes nothing there
        membership([trained["cone"], trained["box"]], replace(options, max_queries=3)),
        (POSITIVE_STRUCTURES, NEGATION_STRUCTURES),
        strict=True,
    ):
        for split in ("valid", "test"):
            counts = {b.shape.name: min(3, len(b)) for b in tiny_queries()[split] if len(b)}
            counts = {name: counts[name] for name in structures if name in counts}
            told = ", ".join(f"{count} of {name}" for name, count in counts.items())
            if len(set(counts.values())) == 1:
                told = f"{next(iter(counts.values()))} of each structure"
            assert f"{split.capitalize()} queries measured: {told}." in table.notes
            absent = ", ".join(name for name in structures if name not in counts)
            if absent:
                assert f"ConE (cone) has no {split} queries of {absent}." in table.notes


def test_a_table_without_rows_is_left_out(trained, options):
    (table,) = membership([trained["box"]], replace(options, max_queries=1))
    assert table.paper == "tab:answer_epfo"


def test_models_without_an_inside_are_refused(trained, options):
    with pytest.raises(UnsupportedOperatorError, match="beta has no inside"):
        membership([trained["beta"]], options)
