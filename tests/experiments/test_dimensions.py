from dataclasses import replace

import pytest

from conekg.experiments.dimensions import dimensions
from conekg.query.shape import NEGATION_STRUCTURES, POSITIVE_STRUCTURES
from conekg.training.run import Run, open_run
from plain_mrr import mrr_row
from tiny import tiny_queries


def test_every_run_has_a_row_with_its_dimension(trained, reproduce):
    positive, negative = reproduce("dimensions", trained["beta"].folder, trained["cone"].folder)
    labels = ["BetaE (beta), d = 16", "ConE (cone), d = 32"]
    assert [row["label"] for row in positive["rows"]] == labels
    for key, row, other in zip(("beta", "cone"), positive["rows"], negative["rows"], strict=True):
        model = trained[key].load_model("best")
        expected = mrr_row(model, tiny_queries()["test"], POSITIVE_STRUCTURES, row["values"])
        expected["AVG"] = sum(expected.values()) / 9
        assert row["values"] == pytest.approx(expected)
        negated = mrr_row(model, tiny_queries()["test"], NEGATION_STRUCTURES, other["values"])
        assert other["values"] == pytest.approx(negated)


def test_the_papers_dimensions_stand_beside(trained, options):
    run = open_run(trained["beta"].folder)
    run.graph.name = "fb15k-237"
    positive, negative = dimensions([run], options)
    assert positive.row("BetaE, d = 800, Table 6").values["AVG"] == 20.6
    assert negative.row("BetaE, d = 400, Table 7").values["3in"] == 7.9
    assert not [row for row in positive.rows if row.kind == "comparison"], "16 is neither"
    run = open_run(trained["cone"].folder)
    run.graph.name = "fb15k-237"
    positive, _ = dimensions([run], options)
    assert positive.row("ConE, Table 6").values["AVG"] == 23.4
    assert not [row for row in positive.rows if row.kind == "comparison"], "32 is not 800"


@pytest.mark.parametrize(
    ("model_name", "title", "dim", "theirs"),
    [
        ("beta", "BetaE (beta)", 400, 20.9),
        ("beta", "BetaE (beta)", 800, 20.6),
        ("cone", "ConE (cone)", 800, 23.4),
    ],
)
def test_a_run_of_the_papers_dimension_is_compared_with_its_row(
    model_name, title, dim, theirs, trained, options, monkeypatch
):
    run = open_run(trained[model_name].folder)
    run.graph.name = "fb15k-237"
    model = run.load_model("best")
    monkeypatch.setattr(Run, "load_model", lambda *_: model)
    recipe = replace(run.recipe, config=replace(run.recipe.config, dim=dim))
    monkeypatch.setitem(run.__dict__, "recipe", recipe)  # cached there
    positive, _ = dimensions([run], options)
    ours = positive.row(f"{title}, d = {dim}").values["AVG"]
    apart = positive.row(f"{title}, d = {dim} − paper").values["AVG"]
    assert apart == pytest.approx(ours - theirs)
