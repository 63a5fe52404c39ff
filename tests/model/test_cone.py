"""ConE's formulas in plain loops, its ranges, and the properties that the paper states."""

from __future__ import annotations

import cmath
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from conekg.errors import ConfigError
from conekg.model.cone import Cone, ConeConfig, angle, cone_distance, published_angle, wrap
from conekg.model.interface import Region
from conekg.query.tree import Project, Universe
from small_models import NUM_ENTITIES, embed_queries, small_model
from strategies import queries

angles = st.floats(-math.pi, math.pi, exclude_max=True)
half_apertures = st.floats(0.0, math.pi)


both_projections = pytest.mark.parametrize("variant", ["cone", "cone-rotation"])


def cone(variant: str = "cone", **options: object) -> Cone:
    model = small_model(variant, **options)
    assert isinstance(model, Cone)
    return model


def some_cones(seed: int, *shape: int) -> Region:
    generator = torch.Generator().manual_seed(seed)
    axis = torch.empty(*shape, 5, dtype=torch.float64).uniform_(-3.1, 3.1, generator=generator)
    half = torch.empty(*shape, 5, dtype=torch.float64).uniform_(0.0, 3.1, generator=generator)
    return axis, half


def network(layers: list[tuple[Tensor, Tensor]], inputs: list[float]) -> list[float]:
    """A perceptron by hand: ReLU after every layer but the last."""
    values = inputs
    for index, (weight, bias) in enumerate(layers):
        values = [
            sum(w * v for w, v in zip(row, values, strict=True)) + b
            for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
        ]
        if index + 1 < len(layers):
            values = [max(0.0, value) for value in values]
    return values


def layers_of(model: Cone, name: str) -> list[tuple[Tensor, Tensor]]:
    module = getattr(model, name)
    parts = [module.inner, module.outer] if name == "gate" else list(module)[::2]
    return [(part.weight, part.bias) for part in parts]


def published_distance(v: float, axis: float, half: float, weight: float) -> float:
    """One dimension of the distance as reference and paper print it, with sin(·/2).

    Inside, |sin δ/2| < |sin h/2|: of the squares, sin² h/2 − sin² δ/2 = sin (h+δ)/2 sin (h−δ)/2.
    The sines themselves are both 1 for angles within 1e-8 of π, whichever is larger.
    """
    delta = v - axis
    lower, upper = math.sin((half + delta) / 2), math.sin((half - delta) / 2)
    outside = 0.0 if lower * upper > 0 else min(abs(lower), abs(upper))
    return outside + weight * min(abs(math.sin(delta / 2)), abs(math.sin(half / 2)))


@given(v=angles, axis=angles, half=st.floats(0.0, 1.25 * math.pi), weight=st.floats(0.0, 1.0))
@example(v=-math.pi, axis=-1e-9, half=math.pi, weight=0.0)  # inside by less than sines resolve
def test_distance_is_the_published_one(v: float, axis: float, half: float, weight: float) -> None:
    # Dropout lets half apertures pass π in training; the published formula covers that.
    point, center, opening = (torch.tensor([x], dtype=torch.float64) for x in (v, axis, half))
    ours = float(cone_distance(point, center, opening, weight))
    assert ours == pytest.approx(published_distance(v, axis, half, weight), abs=1e-12)


@given(v=angles, axis=angles, half=half_apertures)
def test_distance_is_zero_on_the_axis_and_small_inside(v: float, axis: float, half: float) -> None:
    point, center, opening = (torch.tensor([x], dtype=torch.float64) for x in (v, axis, half))
    assert float(cone_distance(center, center, opening, 0.02)) == pytest.approx(0, abs=1e-15)
    gap = abs(v - axis) % (2 * math.pi)
    gap = min(gap, 2 * math.pi - gap)
    outside = float(cone_distance(point, center, opening, 0.0))
    expected = math.sin((gap - half) / 2) if gap > half else 0.0
    assert outside == pytest.approx(expected, abs=1e-12)


def test_distance_sums_dimensions_of_each_row() -> None:
    model = cone()
    axis, half = some_cones(1, 3)
    ids = torch.tensor([[0, 1], [2, 3], [4, 4]])
    distances = model.distance((axis, half), ids)
    points = model.points(ids)
    for row in range(3):
        for column in range(2):
            expected = sum(
                published_distance(*map(float, values), 0.02)
                for values in zip(points[row, column], axis[row], half[row], strict=True)
            )
            assert float(distances[row, column]) == pytest.approx(expected, abs=1e-12)


