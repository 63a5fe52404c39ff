"""BetaE's features and table update against autograd through the divergence itself."""

import pytest
import torch

pytest.importorskip("triton")

import triton
import triton.language as tl

from conekg.model.beta import divergence, query_constant, regularize
from conekg.model.kernels.divergence import (
    divergence_features,
    gammas,
    normalizers,
    trigamma,
    update_distributions,
)
from conekg.model.kernels.entity_update import advance, find_occurrences

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_ENTITIES, ROWS, CANDIDATES = 9, 3, 4
DIM = 15
"""Pieces of 8, 4 and 4 columns, of which the last has one to spare."""


def random_table(generator: torch.Generator) -> torch.Tensor:
    """Raw rows [entities, 2·dim]; some below the clamp, some parameters large."""
    table = torch.rand(NUM_ENTITIES, 2 * DIM, generator=generator, dtype=torch.float64) * 4 - 1.2
    table[3] *= 50.0
    return table


def divergences(table: torch.Tensor, queries: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[rows, candidates] KL(entity ‖ query) from raw entity rows."""
    entity = regularize(table)[ids].chunk(2, dim=-1)
    query = (part[:, None] for part in queries.chunk(2, dim=-1))
    return divergence(*entity, *query).sum(dim=-1)


def test_divergence_is_linear_in_the_features() -> None:
    generator = torch.Generator().manual_seed(1)
    table = random_table(generator)
    queries = torch.rand(ROWS, 2 * DIM, generator=generator, dtype=torch.float64) * 6 + 0.05
    ids = torch.arange(NUM_ENTITIES).expand(ROWS, -1)
    expected = divergences(table, queries, ids)
    raw = table.float().to(DEVICE)
    features, constants = torch.empty_like(raw), torch.empty(NUM_ENTITIES, device=DEVICE)
    divergence_features(raw, features, constants)
    own, _ = normalizers(queries.float().to(DEVICE))
    actual = own[:, None].cpu().double() + constants.cpu().double()
    actual = actual - queries @ features.cpu().double().T
    torch.testing.assert_close(actual, expected, atol=2e-3, rtol=1e-4)
    assert expected.std() > 1.0


@pytest.mark.parametrize("dim", [1, 5, DIM, 45])
def test_normalizers_and_their_gradients(dim: int) -> None:
    """Negation makes parameters as small as reciprocals of the largest."""
    generator = torch.Generator().manual_seed(3)
    exponents = torch.rand(ROWS, 2 * dim, generator=generator, dtype=torch.float64) * 5 - 3
    queries = (10.0**exponents).float().double().requires_grad_()
    expected = query_constant(*queries.chunk(2, dim=-1))
    expected.sum().backward()
    sums, gradients = normalizers(queries.detach().float().to(DEVICE))
    torch.testing.assert_close(sums.cpu().double(), expected.detach(), atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(gradients.cpu().double(), queries.grad, atol=1e-5, rtol=1e-5)


def test_special_functions_at_every_size() -> None:
    """Across the seam between recurrence and plain series, and to both bounds of parameters."""
    exponents = torch.linspace(-9, 9, 500, dtype=torch.float64)
    x = torch.cat([10.0**exponents, torch.linspace(60, 70, 50), torch.tensor([63.9999, 64.0])])
    x = x.float()
    found = torch.empty(4, len(x), device=DEVICE)
    _special_kernel[(1,)](x.to(DEVICE), found, len(x), BLOCK=triton.next_power_of_2(len(x)))
    digamma, above, product, trigamma_ = found.cpu().double()
    exact = x.double()
    size = torch.digamma(exact).abs().clamp(min=1.0)
    assert float(((digamma - torch.digamma(exact)) / size).abs().max()) < 1e-6
    size = torch.lgamma(exact).abs().clamp(min=8.0)
    assert float(((above - product.log() - torch.lgamma(exact)) / size).abs().max()) < 1e-6
    inside = exact > 1e-2  # an entity's parameters are not below 0.05
    exact = exact[inside]
    relative = trigamma_[inside] / torch.special.polygamma(1, exact) - 1.0
    assert float(relative.abs().max()) < 1e-6


@triton.jit
def _special_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    real = place < count
    x = tl.load(x_ptr + place, mask=real, other=1.0)
    digamma, above, product = gammas(x)
    tl.store(out_ptr + place, digamma, mask=real)
    tl.store(out_ptr + count + place, above, mask=real)
    tl.store(out_ptr + 2 * count + place, product, mask=real)
    tl.store(out_ptr + 3 * count + place, trigamma(tl.maximum(x, 1e-2)), mask=real)


def test_rows_move_by_adam_on_the_whole_gradient() -> None:
    generator = torch.Generator().manual_seed(2)
    table = random_table(generator).requires_grad_()
    queries = torch.rand(ROWS, 2 * DIM, generator=generator, dtype=torch.float64) * 6 + 0.05
    # Entity 8 occurs nowhere, entity 0 three times in one query and twice as an anchor.
    ids = torch.randint(8, (ROWS, CANDIDATES), generator=generator)
    ids[1, :3] = 0
    anchors = torch.tensor([0, 5, 0])
    anchor_grads = torch.randn(3, 2 * DIM, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(ROWS, CANDIDATES, generator=generator, dtype=torch.float64)
    (coefficients * divergences(table, queries, ids)).sum().backward()
    assert table.grad is not None
    gradient = table.grad.index_add(0, anchors, anchor_grads)

    def to_device(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().float().to(DEVICE)

    counters = torch.tensor([0, 0], device=DEVICE)
    adam = torch.tensor([0.0, 0.0, 0.9, 0.999, 1e-8], device=DEVICE)
    advance(counters, torch.tensor([1e-2], device=DEVICE), adam)
    moved = [to_device(part) for part in (table, torch.zeros_like(table), torch.zeros_like(table))]
    occurrences = find_occurrences(ids.int().to(DEVICE), anchors.int().to(DEVICE), NUM_ENTITIES)
    for gradients in (None, to_device(anchor_grads)):
        update_distributions(
            *moved, occurrences, to_device(coefficients), to_device(queries), gradients, adam
        )
    rows, moments, squares = (part.cpu().double() for part in moved)
    size = float(gradient.abs().max())
    torch.testing.assert_close(moments, 0.1 * gradient, atol=1e-6 * size, rtol=1e-3)
    torch.testing.assert_close(squares, 0.001 * gradient**2, atol=1e-8 * size**2, rtol=1e-3)
    # Adam's first step is the learning rate times the gradient's sign.
    clear = gradient.abs() > 1e-4
    moves = rows - table.detach()
    torch.testing.assert_close(
        moves[clear], -1e-2 * gradient[clear].sign(), atol=3e-4, rtol=1e-2, check_dtype=False
    )
    assert clear.sum() > 120
    assert moves[8].abs().max() < 1e-6
