"""The first Fourier harmonic of ConE's distance, against numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from conekg.answering import shortlist
from conekg.answering.shortlist import HarmonicShortlist, first_harmonic
from conekg.model.catalog import build_model
from conekg.model.cone import Cone, ConeConfig, cone_distance


@given(half_aperture=st.floats(0, math.pi), center_weight=st.floats(0, 0.9))
def test_harmonic_is_the_fourier_integral(half_aperture: float, center_weight: float) -> None:
    def integrand(delta: float) -> float:
        outside = max(0.0, math.sin((delta - half_aperture) / 2))
        inside = math.sin(min(delta, half_aperture) / 2)
        return (outside + center_weight * inside) * math.cos(delta)

    expected, _ = quad(integrand, 0, math.pi, points=[half_aperture])
    found = first_harmonic(torch.tensor(half_aperture, dtype=torch.float64), center_weight)
    np.testing.assert_allclose(float(found), 2 / math.pi * expected, atol=1e-7)


@given(half_aperture=st.floats(-7, 7), center_weight=st.floats(0, 0.9))
def test_the_harmonic_of_any_aperture_is_that_of_the_distance(
    half_aperture: float, center_weight: float
) -> None:
    """The harmonic of `cone_distance` itself, also for apertures that only derived models have."""
    delta = torch.linspace(0, math.pi, 20_001, dtype=torch.float64)
    half = torch.tensor([half_aperture], dtype=torch.float64)
    distance = cone_distance(delta[:, None], torch.zeros(1).double(), half, center_weight)
    expected = 2 / math.pi * torch.trapezoid(distance * delta.cos(), delta)
    found = first_harmonic(half, center_weight)
    torch.testing.assert_close(found[0], expected, atol=1e-6, rtol=0)


def test_candidates_hold_the_nearest_entities() -> None:
    model = build_model("cone", 2000, 2, ConeConfig(dim=64, hidden=8), 3).eval()
    assert isinstance(model, Cone)
    with torch.inference_mode():
        axis = model.points(torch.arange(5)) + 0.2
        region = (axis, torch.full_like(axis, 0.5))
        candidates = HarmonicShortlist(model).candidates(region, 100)
        distances = cone_distance(
            model.points(torch.arange(2000))[None], axis[:, None], region[1][:, None], 0.02
        )
    assert candidates.shape == (5, 100)
    for row, nearest in enumerate(distances.topk(10, largest=False).indices):
        assert len(set(candidates[row].tolist())) == 100
        assert len(set(nearest.tolist()) & set(candidates[row].tolist())) >= 9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [30, 100, 149])
def test_candidates_are_those_of_the_least_first_harmonic(
    count: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By integrals over a fine grid of angles; the table is searched in several pieces."""
    monkeypatch.setattr(shortlist, "_CHUNK", 64)
    config = ConeConfig(dim=5, hidden=4, center_weight=0.5)
    model = build_model("cone", 150, 2, config, 3).to(dtype).eval()
    assert isinstance(model, Cone)
    generator = np.random.default_rng(0)
    axis = generator.uniform(-np.pi, np.pi, (3, 5)).astype(np.float32)
    half = generator.uniform(0, np.pi, (3, 5)).astype(np.float32)
    with torch.inference_mode():
        region = (torch.from_numpy(axis).to(dtype), torch.from_numpy(half).to(dtype))
        found = HarmonicShortlist(model).candidates(region, count).numpy()
        angles = model.points(torch.arange(150)).double().numpy()
    delta = np.linspace(0, np.pi, 4001)
    outside = np.maximum(0, np.sin((delta - half[..., None]) / 2))
    inside = np.sin(np.minimum(delta, half[..., None]) / 2)
    weights = np.trapezoid((outside + 0.5 * inside) * np.cos(delta), delta)
    for row in range(3):
        harmonic = (weights[row] * np.cos(angles - axis[row])).sum(axis=1)
        assert sorted(found[row]) == sorted(np.argsort(harmonic)[:count])


def test_a_shortlist_is_no_longer_than_the_table() -> None:
    model = build_model("cone", 7, 2, ConeConfig(dim=4, hidden=4), 0).eval()
    assert isinstance(model, Cone)
    with torch.inference_mode():
        found = HarmonicShortlist(model).candidates(model.anchor(torch.tensor([0])), 50)
    assert sorted(found[0].tolist()) == list(range(7))