def test_entities_become_angles_within_the_circle() -> None:
    model = cone()
    rho = (model.gamma + 2) / model.dim
    axis, half = model.anchor(torch.tensor([3, 0]))
    expected = [math.pi * math.tanh(w / rho) for w in model.entity[3].tolist()]
    assert axis[0].tolist() == pytest.approx(expected)
    assert (half == 0).all()
    assert axis.abs().max() < math.pi


def test_projection_is_the_formula() -> None:
    model = cone(axis_scale=0.7, aperture_scale=1.5)
    axis, half = some_cones(2, 2)
    new_axis, new_half = model.project((axis, half), torch.tensor([4, 1]))
    rho = model.embedding_range
    for row, relation in enumerate([4, 1]):
        turned = [
            a + math.pi * math.tanh(r / rho)
            for a, r in zip(axis[row].tolist(), model.relation_axis[relation].tolist(), strict=True)
        ]
        opened = [
            h + math.pi * math.tanh(r / rho)
            for h, r in zip(
                half[row].tolist(), model.relation_aperture[relation].tolist(), strict=True
            )
        ]
        raw = network(layers_of(model, "projection"), turned + opened)
        assert new_axis[row].tolist() == pytest.approx(
            [math.pi * math.tanh(0.7 * x) for x in raw[:5]]
        )
        # The aperture of the paper is π tanh(λ2 x) + π; ours is half of it.
        assert new_half[row].tolist() == pytest.approx(
            [(math.pi * math.tanh(1.5 * x) + math.pi) / 2 for x in raw[5:]]
        )


@pytest.mark.parametrize(("share", "num_turned"), [(1.0, 5), (0.6, 3)])
def test_the_rotating_projection_is_the_formula(share: float, num_turned: int) -> None:
    model = cone("cone-rotation", axis_scale=0.7, aperture_scale=1.5, turned_share=share)
    axis, half = some_cones(2, 2)
    new_axis, new_half = model.project((axis, half), torch.tensor([4, 1]))
    rho = model.embedding_range
    for row, relation in enumerate([4, 1]):
        weights = (model.relation_axis[relation] / rho).tolist()
        turned = [
            a + math.pi * math.tanh(w) for a, w in zip(axis[row].tolist(), weights, strict=True)
        ]
        openings = (model.relation_aperture[relation] / rho).tolist()
        opened = [
            h + math.pi * math.tanh(w) for h, w in zip(half[row].tolist(), openings, strict=True)
        ]
        raw = network(layers_of(model, "projection"), turned + opened)
        for j in range(5):
            is_turned = j < num_turned
            made = math.pi * math.tanh(0.7 * raw[j])
            direction = cmath.exp(1j * (turned[j] + made if is_turned else made))
            assert float(new_axis[row, j]) == pytest.approx(cmath.phase(direction))
            kept = 2 * (2 * float(half[row, j]) / math.pi - 1)
            level = 1.5 * raw[5 + j] + (kept + openings[j] if is_turned else 0.0)
            assert float(new_half[row, j]) == pytest.approx(math.pi / 2 * (math.tanh(level) + 1))


def test_the_rotating_projection_starts_as_a_rotation() -> None:
    # Not `small_model`, which replaces weights that start at zero by random ones.
    model = Cone(6, 4, ConeConfig(dim=5, hidden=7, projection="rotation"), torch.Generator())
    anchors = model.anchor(torch.arange(6))
    relation = torch.full((6,), 2)
    axis, half = model.project(anchors, relation)
    turn = torch.remainder(axis - anchors[0], 2 * math.pi)
    torch.testing.assert_close(turn, turn[:1].expand(6, 5))
    turned_by = torch.remainder(model.to_angle(model.relation_axis[2]), 2 * math.pi)
    torch.testing.assert_close(turn[0], turned_by, msg="the network adds nothing yet")
    assert turn.std() > 0.1
    torch.testing.assert_close(half, half[:1].expand(6, 5))
    # Narrow from entities, nearly the full circle from the universe.
    assert 0 < half.min() < half.max() < 0.4
    _, from_universe = model.project(model.universe(6), relation)
    assert from_universe.min() > math.pi - 0.4


