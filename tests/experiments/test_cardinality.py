import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.errors import UnsupportedOperatorError
from conekg.experiments.cardinality import SINGLE_REGION_STRUCTURES, cardinality
from conekg.model.embed import embed
from conekg.query.plan import plan_shapes
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


def test_unions_are_left_out():
    assert SINGLE_REGION_STRUCTURES == (
        "1p", "2p", "3p", "2i", "3i", "pi", "ip", "2in", "3in", "inp", "pin", "pni",
    )  # fmt: skip


def test_a_point_has_no_size(trained, options):
    with pytest.raises(UnsupportedOperatorError, match="gqe does not model the number"):
        cardinality([trained["gqe"]], options)


def test_every_number_is_shown_whole_in_a_narrow_place(trained, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    result = CliRunner().invoke(app, ["reproduce", "cardinality", str(trained["cone"].folder)])
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert "ConE (cone)" in result.stdout
