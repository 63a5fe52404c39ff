from dataclasses import replace

import numpy as np
import pytest

from conekg.experiments.union import union
from conekg.sampling.query_set import save_query_set
from conekg.training.run import open_run
from plain_mrr import mrr
from tiny import tiny_queries


def test_both_forms_of_unions(trained, reproduce):
    (table,) = reproduce("union", trained["cone"].folder)
    (row,) = table["rows"]
    model = trained["cone"].load_model("best")
    two, projected = (tiny_queries()["test"].block(name) for name in ("2u", "up"))
    values = row["values"]
    assert values == pytest.approx(
        {
            "2u-N": mrr(model, two, values["2u-N"]),
            "2u-M": mrr(model, two, values["2u-M"], de_morgan=True),
            "up-N": mrr(model, projected, values["up-N"]),
            "up-M": mrr(model, projected, values["up-M"], de_morgan=True),
        }
    )
    assert values["2u-N"] != values["2u-M"]


def test_the_papers_forms_stand_beside(trained, options):
    run = open_run(trained["cone"].folder)
    run.graph.name = "fb15k-237"
    (table,) = union([run], options)
    assert table.row("BetaE, Table 8").values["2u-M"] == 11.1
    ours, apart = (table.row(f"ConE (cone){end}").values for end in ("", " − paper"))
    assert apart["up-M"] == pytest.approx(ours["up-M"] - 9.9)


def test_a_box_has_dnf_only(trained, options):
    (table,) = union([trained["box"]], options)
    assert set(table.row("Query2Box (box)").values) == {"2u-N", "up-N"}
    assert "Not answered by De Morgan's law: 2u, up (box has no negation)." in table.notes
    (both,) = union([trained["cone"], trained["box"]], options)
    (told,) = [note for note in both.notes if "has no negation" in note]
    assert told.startswith("Query2Box (box): Not answered by De Morgan's law: 2u, up")


def test_a_structure_without_queries_is_named(trained, options, tmp_path):
    queries = tiny_queries()["test"]
    two, projected = queries.block("2u"), queries.block("up")
    without = two.take(np.flatnonzero(two.hard.lengths == 0))
    file = tmp_path / "some.arrow"
    save_query_set(file, replace(queries, blocks=(without, projected)))
    (table,) = union([trained["cone"]], replace(options, queries=file))
    assert set(table.row("ConE (cone)").values) == {"up-N", "up-M"}
    reason = "the query set has no query of this structure with a hard answer"
    assert f"Not answered by DNF: 2u ({reason})." in table.notes
    assert not any("Not answered" in note and "up" in note for note in table.notes)
    assert "MRR is filtered; equal scores: mean rank." in table.notes
