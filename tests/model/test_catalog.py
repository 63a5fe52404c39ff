"""Building models by name, from mappings, with errors that help."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch

from conekg.errors import ConfigError
from conekg.model.box import BoxConfig
from conekg.model.catalog import MODELS, build_model, find_model, model_config
from conekg.model.cone import ConeConfig
from small_models import SMALL_FACTS


def test_the_catalog_names_each_model_by_its_own_name() -> None:
    assert {"cone", "gqe", "box", "beta", "emql"} <= set(MODELS)
    for name, entry in MODELS.items():
        assert entry.model.name == name
        assert entry.summary


@pytest.mark.parametrize("name", list(MODELS))
def test_every_option_has_a_default_and_a_documented_meaning(name: str) -> None:
    config = MODELS[name].config
    assert config() == model_config(name, {})
    source = inspect.getsource(config)
    for field in dataclasses.fields(config):
        _, _, after = source.partition(f"    {field.name}: ")
        assert after.splitlines()[1].strip().startswith('"""'), field.name


@pytest.mark.parametrize("name", list(MODELS))
def test_configurations_cannot_be_changed(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        model_config(name, {}).dim = 3  # type: ignore[misc]


def test_an_unknown_model_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="unknown model 'cones'") as caught:
        find_model("cones")
    assert caught.value.suggestions == ("cone",)
    assert "gqe" in str(caught.value)


def test_an_unknown_option_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(
        ConfigError, match="unknown key 'gama'; ConeConfig has dim, gamma"
    ) as caught:
        model_config("cone", {"gama": 3.0})
    assert caught.value.key == "gama"
    assert caught.value.suggestions == ("gamma",)


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("cone", "dim", 0, "at least 1"),
        ("cone", "dim", 2.5, "a whole number is needed"),
        ("cone", "dim", True, "a whole number is needed"),
        ("cone", "gamma", "thirty", "a number is needed"),
        ("cone", "gamma", -1.0, "positive"),
        ("beta", "gamma", 1e300, "a million at most"),
        ("cone", "dropout", 1.0, "below 1"),
        ("cone", "hidden", 0, "at least 1"),
        ("cone", "center_weight", 1.0, r"in \[0, 1\)"),
        ("cone", "axis_scale", 0.0, "positive"),
        ("cone", "aperture_scale", 0.0, "positive"),
        ("cone", "arctangent", "exakt", "choose exact or published"),
        ("cone", "projection", "rotate", "choose published or rotation"),
        ("cone", "turned_share", 0.0, r"in \(0, 1\]"),
        ("gqe", "gamma", 0.0, "positive"),
        ("box", "center_weight", -0.1, r"in \[0, 1\)"),
        ("beta", "hidden", -1, "at least 1"),
        ("emql", "sketch_width", 100, "at least twice top_k"),
        ("emql", "sketch_depth", 0, "at least 1"),
        ("emql", "top_k", 0, "at least 1"),
        ("cone", "dim", 10**22, "a million at most"),
        ("cone", "hidden", 10**18, "a million at most"),
        ("gqe", "dim", 10**22, "a million at most"),
        ("emql", "top_k", 10**22, "a million at most"),
        ("emql", "sketch_depth", 10**22, "a million at most"),
        ("emql", "sketch_width", 10**22, "two million at most"),
        ("emql", "decode_with_sketch", 1, "true or false is needed"),
    ],
)
def test_values_out_of_range_or_of_the_wrong_type_are_errors(
    name: str, key: str, value: object, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        model_config(name, {key: value})
    assert caught.value.key == key
    assert repr(value) in str(caught.value)


def test_whole_numbers_are_accepted_where_numbers_are() -> None:
    assert model_config("cone", {"gamma": 20}) == ConeConfig(gamma=20.0)
    assert isinstance(model_config("cone", {"gamma": 20}).gamma, float)  # type: ignore[attr-defined]


def test_a_configuration_object_is_taken_as_it_is() -> None:
    model = build_model("box", 5, 4, BoxConfig(dim=3))
    assert model.dim == 3
    assert model.entity.shape == (5, 3)
    with pytest.raises(ConfigError, match="configured by ConeConfig, not by BoxConfig"):
        build_model("cone", 5, 4, BoxConfig())


def test_a_model_that_looks_facts_up_needs_them() -> None:
    with pytest.raises(ConfigError, match="'emql' looks facts up"):
        build_model("emql", 8, 6)
    assert build_model("emql", 8, 6, facts=SMALL_FACTS).num_entities == 8


def test_published_sizes_are_the_defaults() -> None:
    sizes = {"cone": 800, "gqe": 800, "box": 400, "beta": 400, "emql": 64}
    assert {name: model_config(name, {}).dim for name in sizes} == sizes
    cone = build_model("cone", 3, 2, {"dim": 20})
    assert float(cone.scale.detach()) == pytest.approx(0.5 * 32 / 20)  # m starts at ρ/2
    assert next(tuple(p.shape) for p in cone.projection.parameters()) == (1600, 40)
    assert torch.equal(cone.distance_scale, cone.scale)