def test_the_network_makes_the_cones_that_are_not_turned() -> None:
    config = ConeConfig(dim=5, hidden=7, projection="rotation", turned_share=0.6)
    model = Cone(6, 4, config, torch.Generator())
    published = Cone(
        6, 4, replace(config, projection="published", turned_share=1.0), torch.Generator()
    )
    anchors, relation = model.anchor(torch.arange(6)), torch.full((6,), 2)
    axis, half = model.project(anchors, relation)
    turn = torch.remainder(axis - anchors[0], 2 * math.pi)
    torch.testing.assert_close(turn[:, :3], turn[:1, :3].expand(6, 3))
    made_axis, made_half = published.project(anchors, relation)
    torch.testing.assert_close(axis[:, 3:], made_axis[:, 3:])
    torch.testing.assert_close(half[:, 3:], made_half[:, 3:])


@pytest.mark.parametrize(
    ("dim", "share", "num_turned"), [(5, 0.15, 1), (5, 0.55, 3), (5, 0.05, 1), (1, 0.5, 1)]
)
def test_turned_share_is_rounded_to_cones_and_at_least_one(
    dim: int, share: float, num_turned: int
) -> None:
    config = ConeConfig(dim=dim, hidden=7, projection="rotation", turned_share=share)
    model = Cone(6, 4, config, torch.Generator())
    anchors, relation = model.anchor(torch.arange(6)), torch.full((6,), 2)
    axis, _ = model.project(anchors, relation)
    turned_by = torch.remainder(
        axis - anchors[0] - model.to_angle(model.relation_axis[2]), math.tau
    )
    is_turned = torch.minimum(turned_by, math.tau - turned_by).amax(dim=0) < 1e-5
    assert is_turned.tolist() == [j < num_turned for j in range(dim)]


