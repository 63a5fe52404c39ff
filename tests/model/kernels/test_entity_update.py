"""Every row of the table must move by Adam restated on gradients from autograd."""

import math

import pytest
import torch

pytest.importorskip("triton")

from conekg.model.kernels import geometry
from conekg.model.kernels.entity_update import advance, find_occurrences, update_entities
from plain_distance import CENTER_WEIGHT, RANGE, plain_distance, random_inputs

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_ENTITIES, ROWS, CANDIDATES = 9, 3, 4
DIM = 15
"""Pieces of 8, 4 and 4 columns, of which the last has one to spare."""


def prepared_regions(
    kind: int, first: torch.Tensor, second: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The prepared regions as `contrast` returns them."""
    if kind != geometry.CONE:
        return first, second, second
    return first / (2 * math.pi) - 0.5, (second / 2).sin().abs(), (second / 2).cos().abs()


@pytest.mark.parametrize("kind", [geometry.CONE, geometry.BOX, geometry.POINT, geometry.INNER])
def test_rows_move_by_adam_on_the_whole_gradient(kind: int) -> None:
    table, first, second = random_inputs(kind, NUM_ENTITIES, ROWS, DIM, seed=4)
    table.requires_grad_()
    generator = torch.Generator().manual_seed(2)
    # Entity 8 occurs nowhere, entity 0 three times in one query and twice as an anchor.
    ids = torch.randint(8, (ROWS, CANDIDATES), generator=generator)
    ids[1, :3] = 0
    anchors = torch.tensor([5, 0, 0])
    anchor_grads = torch.randn(3, DIM, generator=generator, dtype=torch.float64)
    coefficients = torch.randn(ROWS, CANDIDATES, generator=generator, dtype=torch.float64)
    (coefficients * plain_distance(kind, table, first, second, ids)).sum().backward()
    assert table.grad is not None
    gradient = table.grad.index_add(0, anchors, anchor_grads)
    moments = torch.randn(NUM_ENTITIES, DIM, generator=generator, dtype=torch.float64)
    squares = torch.rand(NUM_ENTITIES, DIM, generator=generator, dtype=torch.float64)
    expected_moments = 0.9 * moments + 0.1 * gradient
    expected_squares = 0.999 * squares + 0.001 * gradient**2
    step = 1e-2 / (1 - 0.9**3)
    denominator = (expected_squares / (1 - 0.999**3)).sqrt() + 1e-8
    expected_table = table.detach() - step * expected_moments / denominator

    def to_device(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().float().to(DEVICE)

    counters = torch.tensor([40, 2], device=DEVICE)
    adam = torch.tensor([0.0, 0.0, 0.9, 0.999, 1e-8], device=DEVICE)
    advance(counters, torch.tensor([1e-2], device=DEVICE), adam)
    assert counters.tolist() == [41, 3]
    moved = [to_device(part) for part in (table, moments, squares)]
    occurrences = find_occurrences(ids.int().to(DEVICE), anchors.int().to(DEVICE), NUM_ENTITIES)
    for gradients in (None, to_device(anchor_grads)):
        before = moved[0].clone()
        update_entities(
            *moved,
            occurrences,
            to_device(coefficients),
            prepared_regions(kind, to_device(first), to_device(second)),
            gradients,
            adam,
            geometry=kind,
            inverse_range=1 / RANGE,
            center_weight=CENTER_WEIGHT,
        )
        changed = (moved[0] != before).any(dim=1).nonzero().flatten().tolist()
        assert changed == ([1, 2, 3, 4, 6, 7, 8] if gradients is None else [0, 5])
    for actual, expected in zip(
        moved, (expected_table, expected_moments, expected_squares), strict=True
    ):
        torch.testing.assert_close(
            actual.cpu().double(), expected, atol=2e-5 * float(expected.abs().max()), rtol=1e-4
        )
    assert gradient[8].abs().max() == 0
    assert (expected_table[8] - table[8]).abs().max() > 1e-4, "an untouched row moves on"


def test_bias_corrections_from_the_first_update_on() -> None:
    counters = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    adam = torch.tensor([0.0, 0.0, 0.9, 0.999, 1e-8], device=DEVICE)
    for count in (1, 2, 3):
        advance(counters, torch.tensor([0.5], device=DEVICE), adam)
        assert float(adam[0]) == pytest.approx(0.5 / (1 - 0.9**count), rel=1e-5)
        assert float(adam[1]) == pytest.approx(math.sqrt(1 - 0.999**count), rel=1e-4)


def test_occurrences_list_every_place_of_every_entity() -> None:
    candidates = torch.tensor([[3, 1], [1, 1]], dtype=torch.int32, device=DEVICE)
    anchors = torch.tensor([0, 3], dtype=torch.int32, device=DEVICE)
    found = find_occurrences(candidates, anchors, 5)
    places = [
        found.order[start:stop].tolist()
        for start, stop in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]
    assert places == [[4], [1, 2, 3], [], [0, 5], []]


@pytest.mark.parametrize("num_entities", [32_768, 65_535, 65_536, 70_000])
def test_occurrences_of_the_last_entities_whatever_the_width_of_keys(num_entities: int) -> None:
    last = num_entities - 1
    candidates = torch.tensor([[last, 0], [40_000 % last, last]], dtype=torch.int32, device=DEVICE)
    anchors = torch.tensor([last, 1], dtype=torch.int32, device=DEVICE)
    found = find_occurrences(candidates, anchors, num_entities)
    for entity, places in ((last, [0, 3, 4]), (0, [1]), (40_000 % last, [2]), (1, [5]), (2, [])):
        start, stop = found.offsets[entity : entity + 2].tolist()
        assert found.order[start:stop].tolist() == places
    assert len(found.offsets) == num_entities + 1
    assert int(found.offsets[-1]) == 6
