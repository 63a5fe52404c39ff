"""The contract of every model of the catalog, whatever its geometry."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from conekg.errors import UnsupportedOperatorError
from conekg.model.catalog import MODELS
from conekg.model.interface import QueryModel, Region
from conekg.model.scoring import scoring_table
from conekg.model.support import is_supported
from conekg.query.shape import STRUCTURES
from conekg.query.tree import Anchor, Project, Query
from conekg.training.loss import negative_sampling_loss
from small_models import (
    NUM_ENTITIES,
    NUM_RELATIONS,
    VARIANTS,
    embed_queries,
    rough_model,
    score_queries,
    small_model,
)
from strategies import queries

every_model = pytest.mark.parametrize("name", list(VARIANTS))


def model_class(name: str) -> type[QueryModel]:
    """The class of a variant's model."""
    return MODELS[VARIANTS[name][0]].model


def test_every_model_of_the_catalog_is_under_contract() -> None:
    assert {catalog_name for catalog_name, _ in VARIANTS.values()} == set(MODELS)


def supported(name: str, **without: bool) -> st.SearchStrategy[Query]:
    """Queries of any shape that the model has operators for."""
    model = model_class(name)
    options = {"universe": model.can_embed_universe, "negation": model.can_negate} | without
    return queries(NUM_ENTITIES, NUM_RELATIONS, **options)


def structure_queries(name: str) -> list[Query]:
    """Two queries of every structure of the literature that the model can embed."""
    generator = torch.Generator().manual_seed(1)

    def ids(limit: int, count: int) -> list[int]:
        return torch.randint(limit, (count,), generator=generator).tolist()

    return [
        shape.ground(ids(NUM_ENTITIES, shape.num_anchors), ids(NUM_RELATIONS, shape.num_relations))
        for shape in STRUCTURES.values()
        if is_supported(model_class(name), shape)
        for _ in range(2)
    ]


def some_regions(model: QueryModel, rows: int = 4) -> Region:
    """Projected regions, which use every component."""
    entities = torch.arange(rows) % NUM_ENTITIES
    return model.project(model.anchor(entities), entities % NUM_RELATIONS)


@every_model
@given(data=st.data())
def test_a_mixed_batch_equals_one_by_one(name: str, data: st.DataObject) -> None:
    model = small_model(name)
    batch = data.draw(st.lists(supported(name), min_size=1, max_size=4))
    together = score_queries(model, batch)
    apart = torch.cat([score_queries(model, [query]) for query in batch])
    torch.testing.assert_close(together, apart, rtol=1e-9, atol=1e-9)


@every_model
def test_logits_tell_entities_and_queries_apart(name: str) -> None:
    logits = score_queries(small_model(name), structure_queries(name))
    assert logits.isfinite().all()
    assert (logits.std(dim=0) > 0).all()
    assert (logits.std(dim=1) > 0).all()


@every_model
def test_gradients_are_finite_and_reach_every_parameter(name: str) -> None:
    model = small_model(name).train().requires_grad_(True)
    batch = structure_queries(name)
    generator = torch.Generator().manual_seed(2)
    if model.has_own_loss:
        loss = model.training_loss(16, generator)
    else:
        candidates = torch.randint(NUM_ENTITIES, (len(batch), 4), generator=generator)
        logits = score_queries(model, batch, candidates)
        weights = torch.ones(len(batch), dtype=logits.dtype)
        loss = negative_sampling_loss(logits[:, :1], logits[:, 1:], weights)
    names, parameters = zip(*model.named_parameters(), strict=True)
    for parameter, gradient in zip(names, torch.autograd.grad(loss, parameters), strict=True):
        assert gradient.isfinite().all(), parameter
        # A softmax over operands ignores what they share, so this bias alone learns nothing.
        assert parameter == "attention.2.bias" or gradient.abs().max() > 0, parameter


@every_model
def test_gradients_are_the_same_bit_by_bit_by_several_threads(name: str) -> None:
    """Repeated gradients are equal, so a run resumed on a CPU ends with the same weights."""
    model = rough_model(name, dim=64).train()

    def gradient() -> Tensor:
        generator = torch.Generator().manual_seed(2)
        if model.has_own_loss:
            loss = model.training_loss(256, generator)
        else:
            candidates = torch.randint(NUM_ENTITIES, (256, 129), generator=generator)
            weights = torch.rand(256, 129, generator=generator)
            loss = (weights * model.logits(some_regions(model, 256), candidates)).sum()
        (found,) = torch.autograd.grad(loss, [model.entity])
        return found

    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        first, *others = (gradient() for _ in range(6))
    finally:
        torch.set_num_threads(threads)
    assert first.abs().max() > 0
    assert all(torch.equal(first, other) for other in others)


