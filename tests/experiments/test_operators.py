import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from conekg.errors import UnsupportedOperatorError
from conekg.experiments import operators as experiment
from conekg.experiments.embedded import only_structures
from conekg.experiments.operators import (
    Overlap,
    draw_inside,
    draw_uniform,
    intersection_overlap,
    operators,
    projection_overlap,
    union_overlap,
)
from conekg.model.catalog import build_model
from conekg.training.run import Run, open_run
from tiny import tiny_queries

GRID = np.linspace(-math.pi, math.pi, 36_000, endpoint=False)
DIM = 6


def covered(region):
    """[rows, dim, grid] whether each cone contains each direction."""
    axis, half = (part.detach().double().numpy()[..., None] for part in region)
    return np.abs((GRID - axis + math.pi) % (2 * math.pi) - math.pi) <= half


def ratios(part, whole):
    """(by total length, by dimension) from masks [rows, dim, grid]."""
    common, all_of = part.sum(-1).astype(float), whole.sum(-1).astype(float)
    by_dimension = np.where(all_of > 0, common / np.maximum(all_of, 1), 1.0)
    return (common.sum(-1) / all_of.sum(-1)).mean(), by_dimension.mean()


def both(overlap):
    return float(overlap.by_total_length().mean()), float(overlap.by_dimension().mean())


@pytest.fixture(scope="module")
def drawn():
    generator = torch.Generator().manual_seed(5)
    return [draw_uniform(6, DIM, generator) for _ in range(2)]


@pytest.fixture(scope="module")
def model():
    """A fresh ConE, whose projections are neither empty nor full."""
    config = {"dim": DIM, "hidden": 16, "gamma": 12.0}
    return build_model("cone", 31, 6, config, seed=2).eval()


def test_two_empty_sets_are_the_same():
    overlap = Overlap(
        common=torch.tensor([[0.0, 1.0], [0.0, 0.0]]), whole=torch.tensor([[0.0, 2.0], [0.0, 0.0]])
    )
    assert overlap.by_total_length().tolist() == [0.5, 1.0]
    assert overlap.by_dimension().tolist() == [0.75, 1.0]


def test_projection_on_a_grid(model, drawn):
    outer, relation = drawn[0], torch.tensor([0, 1, 2, 3, 4, 5])
    inner = draw_inside(outer, torch.Generator().manual_seed(1))
    with torch.no_grad():
        a, b = (covered(model.project(region, relation)) for region in (inner, outer))
        found = both(projection_overlap(model, inner, outer, relation))
    assert found == pytest.approx(ratios(a & b, a), abs=2e-3)
    assert 0 < found[0] < 1


def test_intersection_on_a_grid(model, drawn):
    first, second = drawn
    with torch.no_grad():
        stacked = tuple(torch.stack(parts) for parts in zip(first, second, strict=True))
        learned = covered(model.intersect(stacked))
        found = both(intersection_overlap(model, first, second))
    real = covered(first) & covered(second)
    assert found == pytest.approx(ratios(learned & real, learned | real), abs=2e-3)
    assert 0 < found[0] < 1


def test_union_on_a_grid(model, drawn):
    first, second = drawn
    with torch.no_grad():
        parts = zip(model.negate(first), model.negate(second), strict=True)
        negated = model.intersect(tuple(torch.stack(part) for part in parts))
        learned = ~covered(negated)
        found = both(union_overlap(model, first, second))
    real = covered(first) | covered(second)
    assert found == pytest.approx(ratios(learned & real, learned | real), abs=2e-3)
    assert 0 < found[0] < 1


def test_a_union_overlaps_as_the_intersection_of_complements_does(model, drawn):
    """What docs/results.md concludes from: where complements are drawn as cones are, one number
    bounds the other."""
    first, second = drawn
    with torch.no_grad():
        union = union_overlap(model, first, second)
        inner = intersection_overlap(model, model.negate(first), model.negate(second))
    turn = 2 * math.pi
    expected = (turn - inner.whole).sum(-1) / (turn - inner.common).sum(-1)
    assert union.by_total_length().tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_drawn_cones_are_in_range_and_inside(drawn):
    axis, half = outer = drawn[0]
    assert bool((axis >= -math.pi).all() & (axis < math.pi).all())
    assert bool((half >= 0).all() & (half <= math.pi).all())
    assert float(half.mean()) == pytest.approx(math.pi / 2, abs=0.3)
    inner = draw_inside(outer, torch.Generator().manual_seed(2))
    outside = (covered(inner) & ~covered(outer)).sum(-1)
    assert outside.max() <= 1, "but for rounding at an end"
    assert float((inner[1] / half).mean()) == pytest.approx(0.5, abs=0.15)


