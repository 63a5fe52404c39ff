"""Models small enough to be checked in plain Python, and functions to score queries with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from conekg.model.catalog import build_model
from conekg.model.embed import best_over_branches, embed
from conekg.model.interface import QueryModel
from conekg.query.plan import plan_shapes
from conekg.query.shape import shape_of, slots_of
from conekg.query.tree import Query

NUM_ENTITIES, NUM_RELATIONS = 8, 6

SMALL_OPTIONS: dict[str, dict[str, object]] = {
    "cone": {"dim": 5, "hidden": 7},
    "gqe": {"dim": 5},
    "box": {"dim": 5},
    "beta": {"dim": 5, "hidden": 7},
    # top_k is large enough for all facts: facts of one subject and relation score the same, and
    # which of them a smaller top_k would keep is undefined.
    "emql": {"dim": 5, "top_k": 40, "sketch_width": 80, "sketch_depth": 6},
}

VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    name: (name, {}) for name in SMALL_OPTIONS
} | {"cone-rotation": ("cone", {"projection": "rotation"})}
"""The models to test, and variants of them, by name: (name in the catalog, options)."""

SMALL_FACTS = np.array(
    [
        edge
        for head, relation, tail in [
            (0, 0, 1),
            (0, 0, 2),
            (1, 1, 3),
            (2, 1, 3),
            (4, 2, 5),
            (6, 0, 7),
        ]
        for edge in ((head, 2 * relation, tail), (tail, 2 * relation + 1, head))
    ],
    dtype=np.int32,
)


def small_model(name: str, seed: int = 0, **options: object) -> QueryModel:
    """A variant over 8 entities and 6 relations: float64, without gradients, in eval mode.

    Parameters that start at zero are random, as they would be after some training.
    """
    return rough_model(name, seed, **options).double().eval().requires_grad_(False)


def rough_model(name: str, seed: int = 0, **options: object) -> QueryModel:
    """The same in single precision, ready for training."""
    catalog_name, own_options = VARIANTS[name]
    chosen = SMALL_OPTIONS[catalog_name] | own_options | options
    model = build_model(catalog_name, NUM_ENTITIES, NUM_RELATIONS, chosen, seed, facts=SMALL_FACTS)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.uniform_(-0.3, 0.3, generator=generator)
    return model


def embed_queries(model: QueryModel, queries: Sequence[Query]) -> tuple[Tensor, ...]:
    """The regions of queries without unions, embedded as one batch, in their order."""
    plan = plan_shapes([(shape_of(query), 1) for query in queries])
    slots = [slots_of(query) for query in queries]
    return embed(
        model,
        plan,
        [torch.tensor([entities], dtype=torch.long) for entities, _ in slots],
        [torch.tensor([relations], dtype=torch.long) for _, relations in slots],
    )


def score_queries(
    model: QueryModel, queries: Sequence[Query], candidates: Tensor | None = None
) -> Tensor:
    """[queries, candidates] logits of queries of any shapes, embedded as one batch.

    Without candidates [queries, candidates] every entity is scored.
    """
    plan = plan_shapes([(shape_of(query), 1) for query in queries])
    region = embed_queries(model, queries)
    if candidates is None:
        return best_over_branches(plan, model.logits_of_all(region))
    counts = torch.tensor([len(group.branches) for group in plan.groups])
    return best_over_branches(
        plan, model.logits(region, candidates.repeat_interleave(counts, dim=0))
    )