def test_which_cones_are_turned_is_not_part_of_checkpoints() -> None:
    # Checkpoints from before `turned_share` existed can still be read.
    config = ConeConfig(dim=5, hidden=7, projection="rotation", turned_share=0.6)
    model, other = (Cone(6, 4, config, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert model.state_dict().keys() == dict(model.named_parameters()).keys()
    other.load_state_dict(model.state_dict())
    relations = torch.tensor([0, 1, 2, 3, 0, 1])
    for double in (False, True):
        regions = [
            (m.double() if double else m).project(m.anchor(torch.arange(6)), relations)
            for m in (model, other)
        ]
        for part, twin in zip(*regions, strict=True):
            assert part.dtype == (torch.float64 if double else torch.float32)
            torch.testing.assert_close(part, twin)


def test_turned_share_needs_the_rotating_projection() -> None:
    with pytest.raises(ConfigError, match=r"turned_share = 0\.5 .* 1, .* 'published', which turns"):
        ConeConfig(turned_share=0.5)


@both_projections
@pytest.mark.parametrize("opening", [0.0, 1e-8, math.pi / 2, math.pi, 1.25 * math.pi])
def test_projection_gradients_are_finite_at_every_aperture(variant: str, opening: float) -> None:
    # Dropout lets half apertures pass π in training.
    model = cone(variant).requires_grad_(True)
    axis = torch.linspace(-math.pi, math.pi, 15, dtype=torch.float64).reshape(3, 5)
    half = torch.full((3, 5), opening, dtype=torch.float64)
    inputs = [axis.requires_grad_(), half.requires_grad_()]
    new_axis, new_half = model.project((inputs[0], inputs[1]), torch.tensor([0, 1, 5]))
    assert ((new_axis >= -math.pi) & (new_axis <= math.pi)).all()
    assert ((new_half >= 0) & (new_half <= math.pi)).all()
    learnt = [*model.projection.parameters(), model.relation_axis, model.relation_aperture]
    for gradient in torch.autograd.grad((new_axis + new_half).sum(), inputs + learnt):
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0


@given(angle=st.floats(-30, 30))
def test_wrapping_keeps_the_direction(angle: float) -> None:
    wrapped = wrap(torch.tensor([angle], dtype=torch.float64, requires_grad=True))
    assert -math.pi <= float(wrapped.detach()) <= math.pi
    assert cmath.exp(1j * float(wrapped.detach())) == pytest.approx(cmath.exp(1j * angle))
    rough = float(wrap(torch.tensor([angle])))
    assert cmath.exp(1j * rough) == pytest.approx(cmath.exp(1j * angle), abs=1e-5)


def test_wrapped_angles_begin_at_minus_pi() -> None:
    assert float(wrap(torch.tensor(3 * math.pi, dtype=torch.float64))) == pytest.approx(-math.pi)


def test_wrapping_has_the_gradient_of_the_identity() -> None:
    turns = torch.tensor([-9.0, -math.pi, 0.0, math.pi, 9.0], requires_grad=True)
    wrap(turns).sum().backward()
    assert turns.grad.tolist() == [1.0] * 5


def test_intersection_is_the_formula() -> None:
    model = cone()
    axis, half = some_cones(3, 3, 2)
    new_axis, new_half = model.intersect((axis, half))
    for row in range(2):
        bounds = [(axis[i, row] - half[i, row]).tolist() for i in range(3)]
        bounds = [low + (axis[i, row] + half[i, row]).tolist() for i, low in enumerate(bounds)]
        scores = [network(layers_of(model, "attention"), bound) for bound in bounds]
        inner, outer = layers_of(model, "gate")
        hidden = [[max(0.0, v) for v in network([inner], bound)] for bound in bounds]
        mean = [sum(values) / 3 for values in zip(*hidden, strict=True)]
        gates = network([outer], mean)
        for j in range(5):
            weights = [math.exp(score[j]) for score in scores]
            average = sum(w * cmath.exp(1j * float(axis[i, row, j])) for i, w in enumerate(weights))
            assert float(new_axis[row, j]) == pytest.approx(cmath.phase(average))
            narrowest = min(float(half[i, row, j]) for i in range(3))
            assert float(new_half[row, j]) == pytest.approx(narrowest / (1 + math.exp(-gates[j])))


def test_negation_is_the_formula_and_leaves_no_gap() -> None:
    model = cone()
    axis, half = some_cones(4, 6)
    new_axis, new_half = model.negate((axis, half))
    for old, new in zip(axis.flatten().tolist(), new_axis.flatten().tolist(), strict=True):
        assert new == pytest.approx(old - math.pi if old >= 0 else old + math.pi)
    torch.testing.assert_close(new_half + half, torch.full_like(half, math.pi))
    # Every entity is in the cone or in its complement, in every dimension.
    inside = model.inside_fraction_of_all((axis, half))
    outside = model.inside_fraction_of_all((new_axis, new_half))
    torch.testing.assert_close(inside + outside, torch.ones_like(inside))


@given(axis=st.lists(angles, min_size=5, max_size=5), half=half_apertures)
def test_double_negation_is_the_identity_up_to_a_turn(axis: list[float], half: float) -> None:
    model = cone()
    region = (torch.tensor([axis], dtype=torch.float64), torch.full((1, 5), half).double())
    twice_axis, twice_half = model.negate(model.negate(region))
    assert torch.cos(twice_axis - region[0]).min() == pytest.approx(1.0)
    torch.testing.assert_close(twice_half, region[1])
    assert ((twice_axis >= -math.pi) & (twice_axis < math.pi)).all()


@both_projections
@given(query=queries(NUM_ENTITIES, 6, union=False))
def test_regions_stay_in_range(variant: str, query: object) -> None:
    axis, half = embed_queries(cone(variant), [query])
    assert ((axis >= -math.pi) & (axis <= math.pi)).all()
    assert ((half >= 0) & (half <= math.pi + 1e-12)).all()


@given(seed=st.integers(0, 10_000), operands=st.integers(2, 4))
def test_an_intersection_never_widens_the_smallest_aperture(seed: int, operands: int) -> None:
    axis, half = some_cones(seed, operands, 3)
    _, narrowed = cone().intersect((axis, half))
    assert (narrowed <= half.amin(dim=0)).all()
    assert (narrowed > 0).all()


def test_dropout_zeroes_or_grows_half_apertures_in_training_alone() -> None:
    model = cone(dropout=0.25)
    axis, half = some_cones(5, 1, 4000)
    _, gated = model.intersect((axis, half))
    model.train()
    model.dropout_generator = torch.Generator().manual_seed(1)
    _, dropped = model.intersect((axis, half))
    share_dropped = float((dropped == 0).double().mean())
    assert share_dropped == pytest.approx(0.25, abs=0.02)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], (gated / 0.75)[kept])
    model.dropout_generator.manual_seed(1)
    torch.testing.assert_close(model.intersect((axis, half))[1], dropped)


@given(x=st.floats(-2, 2), y=st.floats(-2, 2))
def test_angle_is_that_of_the_vector(x: float, y: float) -> None:
    vector = (torch.tensor([x], dtype=torch.float64), torch.tensor([y], dtype=torch.float64))
    assert float(angle(*vector)) == pytest.approx(math.atan2(y, x))
    published = float(published_angle(*vector))
    expected = math.atan2(y, x if abs(x) >= 1e-3 else 1e-3)
    # The published form reads -0.0 as a positive number.
    assert math.cos(published - expected) == pytest.approx(1.0)