def test_the_command_measures_what_it_says(trained, reproduce):
    folder = trained["cone"].folder
    (table,) = reproduce("operators", folder, "--pairs", 7, "--seed", 3)
    assert [row["label"] for row in table["rows"]] == [
        "ConE (cone), uniform cones, total length",
        "ConE (cone), uniform cones, by dimension",
        "ConE (cone), narrow cones, total length",
        "ConE (cone), narrow cones, by dimension",
        "ConE (cone), cones of links, total length",
        "ConE (cone), cones of links, by dimension",
    ]
    model = trained["cone"].load_model("best")
    generator = torch.Generator().manual_seed(3)
    second = draw_uniform(7, 32, generator)
    first = draw_uniform(7, 32, generator)
    with torch.no_grad():
        stacked = tuple(torch.stack(parts) for parts in zip(first, second, strict=True))
        learned, real = covered(model.intersect(stacked)), covered(first) & covered(second)
    total, mean = ratios(learned & real, learned | real)
    assert table["rows"][0]["values"]["intersection"] == pytest.approx(total, abs=2e-3)
    assert table["rows"][1]["values"]["intersection"] == pytest.approx(mean, abs=2e-3)
    generator = torch.Generator().manual_seed(3)
    narrow = [draw_uniform(7, 32, generator, math.pi / 2) for _ in range(2)]
    assert float(narrow[0][1].max()) < math.pi / 2
    with torch.no_grad():
        expected = both(union_overlap(model, narrow[1], narrow[0]))
    assert table["rows"][2]["values"]["union"] == pytest.approx(expected[0], abs=1e-6)
    (again,) = reproduce("operators", folder, "--pairs", 7, "--seed", 3)
    assert again["rows"] == table["rows"]


def test_projections_are_of_a_cone_inside_another(trained, options, monkeypatch):
    """A projection that changes nothing keeps every inclusion."""
    (before,) = operators([trained["cone"]], replace(options, pairs=5))
    assert 0 < before.rows[0].values["projection"] < 1
    asked = []

    def keep(self, region, relation_ids):
        asked.append(relation_ids)
        axis, half = region
        # Entities have no inside, so their links get cones of a fixed width instead.
        return (axis, half) if half.any() else (axis, torch.ones_like(half))

    model = trained["cone"].load_model("best")
    monkeypatch.setattr(type(model), "project", keep)
    (kept,) = operators([trained["cone"]], replace(options, pairs=400))
    assert len(kept.rows) == 6
    for row in kept.rows:
        assert row.values["projection"] == pytest.approx(1.0, abs=1e-5)
    # Both cones of a pair get the same relation; all relations are drawn, inverses too.
    first, second = asked[:2]
    assert first.tolist() == second.tolist()
    assert set(first.tolist()) == set(range(model.num_relations))


@pytest.mark.parametrize(
    ("structure", "column", "measure"),
    [("2i", "intersection", intersection_overlap), ("2u", "union", union_overlap)],
)
def test_cones_of_links_are_the_models(structure, column, measure, trained, options, monkeypatch):
    run = trained["cone"]
    block = tiny_queries()["test"].block(structure)
    (table,) = operators([run], replace(options, pairs=len(block)))
    model = run.load_model("best")
    with torch.no_grad():
        links = [
            model.project(
                model.anchor(torch.from_numpy(block.anchors[:, i].astype(np.int64))),
                torch.from_numpy(block.relations[:, i].astype(np.int64)),
            )
            for i in range(2)
        ]
        # As many pairs as queries: each query once, so that the order does not matter.
        expected = both(measure(model, links[0], links[1]))
    # Drawn in smaller batches, the pairs are the same.
    monkeypatch.setattr(experiment, "_CONES_AT_ONCE", 3 * model.dim)
    (by_three,) = operators([run], replace(options, pairs=len(block)))
    for found in (table, by_three):
        rows = [
            found.row(f"ConE (cone), cones of links, {how}")
            for how in ("total length", "by dimension")
        ]
        assert [row.values[column] for row in rows] == pytest.approx(expected, abs=1e-6)


def test_a_run_without_queries_has_no_links_and_says_so(trained, options, monkeypatch):
    run = trained["cone"]
    monkeypatch.setattr(Run, "has_queries", lambda self, split: split != "valid")
    (table,) = operators([run], replace(options, pairs=2, split="valid"))
    assert [row.label for row in table.rows if "links" in row.label] == []
    assert "ConE (cone) has no valid queries, so no cones of links." in table.notes


def test_operators_without_queries_have_no_ratio_of_links_and_are_noted(
    trained, options, monkeypatch
):
    run = trained["cone"]
    kept = only_structures(run.queries("test"), ["1p", "2i"])
    monkeypatch.setattr(Run, "queries", lambda self, split: kept)
    (table,) = operators([run], replace(options, pairs=2))
    links = table.row("ConE (cone), cones of links, total length")
    assert set(links.values) == {"projection", "intersection"}
    assert "ConE (cone) has no test queries for the union." in table.notes


def test_the_papers_ratios_stand_beside(trained, options):
    run = open_run(trained["cone"].folder)
    run.graph.name = "FB15k"
    (table,) = operators([run], replace(options, pairs=2))
    assert table.rows[-1].label == "ConE, Section 5.4 and Appendix C.6"
    assert table.rows[-1].values == {"projection": 0.8113, "intersection": 0.6134, "union": 0.4618}


def test_models_other_than_cone_are_refused(trained, options):
    with pytest.raises(UnsupportedOperatorError, match="box has no cones"):
        operators([trained["box"]], options)


def test_the_split_of_the_links_is_noted(trained, options):
    for split in ("test", "valid"):
        (table,) = operators([trained["cone"]], replace(options, pairs=2, split=split))
        assert f"The links are those of {split} queries." in table.notes
        assert table.title == "Operators against real set operations, tiny, 2 pairs"
        assert not any("with repetition" in note for note in table.notes)


def test_repeatedly_drawn_links_are_noted(trained, options):
    counts = {name: len(tiny_queries()["test"].block(name)) for name in ("1p", "2i", "2u")}
    (table,) = operators([trained["cone"]], replace(options, pairs=max(counts.values()) + 1))
    told = ", ".join(f"{count} of {name}" for name, count in counts.items())
    assert f"ConE (cone): links are drawn with repetition, as there are only {told}." in table.notes
