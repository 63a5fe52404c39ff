import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.errors import UnsupportedOperatorError
from conekg.experiments.cardinality import (
    _MEASURES,
    SINGLE_REGION_STRUCTURES,
    cardinality,
    size_by_count,
)
from conekg.experiments.embedded import only_structures
from conekg.experiments.published import MODEL_TITLES
from conekg.model.embed import embed
from conekg.query.plan import plan_shapes
from conekg.query.shape import NEGATION_STRUCTURES
from conekg.training.run import open_run
from oracle import Oracle
from tiny import tiny_graph, tiny_queries


def plain_sizes(model, block):
    """The size of each query's region, one query at a time, from the parts of the region."""
    sizes = []
    for row in range(len(block)):
        plan = plan_shapes([(block.shape, 1)])
        anchors = torch.from_numpy(block.anchors[row : row + 1].astype(np.int64))
        relations = torch.from_numpy(block.relations[row : row + 1].astype(np.int64))
        with torch.no_grad():
            first, second = embed(model, plan, [anchors], [relations])
        if model.name == "beta":
            sizes.append(sum(map(float, stats.beta(first, second).entropy().ravel())))
        else:
            sizes.append(2 * float(second.abs().sum()))
    return sizes


def plain_counts(block):
    """How many entities answer each query, by Python sets."""
    graph = tiny_graph()
    edges = np.concatenate([graph.edges(split) for split in ("train", "valid", "test")])
    oracle = Oracle(edges.tolist(), graph.num_entities)
    return [len(oracle.answer(block.query(row))) for row in range(len(block))]


@pytest.mark.parametrize("model", ["cone", "box", "beta"])
def test_correlations_are_those_of_size_and_count(model, trained, reproduce):
    spearman, pearson = reproduce("cardinality", trained[model].folder)
    (ranks,), (values,) = spearman["rows"], pearson["rows"]
    compared = 0
    for block in tiny_queries()["test"]:
        name = block.shape.name
        if name not in SINGLE_REGION_STRUCTURES or (model == "box" and "n" in name):
            assert name not in ranks["values"]
            continue
        if not len(block):
            continue
        counts = plain_counts(block)
        sizes = plain_sizes(trained[model].load_model("best"), block)
        if len(set(counts)) > 1:
            compared += 1
            assert ranks["values"][name] == pytest.approx(
                stats.spearmanr(sizes, counts).statistic, abs=2e-3
            )
            assert values["values"][name] == pytest.approx(
                stats.pearsonr(sizes, counts).statistic, abs=1e-3
            )
        else:
            assert name not in ranks["values"]
    assert compared >= 3


def test_the_picture_shows_sizes_in_bins_that_double():
    counts = np.array([0, 1, 1, 2, 3, 9, 15, 16], dtype=float)
    sizes = np.array([9, 1, 3, 4, 6, 8, 10, 20], dtype=float)
    across, up = size_by_count(sizes, counts)
    assert across.tolist() == [1, 2.5, 12, 16]
    assert up.tolist() == [2, 5, 9, 20]


def test_the_picture_has_a_curve_a_structure(trained, options):
    _, pearson = cardinality([trained["beta"]], options)
    (plot,) = pearson.plots
    there = {block.shape.name for block in tiny_queries()["test"] if len(block)}
    drawn = [name for name in SINGLE_REGION_STRUCTURES if name in there]
    assert [series.label for series in plot.series] == drawn
    assert len(drawn) > 5
    assert plot.log_x
    assert plot.y_label == "mean differential entropy"
    block = tiny_queries()["test"].block("2p")
    counts = np.array(plain_counts(block), dtype=float)
    sizes = np.array(plain_sizes(trained["beta"].load_model("best"), block))
    few = counts < 2 * 2 ** np.floor(np.log2(counts.min()))
    curve = plot.series[drawn.index("2p")]
    assert curve.x[0] == pytest.approx(counts[few].mean())
    assert curve.y[0] == pytest.approx(sizes[few].mean(), rel=1e-4)


def test_structures_without_queries_are_noted(trained, options, monkeypatch):
    run = trained["cone"]
    kept = only_structures(run.queries("test"), ["1p", "2i"])
    monkeypatch.setattr(type(run), "queries", lambda self, split: kept)
    by_rank, _ = cardinality([run], options)
    assert set(by_rank.rows[0].values) <= {"1p", "2i"}
    absent = "2p, 3p, 3i, pi, ip, 2in, 3in, inp, pin, pni"
    assert any(note.endswith(f"has no test queries of {absent}.") for note in by_rank.notes)


