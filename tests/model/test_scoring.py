"""Which table a model gets, and that it is a snapshot."""

from __future__ import annotations

import pytest
import torch

from conekg.errors import ConeKGError
from conekg.model.catalog import MODELS
from conekg.model.interface import QueryModel
from conekg.model.measure import measure_of
from conekg.model.scoring import CompiledTable, DivergenceTable, PlainTable, scoring_table
from small_models import NUM_ENTITIES, VARIANTS, rough_model, small_model


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cone", CompiledTable),
        ("box", CompiledTable),
        ("gqe", CompiledTable),
        ("beta", DivergenceTable),
        ("emql", PlainTable),
    ],
)
def test_every_model_has_its_table(name: str, kind: type) -> None:
    assert type(scoring_table(small_model(name).float())) is kind


def derived(name: str, **changes: object) -> QueryModel:
    """The small model of that name, as an instance of a subclass with these attributes."""
    model = rough_model(name).eval().requires_grad_(False)
    model.__class__ = type("Derived", (type(model),), changes)
    return model


@pytest.mark.parametrize("name", list(MODELS))
def test_a_derived_model_is_scored_by_its_own_distance(name: str) -> None:
    kind, ids = MODELS[name].model, torch.arange(NUM_ENTITIES).expand(3, -1)

    def twice(self, region, points):
        return 2.0 * kind.distance_to_points(self, region, points)

    def opposite(self, entity_ids):
        return -kind.points(self, entity_ids) + 0.1 * (name == "beta")

    for changes in ({}, {"distance_to_points": twice}, {"points": opposite}):
        model = derived(name, **changes)
        region = model.project(model.anchor(torch.arange(3)), torch.arange(3))
        expected = model.distance_to_points(region, model.points(ids))
        found = scoring_table(model).distances(region)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
        torch.testing.assert_close(model.distance(region, ids), expected, equal_nan=True)
        has_kernels = not changes and measure_of(rough_model(name)) is not None
        assert (type(scoring_table(model)) is PlainTable) != has_kernels


@pytest.mark.parametrize("name", list(MODELS))
def test_a_derived_model_is_scored_by_its_own_logits(name: str) -> None:
    """For example with a bias per entity, which is no part of the distance."""
    kind, bias = MODELS[name].model, torch.linspace(-3.0, 3.0, NUM_ENTITIES)
    ids = torch.arange(NUM_ENTITIES).expand(3, -1)
    changes = {
        "logits": lambda self, region, ids: kind.logits(self, region, ids) + bias[ids],
        "logits_of_all": lambda self, region: kind.logits_of_all(self, region) + bias,
    }
    model = derived(name, **changes)
    region = model.project(model.anchor(torch.arange(3)), torch.arange(3))
    expected = model.logits(region, ids)
    found = scoring_table(model).logits(region)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert (found - scoring_table(derived(name)).logits(region)).abs().max() > 2.9


@pytest.mark.parametrize("name", ["cone", "box", "gqe"])
def test_double_precision_keeps_the_model_s_own_arithmetic(name: str) -> None:
    assert type(scoring_table(small_model(name))) is PlainTable


@pytest.mark.parametrize("name", ["cone", "box", "gqe", "beta"])
def test_a_table_is_a_snapshot(name: str) -> None:
    model = small_model(name).float()
    region = model.anchor(torch.arange(3))
    table = scoring_table(model)
    before = table.logits(region)
    model.entity.mul_(0.5)
    torch.testing.assert_close(table.logits(region), before, rtol=0, atol=0)
    assert not torch.allclose(scoring_table(model).logits(region), before)


def test_scores_carry_the_learnt_scale() -> None:
    model = small_model("cone").float()
    region = model.project(model.anchor(torch.arange(2)), torch.arange(2))
    table = scoring_table(model)
    distances = table.distances(region)
    assert distances.shape == (2, NUM_ENTITIES)
    expected = 30.0 - model.scale * distances
    torch.testing.assert_close(table.logits(region), expected)
    model.scale.mul_(2.0)
    torch.testing.assert_close(table.logits(region), expected)  # as it was learnt then


@pytest.mark.parametrize("name", list(VARIANTS))
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(name: str, value: float) -> None:
    model = rough_model(name)
    *_, last = model.named_parameters()
    last[1].data.view(-1)[0] = value
    with pytest.raises(ConeKGError, match=f"'{last[0]}' are not all finite") as error:
        scoring_table(model)
    assert error.value.hint is not None
    assert "learning rate" in error.value.hint
