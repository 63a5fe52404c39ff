import math

import pytest
import torch

from conekg.model.cone import cone_distance
from conekg.model.kernels.candidates import DIMENSIONS_A_TASK, cone_candidate_distance

CENTER_WEIGHT = 0.3


WIDENED = (0.0, 1.25)
"""Range of half apertures, as shares of π, under the usual dropout."""
ANYWHERE = (-1.5, 5.0)
"""Their range under strong dropout, with the complements of cones that it has widened."""


def sample(rows, candidates, dim, entities=11, seed=0, apertures=WIDENED):
    generator = torch.Generator().manual_seed(seed)

    def uniform(size, low, high):
        return (torch.rand(size, generator=generator) * (high - low) + low).requires_grad_()

    angles = uniform((entities, dim), -math.pi, math.pi)
    axis = uniform((rows, dim), -math.pi, math.pi)
    half_aperture = uniform((rows, dim), *(math.pi * share for share in apertures))
    places = torch.randint(entities, (rows, candidates), generator=generator)
    weights = torch.randn(rows, candidates, generator=generator) / dim
    return angles, places, axis, half_aperture, weights


def gradients(distance, weights, *inputs):
    return torch.autograd.grad((distance * weights).sum(), inputs)


@pytest.mark.parametrize("apertures", [WIDENED, ANYWHERE])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("rows", "candidates", "dim"),
    [(1, 1, 1), (3, 5, 7), (4, 9, DIMENSIONS_A_TASK), (2, 3, 2 * DIMENSIONS_A_TASK + 5)],
)
def test_values_and_gradients_are_those_of_the_formula(rows, candidates, dim, threads, apertures):
    angles, places, axis, half_aperture, weights = sample(
        rows, candidates, dim, seed=3, apertures=apertures
    )
    inputs = (angles, axis, half_aperture)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compiled = cone_candidate_distance(angles, places, axis, half_aperture, CENTER_WEIGHT)
        found = gradients(compiled, weights, *inputs)
    finally:
        torch.set_num_threads(before)
    plain = cone_distance(angles[places], axis[:, None], half_aperture[:, None], CENTER_WEIGHT)
    torch.testing.assert_close(compiled, plain, rtol=2e-5, atol=1e-5)
    for mine, theirs in zip(found, gradients(plain, weights, *inputs), strict=True):
        assert theirs.abs().max() > 0
        torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=1e-6)


def test_the_number_of_threads_changes_no_bit():
    angles, places, axis, half_aperture, weights = sample(6, 8, 3 * DIMENSIONS_A_TASK)
    results = []
    before = torch.get_num_threads()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        distance = cone_candidate_distance(angles, places, axis, half_aperture, CENTER_WEIGHT)
        results.append((distance, *gradients(distance, weights, angles, axis, half_aperture)))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("loss", [torch.sum, torch.norm])
def test_second_derivatives_are_refused(loss):
    """Without an error, the gradient of a gradient penalty would lack what goes through them."""
    angles, places, axis, half_aperture, _ = sample(2, 3, 4)
    distance = cone_candidate_distance(angles, places, axis, half_aperture, CENTER_WEIGHT)
    with pytest.raises(RuntimeError, match="no second derivatives; take a model in float64"):
        torch.autograd.grad(loss(distance), [angles], create_graph=True)


def test_no_rows():
    angles, places, axis, half_aperture, _ = sample(0, 4, 3)
    distance = cone_candidate_distance(angles, places, axis, half_aperture, CENTER_WEIGHT)
    assert distance.shape == (0, 4)
