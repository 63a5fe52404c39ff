"""Which kernels train a model's entity table."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from conekg.training.entity_kernels import DistanceKernels, DivergenceKernels, kernels_of
from small_models import rough_model

KINDS = {
    "cone": DistanceKernels,
    "box": DistanceKernels,
    "gqe": DistanceKernels,
    "beta": DivergenceKernels,
}


@pytest.mark.parametrize("name", KINDS)
def test_every_model_has_its_kernels(name: str) -> None:
    assert type(kernels_of(rough_model(name))) is KINDS[name]


def test_a_model_with_another_distance_has_no_kernels() -> None:
    assert kernels_of(rough_model("emql")) is None


@pytest.mark.parametrize("name", KINDS)
def test_a_derived_model_has_kernels_if_it_keeps_distance_and_loss(name: str) -> None:
    kind = type(rough_model(name))

    def of(**changes: object) -> object:
        model = rough_model(name)
        model.__class__ = type("Derived", (kind,), changes)
        return kernels_of(model)

    def twice(self, region, points):
        return 2.0 * kind.distance_to_points(self, region, points)

    assert type(of()) is KINDS[name]
    assert of(distance_to_points=twice) is None
    assert of(has_own_loss=True) is None
