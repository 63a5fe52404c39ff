import pytest

from conekg.evaluation.evaluate import evaluate
from conekg.experiments.union import union
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock, QuerySet
from tiny import tiny_queries


def by_shape(run, structure, asked_as):
    """MRR of the queries of one structure, asked in another shape with the same slots."""
    block = tiny_queries()["test"].block(structure)
    block = QueryBlock(STRUCTURES[asked_as], block.anchors, block.relations, block.easy, block.hard)
    report = evaluate(
        run.load_model("best"), QuerySet("test", (block,)), num_entities=run.graph.num_entities
    )
    return 100 * report.measured[asked_as].mrr


def test_both_forms_of_unions(trained, reproduce):
    (table,) = reproduce("union", trained["cone"].folder)
    (row,) = table["rows"]
    assert row["values"] == pytest.approx(
        {
            "2u-N": by_shape(trained["cone"], "2u", "2u"),
            "2u-M": by_shape(trained["cone"], "2u", "2u-DM"),
            "up-N": by_shape(trained["cone"], "up", "up"),
            "up-M": by_shape(trained["cone"], "up", "up-DM"),
        }
    )
    assert row["values"]["2u-N"] != row["values"]["2u-M"]


def test_a_box_has_dnf_only(trained, options):
    (table,) = union([trained["box"]], options)
    assert set(table.row("Query2Box (box)").values) == {"2u-N", "up-N"}
    assert any("demorgan: box has no negation" in note for note in table.notes)
