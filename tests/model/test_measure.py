"""Every model's measure, and that a subclass keeps it only if it keeps the distance."""

from __future__ import annotations

import pytest
import torch

from conekg.model.catalog import MODELS
from conekg.model.cone import Cone
from conekg.model.geometry import Geometry
from conekg.model.interface import QueryModel
from conekg.model.measure import Measure, measure_of, scale_of
from conekg.model.scoring import scoring_table
from small_models import VARIANTS, rough_model, small_model

OPTIONS: dict[str, dict[str, object]] = {
    "cone": {"gamma": 3.0, "center_weight": 0.3},
    "cone-rotation": {"gamma": 3.0, "center_weight": 0.3},
    "box": {"center_weight": 0.4},
}
EXPECTED: dict[str, Measure | None] = {
    "cone": Measure(Geometry.CONE, center_weight=0.3, inverse_range=1.0),  # ρ = (3 + 2) / 5
    "cone-rotation": Measure(Geometry.CONE, center_weight=0.3, inverse_range=1.0),
    "gqe": Measure(Geometry.POINT, center_weight=0.0, inverse_range=1.0),
    "box": Measure(Geometry.BOX, center_weight=0.4, inverse_range=1.0),
    "beta": Measure(Geometry.INNER, center_weight=0.0, inverse_range=1.0),
} | dict.fromkeys(VARIANTS.keys() - {"cone", "cone-rotation", "gqe", "box", "beta"})
"""By variant; None for a model without kernels."""
MEASURED = [name for name in MODELS if EXPECTED[name] is not None]


def derived(name: str, *methods: str) -> QueryModel:
    """A model of a subclass that overrides the given methods, without changing what they do."""
    model = rough_model(name, **OPTIONS.get(name, {}))
    kind = type(model)

    def overridden(method: str):
        return lambda self, *arguments: getattr(kind, method)(self, *arguments)

    model.__class__ = type("Derived", (kind,), {method: overridden(method) for method in methods})
    return model


def test_all_models_are_expected_here() -> None:
    assert set(MODELS) <= set(EXPECTED) == set(VARIANTS)
    assert EXPECTED["emql"] is None


@pytest.mark.parametrize("name", list(EXPECTED))
def test_every_model_has_its_measure(name: str) -> None:
    assert measure_of(rough_model(name, **OPTIONS.get(name, {}))) == EXPECTED[name]


def test_a_cone_s_inverse_range_is_that_of_its_angles() -> None:
    model = small_model("cone", gamma=11.0)
    measure = measure_of(model)
    assert isinstance(model, Cone)
    assert measure is not None
    weights = torch.linspace(-2.0, 2.0, 9, dtype=torch.float64)
    angles = torch.pi * torch.tanh(weights * measure.inverse_range)
    torch.testing.assert_close(model.to_angle(weights), angles)
    assert measure.inverse_range == pytest.approx(5 / 13)


@pytest.mark.parametrize("name", MODELS)
def test_a_subclass_with_other_operators_keeps_the_measure(name: str) -> None:
    changed = ("project_by_weights", "intersect", "negate", "anchor_of_weights", "size")
    assert measure_of(derived(name)) == EXPECTED[name]
    assert measure_of(derived(name, *changed)) == EXPECTED[name]


@pytest.mark.parametrize(
    "method",
    [
        "anchor",
        "points",
        "to_angle",
        "distance_to_points",
        "distance",
        "distance_to_all",
        "logits",
        "logits_of_all",
        "scoring_features",
    ],
)
@pytest.mark.parametrize("name", MEASURED)
def test_a_subclass_with_its_own_distance_has_no_measure(name: str, method: str) -> None:
    assert measure_of(derived(name, method)) is None


@pytest.mark.parametrize("name", MEASURED)
def test_a_subclass_with_its_own_scale_keeps_the_measure_if_kernels_take_a_scale(
    name: str,
) -> None:
    model = derived(name)
    type(model).distance_scale = property(lambda self: 3.0)  # type: ignore[assignment]
    assert measure_of(model) == (None if name == "beta" else EXPECTED[name])
    model = model.float().requires_grad_(False)
    region = model.project(model.anchor(torch.arange(3)), torch.arange(3))
    distances = model.distance(region, torch.arange(model.num_entities).expand(3, -1))
    found = scoring_table(model).logits(region)
    torch.testing.assert_close(found, model.gamma - 3.0 * distances, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_the_scale_is_a_number_with_its_present_value(name: str) -> None:
    model = rough_model(name)
    scale = scale_of(model)
    assert type(scale) is float
    if name == "cone":
        assert scale == float(model.scale.detach())
        with torch.no_grad():
            model.scale.fill_(-0.25)
        assert scale_of(model) == -0.25
    else:
        assert scale == 1.0
