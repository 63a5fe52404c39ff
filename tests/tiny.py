"""A graph, queries and recipes so small that training them takes a second or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, with_inverses
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.model.catalog import model_config
from conekg.sampling.protocol import PRESETS
from conekg.sampling.query_set import QuerySet
from conekg.sampling.sample import sample_query_set
from conekg.training.recipe import Recipe
from conekg.training.recipes import find_recipe
from conekg.training.run import Run, create_run

CONFIGS: dict[str, dict[str, object]] = {
    "cone": {"dim": 32, "hidden": 48, "gamma": 12.0, "dropout": 0.05},
    "gqe": {"dim": 32, "gamma": 12.0},
    "box": {"dim": 32, "gamma": 12.0},
    "beta": {"dim": 16, "hidden": 48, "gamma": 12.0},
    "emql": {"dim": 24, "top_k": 32, "sketch_width": 64, "sketch_depth": 5},
}
"""A small configuration of each model."""

SETTINGS = [
    "training.steps=3",
    "training.batch_size=16",
    "training.negatives=4",
    "model.dim=8",
    "model.hidden=8",
]
"""Settings with which a fit of ConE takes about a second."""

FEW = replace(
    PRESETS["small"],
    train_count=20,
    train_negation_count=5,
    evaluation_count=5,
    patience=2048,
    min_yield=0.01,
)
"""A sampling protocol with a few queries of each shape."""


@cache
def tiny_graph() -> KnowledgeGraph:
    """A graph of 24 people in 4 towns with 3 jobs, and 3 relations: home, job, acquaintance."""
    people, towns, jobs = 24, 4, 3
    facts = [(p, 0, people + p % towns) for p in range(people)]  # lives_in
    facts += [(p, 1, people + towns + p % jobs) for p in range(people)]  # works_as
    facts += [(p, 2, (p + towns) % people) for p in range(people)]  # knows, in the same town
    triples = np.random.default_rng(3).permutation(np.array(facts, dtype=np.int32))
    parts: dict[Split, Any] = {"train": triples[:58], "valid": triples[58:65], "test": triples[65:]}
    names = [f"person{i}" for i in range(people)] + [f"town{i}" for i in range(towns)]
    names += [f"job{i}" for i in range(jobs)]
    vocabulary = Vocabulary(
        NameTable("entity", names), NameTable("relation", ["lives_in", "works_as", "knows"])
    )
    return KnowledgeGraph("tiny", vocabulary, {s: with_inverses(p) for s, p in parts.items()})


@cache
def tiny_queries() -> Mapping[Split, QuerySet]:
    """The queries of each split: at most a few dozen of each shape."""
    protocol = replace(
        PRESETS["small"],
        train_count=40,
        train_negation_count=15,
        evaluation_count=10,
        patience=4096,
        min_yield=0.01,
    )
    graph = tiny_graph()
    return {
        split: sample_query_set(graph, split, protocol, 1, workers=1).query_set for split in SPLITS
    }


def tiny_recipe(model: str = "cone", **training: Any) -> Recipe:
    """A recipe of 12 steps for the tiny queries; keywords change its training settings."""
    recipe = find_recipe("small", model)
    changes: dict[str, Any] = {
        "steps": 12,
        "batch_size": 16,
        "negatives": 4,
        "learning_rate": 5e-3,
        "log_every": 4,
        "validate_every": None,
        "checkpoint_every": 4,
    }
    present = frozenset(b.shape.name for b in tiny_queries()["train"] if len(b))
    shaped = recipe.training.restricted_to(present)
    return replace(
        recipe,
        config=model_config(model, CONFIGS[model]),
        training=replace(shaped, **changes | training),
    )


def tiny_run(folder: Path, model: str = "cone", **training: Any) -> Run:
    """A run on the tiny graph that is not trained yet."""
    return create_run(folder, tiny_graph(), tiny_recipe(model, **training), tiny_queries())