def test_a_note_says_what_is_correlated(trained, options):
    measured = [trained[name] for name in ("cone", "cone-10", "box", "beta")]
    by_rank, linear = cardinality(measured, options)
    for table in (by_rank, linear):
        assert table.notes[0] == (
            "Each query's size of its region (ConE: sum of apertures, radians; Query2Box: sum of "
            "side lengths; BetaE: differential entropy) is correlated with its number of answers."
        )


def test_what_a_box_cannot_answer_is_one_note(trained, options):
    by_rank, _ = cardinality([trained["box"], trained["cone"]], options)
    (told,) = [note for note in by_rank.notes if "has no negation" in note]
    there = {block.shape.name for block in tiny_queries()["test"] if len(block)}
    named = [name for name in NEGATION_STRUCTURES if name in there]
    assert len(named) > 2
    assert told == f"Query2Box (box) has no negation: not {', '.join(named)}."


def test_sampled_queries_are_noted_beside_the_papers_numbers(trained, options):
    run = open_run(trained["cone"].folder)
    run.graph.name = "NELL"
    by_rank, linear = cardinality([run], options)
    for table in (by_rank, linear):
        (note,) = [note for note in table.notes if "were sampled here" in note]
        assert note.endswith("the BetaE release, which `conekg train --queries` takes.")


def test_runs_with_different_queries_are_noted(trained, options, monkeypatch):
    run, twin = trained["cone"], trained["cone-10"]
    by_rank, _ = cardinality([run, twin], options)
    assert not any("own test queries" in note for note in by_rank.notes)
    kept, every = only_structures(twin.queries("test"), ["1p", "2i"]), run.queries("test")
    pick = {twin.folder: kept, run.folder: every}
    monkeypatch.setattr(type(run), "queries", lambda self, split: pick[self.folder])
    by_rank, _ = cardinality([run, twin], options)
    assert any("those of ConE (cone-10) are not those of ConE (cone)" in n for n in by_rank.notes)


def test_a_model_the_paper_does_not_know_is_called_by_its_name(trained, options, monkeypatch):
    monkeypatch.delitem(MODEL_TITLES, "cone")
    monkeypatch.delitem(_MEASURES, "cone")
    by_rank, by_value = cardinality([trained["cone"]], options)
    assert by_rank.rows[0].label == "cone (cone)"
    assert "size of its region (cone: its own measure)" in by_rank.notes[0]
    assert by_value.plots[0].y_label == "mean size"


@pytest.mark.parametrize(
    ("name", "by_rank", "by_value"),
    [
        ("FB15k", ("Table 3", 0.60), ("Table 11", 0.33)),
        ("fb15k-237", ("Table 9", 0.70), ("Table 12", 0.40)),
        ("NELL", ("Table 10", 0.56), ("Table 13", 0.48)),
    ],
)
def test_the_papers_correlations_of_the_data_set_stand_beside(
    name, by_rank, by_value, trained, options
):
    run = open_run(trained["cone"].folder)
    run.graph.name = name
    tables = cardinality([run], options)
    for table, (place, theirs) in zip(tables, (by_rank, by_value), strict=True):
        assert table.row(f"ConE, {place}").values["1p"] == theirs
        ours, apart = (table.row(f"ConE (cone){end}").values for end in ("", " − paper"))
        assert apart["1p"] == pytest.approx(ours["1p"] - theirs)


def test_unions_are_left_out():
    assert SINGLE_REGION_STRUCTURES == (
        "1p", "2p", "3p", "2i", "3i", "pi", "ip", "2in", "3in", "inp", "pin", "pni",
    )  # fmt: skip


def test_models_without_sizes_are_refused(trained, options):
    with pytest.raises(UnsupportedOperatorError, match="gqe does not model the number"):
        cardinality([trained["gqe"]], options)


def test_every_number_is_shown_whole_in_a_narrow_place(trained, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    result = CliRunner().invoke(app, ["reproduce", "cardinality", str(trained["cone"].folder)])
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert "ConE (cone)" in result.stdout