@pytest.mark.parametrize("form", [angle, published_angle])
@given(x=st.floats(-2, 2, width=32), y=st.floats(-2, 2, width=32))
@example(x=1e-5, y=0.0)
@example(x=0.0, y=1e-5)
def test_angle_gradients_are_finite_and_bounded(form: object, x: float, y: float) -> None:
    vector = torch.tensor([x, y], requires_grad=True)
    form(vector[0], vector[1]).backward()
    assert vector.grad.isfinite().all()
    assert vector.grad.norm() <= 1.01e3


def test_angle_gradient_is_exact_away_from_the_centre() -> None:
    x, y = some_cones(6, 4)[0].requires_grad_(), some_cones(7, 4)[0].requires_grad_()
    assert torch.autograd.gradcheck(angle, (x, y))
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    value = angle(zero, zero * 1.0)
    value.backward()
    assert float(value.detach()) == 0.0
    assert zero.grad.item() == 0.0


def test_the_published_arctangent_flips_the_sign_of_small_negative_x() -> None:
    x, y = torch.tensor([-1e-4]), torch.tensor([0.5])
    assert float(angle(x, y)) > math.pi / 2
    assert float(published_angle(x, y)) < math.pi / 2


def test_opposite_cones_intersect_without_blowing_up() -> None:
    model = cone()
    axis, half = some_cones(8, 1, 3)
    axis.requires_grad_()
    both = model.intersect((torch.cat([axis, axis - math.pi]), torch.cat([half, half])))
    both[0].sum().backward()
    assert axis.grad.isfinite().all()


def test_the_universe_holds_everyone_at_no_outside_distance() -> None:
    model = cone(center_weight=0.0)
    region = model.universe(2)
    assert (model.inside_fraction_of_all(region) == 1).all()
    assert model.distance_to_all(region).abs().max() < 1e-15
    _, complement_half = model.negate(region)
    assert (complement_half == 0).all()
    _, projected_half = embed_queries(model, [Project(Universe(), 2)])
    assert projected_half.max() <= math.pi


def test_size_is_the_sum_of_apertures() -> None:
    model = cone()
    axis, half = some_cones(9, 3)
    torch.testing.assert_close(model.size((axis, half)), 2 * half.sum(dim=1))
    assert float(model.size(model.universe(1))) == pytest.approx(5 * 2 * math.pi)


def test_inside_fraction_counts_dimensions() -> None:
    model = cone()
    points = model.points(torch.tensor([0]))
    half = torch.tensor([[0.2, 0.2, 0.2, 0.2, 0.2]], dtype=torch.float64)
    shift = torch.tensor([[0.1, -0.1, 0.3, -0.3, 0.0]], dtype=torch.float64)
    inside = model.inside_fraction((points + shift, half), torch.tensor([[0]]))
    assert float(inside) == pytest.approx(3 / 5)


def test_memory_of_scoring_all_is_bounded() -> None:
    # 50 entities a chunk: rows · chunk · dim must not exceed the budget by much.
    seen = []

    class Watched(Cone):
        def distance_to_points(self, region: Region, points: Tensor) -> Tensor:
            seen.append(region[0].shape[0] * points.shape[1] * points.shape[2])
            return super().distance_to_points(region, points)

    model = Watched(3000, 2, ConeConfig(dim=64, hidden=8), torch.Generator())
    region = model.project(model.anchor(torch.arange(40)), torch.zeros(40, dtype=torch.long))
    with torch.no_grad():
        assert model.distance_to_all(region).shape == (40, 3000)
    assert len(seen) > 1
    assert max(seen) <= 1 << 20


@pytest.mark.parametrize("at", [2.0, 0.0, math.pi / 2, -3.0])
def test_an_average_shorter_than_a_thousandth_has_no_gradient(at: float) -> None:
    for length, flows in ((0.9e-3, False), (1.1e-3, True), (2e-2, True), (1.0, True)):
        x = torch.tensor(length * math.cos(at), dtype=torch.float64, requires_grad=True)
        y = torch.tensor(length * math.sin(at), dtype=torch.float64, requires_grad=True)
        direction = angle(x, y)
        assert float(direction.detach()) == pytest.approx(at)
        if direction.requires_grad:
            direction.backward()
        gradient = [0.0 if part.grad is None else float(part.grad) for part in (x, y)]
        expected = [-math.sin(at) / length, math.cos(at) / length] if flows else [0.0, 0.0]
        assert gradient == pytest.approx(expected)


def test_the_border_of_a_cone_is_inside() -> None:
    model, ids = small_model("cone"), torch.arange(3)
    points = model.points(ids[:, None])
    assert model.points_inside(model.anchor(ids), points).tolist() == [[1.0]] * 3
