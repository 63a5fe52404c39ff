"""Validation during training: the function that is passed to the training loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conekg.evaluation.evaluate import evaluate
from conekg.model.interface import QueryModel
from conekg.sampling.query_set import QuerySet


def make_validator(
    queries: QuerySet, num_entities: int, max_queries: int
) -> Callable[[QueryModel], Mapping[str, float]]:
    """A function from a model to its MRR on each structure, and their mean under `score`.

    At most `max_queries` queries of each structure are ranked, always the same ones.
    """

    def validate(model: QueryModel) -> Mapping[str, float]:
        report = evaluate(model, queries, num_entities=num_entities, max_queries=max_queries)
        by_structure = {f"mrr_{name}": value.mrr for name, value in report.measured.items()}
        return {"score": report.mean("mrr")} | by_structure

    return validate
