"""The catalog: one dictionary of all models, and functions that build a model by its name.

A new model needs one file of its own and one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from conekg.errors import ConfigError, unknown_choice
from conekg.graph.adjacency import IntArray
from conekg.model.beta import Beta, BetaConfig
from conekg.model.box import Box, BoxConfig
from conekg.model.cone import Cone, ConeConfig
from conekg.model.config import ModelConfig, config_from_table
from conekg.model.emql import Emql, EmqlConfig
from conekg.model.gqe import Gqe, GqeConfig
from conekg.model.interface import QueryModel


@dataclass(frozen=True)
class ModelEntry:
    """A model of the catalog."""

    model: type[QueryModel]
    config: type[Any]
    """The frozen dataclass of its options, every field with a default."""
    summary: str
    """One line for a list of models."""


MODELS: dict[str, ModelEntry] = {
    entry.model.name: entry
    for entry in (
        ModelEntry(Cone, ConeConfig, "ConE: products of sector-cones; negation is exact"),
        ModelEntry(Gqe, GqeConfig, "GQE: points and translations; no negation"),
        ModelEntry(Box, BoxConfig, "Query2Box: boxes; no negation"),
        ModelEntry(Beta, BetaConfig, "BetaE: products of Beta distributions; negation"),
        ModelEntry(Emql, EmqlConfig, "EmQL: centroids and sketches over stored facts; no negation"),
    )
}
"""Every model by name."""


def find_model(name: str) -> ModelEntry:
    """The entry called `name`; ConfigError with a suggestion when there is none."""
    entry = MODELS.get(name)
    if entry is None:
        raise unknown_choice("model", name, MODELS)
    return entry


def model_config(name: str, values: Mapping[str, object]) -> ModelConfig:
    """The configuration of a model from a mapping; options it leaves out take their defaults."""
    config: ModelConfig = config_from_table(find_model(name).config, values)
    return config


def build_model(
    name: str,
    num_entities: int,
    num_relations: int,
    config: ModelConfig | Mapping[str, object] | None = None,
    seed: int = 0,
    *,
    facts: IntArray | None = None,
) -> QueryModel:
    """A freshly initialised model on the CPU, in float32; the seed determines every weight.

    `facts` [n, 3] are the training edges, both directions, for models with `needs_facts`.
    """
    entry = find_model(name)
    if config is None or isinstance(config, Mapping):
        config = model_config(name, config or {})
    if not isinstance(config, entry.config):
        raise ConfigError(
            f"model {name!r} is configured by {entry.config.__name__}, "
            f"not by {type(config).__name__}",
            key="model",
        )
    generator = torch.Generator().manual_seed(seed)
    build: Any = entry.model
    if not entry.model.needs_facts:
        model: QueryModel = build(num_entities, num_relations, config, generator)
        return model
    if facts is None or len(facts) == 0:
        raise ConfigError(f"model {name!r} looks facts up and was given none", key="model")
    edges = torch.from_numpy(np.asarray(facts, dtype=np.int64))
    model = build(num_entities, num_relations, config, generator, edges)
    return model
