import pytest

from conekg.errors import UnsupportedOperatorError
from conekg.experiments.catalog import EXPERIMENTS
from conekg.training.run import Run


@pytest.mark.parametrize(
    "name", ["cardinality", "empty-intersection", "membership", "operators", "variability"]
)
def test_a_run_of_the_wrong_model_is_refused_before_others_are_measured(
    trained, options, monkeypatch, name
):
    def measured(*_):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Run, "load_model", measured)
    with pytest.raises(UnsupportedOperatorError, match="gqe: gqe ") as error:
        EXPERIMENTS[name].measure([trained["cone"], trained["gqe"]], options)
    assert "cone" in error.value.hint
