"""Which table a model gets, and that it is a snapshot."""

from __future__ import annotations

import pytest
import torch

from conekg.model.catalog import MODELS
from conekg.model.scoring import CompiledTable, DivergenceTable, PlainTable, scoring_table
from small_models import NUM_ENTITIES, small_model


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
    assert set(MODELS) == {"cone", "box", "gqe", "beta", "emql"}


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
    torch.testing.assert_close(table.logits(region), 30.0 - model.scale * distances)
