"""The fused loss against autograd through distances written out from the papers."""

import math

import pytest
import torch

pytest.importorskip("triton")

from conekg.model.kernels import geometry
from conekg.model.kernels.contrast import contrast, plain_contrast
from plain_distance import CENTER_WEIGHT, RANGE, plain_distance, random_inputs

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
KINDS = [geometry.CONE, geometry.BOX, geometry.POINT, geometry.INNER]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize(
    ("rows", "positives", "negatives", "dim"),
    [(3, 1, 4, 5), (1, 1, 1, 1), (2, 1, 3, 15), (2, 3, 4, 6)],  # 15 has a column to spare
)
def test_values_and_gradients(
    kind: int, rows: int, positives: int, negatives: int, dim: int, temperature: float
) -> None:
    table, first, second = random_inputs(kind, 7, rows, dim, seed=rows + dim)
    compare(kind, table, first, second, positives, negatives, temperature)


@pytest.mark.parametrize(("low", "high"), [(-1.5, 0.0), (1.0, 2.0), (2.0, 5.0)])
def test_half_apertures_below_zero_and_beyond_the_circle(low: float, high: float) -> None:
    """Strong dropout, and complements of cones that it has widened; ranges as shares of π."""
    table, first, second = random_inputs(geometry.CONE, 7, 3, 6, seed=2)
    # Divided by more than the maximum, so that no half aperture is exactly at `high`, a kink.
    second = math.pi * (low + (high - low) * (second / (1.05 * second.max())))
    compare(geometry.CONE, table, first, second, positives=1, negatives=4, temperature=0.0)


def compare(
    kind: int,
    table: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    positives: int,
    negatives: int,
    temperature: float,
) -> None:
    """Check the kernel on random candidates, one of them repeated."""
    rows, dim = first.shape
    first.requires_grad_()
    second.requires_grad_()
    scale = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(7, (rows, positives + negatives), generator=generator)
    ids[0, -1] = ids[0, 0]  # a positive again among the negatives
    offsets = torch.rand(rows, positives + negatives, generator=generator, dtype=torch.float64)
    weights = torch.rand(rows, generator=generator, dtype=torch.float64) + 0.1
    weights /= weights.sum()
    distances = plain_distance(kind, table, first, second, ids) + offsets
    distances.retain_grad()
    losses = plain_contrast(distances, weights, scale, 1.5, temperature, positives)
    losses.mean().backward()

    result = contrast(
        *(part.detach().float().to(DEVICE) for part in (table, first, second)),
        ids.int().to(DEVICE),
        weights.float().to(DEVICE),
        scale.detach().float().to(DEVICE),
        offsets.float().to(DEVICE),
        geometry=kind,
        gamma=1.5,
        inverse_range=1 / RANGE,
        center_weight=CENTER_WEIGHT,
        temperature=temperature,
        positives=positives,
    )
    assert first.grad is not None
    assert scale.grad is not None
    assert distances.grad is not None
    expected_second = torch.zeros_like(second) if second.grad is None else second.grad
    close = {"atol": 2e-6, "rtol": 1e-4, "check_dtype": False}
    torch.testing.assert_close(result.loss.cpu(), losses.detach(), **close)
    torch.testing.assert_close(result.grad_first.cpu(), first.grad, **close)
    torch.testing.assert_close(result.grad_second.cpu(), expected_second, **close)
    torch.testing.assert_close(result.grad_scale.cpu(), scale.grad[0], **close)
    torch.testing.assert_close(result.coefficients.cpu(), distances.grad, **close)
    assert first.grad.abs().max() > 1e-3, "a gradient of zeros would prove nothing"
    if kind in (geometry.CONE, geometry.BOX) and dim > 1:
        assert expected_second.abs().max() > 1e-3