@every_model
def test_intersection_ignores_the_order_of_operands(name: str) -> None:
    model = small_model(name)
    operands = [some_regions(model), model.anchor(torch.tensor([5, 6, 7, 0]))]
    operands.append(model.project(operands[1], torch.tensor([1, 1, 0, 4])))
    orders = ([0, 1, 2], [2, 0, 1], [1, 0, 2])
    first, *others = (
        model.intersect(tuple(torch.stack([operands[i][c] for i in order]) for c in range(parts)))
        for order in orders
        for parts in [len(operands[0])]
    )
    for other in others:
        torch.testing.assert_close(other, first)


@every_model
def test_a_seed_determines_every_weight_and_nothing_else_does(name: str) -> None:
    before = torch.get_rng_state()
    first, again, other = small_model(name, 3), small_model(name, 3), small_model(name, 4)
    assert torch.equal(torch.get_rng_state(), before)
    for key, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key
        assert key == "scale" or not torch.equal(value, other.state_dict()[key]), key


@every_model
def test_no_verb_changes_its_arguments(name: str) -> None:
    model = small_model(name).train()
    region = tuple(part.detach().clone() for part in some_regions(model))
    relation_ids, entity_ids = torch.tensor([0, 1, 2, 3]), torch.tensor([[1, 2]])
    given_parts = [*region, relation_ids, entity_ids]
    copies = [part.clone() for part in given_parts]
    model.project(region, relation_ids)
    model.intersect(tuple(torch.stack([part, part]) for part in region))
    if model.can_negate:
        model.negate(region)
    model.logits(region, entity_ids)
    model.logits_of_all(region)
    scoring_table(model).logits(region)
    for part, copy in zip(given_parts, copies, strict=True):
        assert torch.equal(part, copy)


@every_model
def test_scoring_all_equals_scoring_each(name: str) -> None:
    model = small_model(name)
    region = some_regions(model)
    all_ids = torch.arange(NUM_ENTITIES)
    each = model.distance(region, all_ids.repeat(4, 1))
    torch.testing.assert_close(model.distance_to_all(region), each)
    torch.testing.assert_close(model.distance(region, all_ids[None]), each)
    backwards = model.distance(region, all_ids.flip(0).repeat(4, 1)).flip(1)
    torch.testing.assert_close(backwards, each)
    expected = model.gamma - model.distance_scale * each
    torch.testing.assert_close(model.logits_of_all(region), expected)


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("entity_id", [-1, NUM_ENTITIES])
@pytest.mark.parametrize("candidates", [1, NUM_ENTITIES])
def test_ids_of_no_entity_are_refused(
    name: str, candidates: int, entity_id: int, dtype: torch.dtype
) -> None:
    """With fewer candidates than entities and with more, which ConE looks up differently."""
    model = small_model(name).to(dtype)
    entity_ids = torch.zeros(4, candidates, dtype=torch.long)
    entity_ids[2, -1] = entity_id
    with pytest.raises(IndexError, match="out of range"):
        model.distance(some_regions(model), entity_ids)


