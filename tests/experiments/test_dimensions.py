import pytest

from conekg.experiments.dimensions import dimensions
from conekg.experiments.main_results import main_epfo, main_negation
from conekg.training.run import open_run


def test_every_run_has_a_row_with_its_dimension(trained, reproduce, options):
    positive, negative = reproduce("dimensions", trained["beta"].folder, trained["cone"].folder)
    labels = ["BetaE (beta), d = 16", "ConE (cone), d = 32"]
    assert [row["label"] for row in positive["rows"]] == labels
    for key, row, other in zip(("beta", "cone"), positive["rows"], negative["rows"], strict=True):
        (epfo,), (negation,) = (f([trained[key]], options) for f in (main_epfo, main_negation))
        assert row["values"] == pytest.approx(dict(epfo.rows[0].values))
        assert other["values"] == pytest.approx(dict(negation.rows[0].values))


def test_the_papers_dimensions_stand_beside(trained, options):
    run = open_run(trained["beta"].folder)
    run.graph.name = "fb15k-237"
    positive, negative = dimensions([run], options)
    assert positive.row("BetaE, d = 800, Table 6").values["AVG"] == 20.6
    assert negative.row("BetaE, d = 400, Table 7").values["3in"] == 7.9
    assert not [row for row in positive.rows if row.kind == "comparison"], "16 is neither"