@every_model
@pytest.mark.parametrize("rows", [1, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_scoring_table_gives_the_model_s_logits(name: str, rows: int, dtype: torch.dtype) -> None:
    model = small_model(name).to(dtype)
    region = some_regions(model, rows)
    logits = scoring_table(model.requires_grad_(True)).logits(region)
    assert logits.dtype == dtype
    assert not logits.requires_grad
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(
        logits, model.logits_of_all(region).detach(), atol=1e-5, rtol=tolerance
    )


@every_model
def test_an_empty_batch_has_empty_answers(name: str) -> None:
    model = small_model(name)
    no_ids = torch.empty(0, dtype=torch.long)
    region = model.project(model.anchor(no_ids), no_ids)
    region = model.intersect(tuple(torch.stack([part, part]) for part in region))
    if model.can_negate:
        region = model.negate(region)
    assert model.distance(region, torch.empty(0, 3, dtype=torch.long)).shape == (0, 3)
    assert model.distance_to_all(region).shape == (0, NUM_ENTITIES)
    assert scoring_table(model.float()).logits(tuple(p.float() for p in region)).shape == (
        0,
        NUM_ENTITIES,
    )


@every_model
def test_a_missing_operator_raises_an_error_that_names_it(name: str) -> None:
    model = small_model(name)
    region = some_regions(model)
    if not model.can_negate:
        with pytest.raises(UnsupportedOperatorError, match=f"{model.name} cannot negate"):
            model.negate(region)
    if not model.can_embed_universe:
        with pytest.raises(UnsupportedOperatorError, match="set of all entities"):
            model.universe(2)
    if not model.has_extent:
        with pytest.raises(UnsupportedOperatorError, match="no inside"):
            model.inside_fraction_of_all(region)
    if not model.has_own_loss:
        with pytest.raises(AssertionError, match="shared loss"):
            model.training_loss(1, torch.Generator())


@pytest.mark.parametrize("name", [name for name in VARIANTS if model_class(name).has_extent])
def test_entities_are_inside_their_own_region(name: str) -> None:
    model = small_model(name)
    all_ids = torch.arange(NUM_ENTITIES)
    inside = model.inside_fraction_of_all(model.anchor(all_ids))
    torch.testing.assert_close(inside.diagonal(), torch.ones(NUM_ENTITIES).double())
    assert (inside.fill_diagonal_(0.0) == 0).all()
    region = some_regions(model)
    torch.testing.assert_close(
        model.inside_fraction(region, all_ids[None]), model.inside_fraction_of_all(region)
    )
    # Inside everywhere means no outside distance; outside somewhere means some.
    mixed = model.inside_fraction_of_all(region)
    assert 0 < mixed.mean() < 1


@pytest.mark.parametrize("name", [name for name in VARIANTS if model_class(name).can_negate])
def test_double_negation_scores_as_the_region_itself(name: str) -> None:
    model = small_model(name)
    region = some_regions(model)
    torch.testing.assert_close(
        model.distance_to_all(model.negate(model.negate(region))), model.distance_to_all(region)
    )
    assert not torch.allclose(
        model.distance_to_all(model.negate(region)), model.distance_to_all(region)
    )


@every_model
def test_models_train_and_score_in_single_precision(name: str) -> None:
    model = rough_model(name)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    exact = small_model(name)
    batch = [Project(Anchor(1), 2), Project(Anchor(2), 3)]
    rough: Tensor = score_queries(model.eval(), batch)
    torch.testing.assert_close(rough.double(), score_queries(exact, batch), atol=1e-4, rtol=1e-4)
    assert embed_queries(model, batch)[0].dtype == torch.float32


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"emql"}))
def test_regions_stay_float32_beside_bfloat16_products(name: str) -> None:
    """Kernels read regions in float32; the 8 bits of bfloat16 are too few for angles."""
    model = rough_model(name)
    ids = torch.arange(4)
    with torch.autocast("cpu", torch.bfloat16):
        regions = [model.project(model.anchor(ids), ids)]
        regions.append(model.project(regions[-1], ids))
        regions.append(model.intersect(tuple(torch.stack([part, part]) for part in regions[-1])))
        if model.can_negate:
            regions.append(model.negate(regions[-1]))
    assert {part.dtype for region in regions for part in region} == {torch.float32}


class RoundedProducts(TorchFunctionMode):
    """Takes matrix products in bfloat16 and converts them to float32; all else is unchanged."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func not in (linear, torch.Tensor.matmul, torch.Tensor.__matmul__):
            return func(*args, **(kwargs or {}))
        return func(*(argument.bfloat16() for argument in args)).float()


@every_model
def test_only_products_are_taken_in_bfloat16(name: str) -> None:
    """Attention, gates and losses need more than the 8 bits of bfloat16."""
    model = rough_model(name).eval()
    ids = torch.arange(4)

    def results() -> list[Tensor]:
        path = model.project(model.project(model.anchor(ids), ids), ids)
        link = model.project(model.anchor(ids + 4), ids)
        both = tuple(torch.stack(parts) for parts in zip(path, link, strict=True))
        found = [*path, *model.intersect(both)]
        if model.has_own_loss:
            found.append(model.training_loss(6, torch.Generator().manual_seed(0)))
        return found

    with torch.autocast("cpu", torch.bfloat16):
        found = results()
    with RoundedProducts():
        expected = results()
    exact = results()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)
    if model.has_own_loss or any(isinstance(module, nn.Linear) for module in model.modules()):
        assert not all(map(torch.equal, expected, exact))
