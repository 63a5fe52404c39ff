import pytest

from conekg.evaluation.evaluate import evaluate
from conekg.evaluation.validate import make_validator
from conekg.model.catalog import build_model
from tiny import CONFIGS, tiny_graph, tiny_queries


def test_the_score_is_the_mean_over_structures_and_always_of_the_same_queries():
    graph = tiny_graph()
    model = build_model("cone", graph.num_entities, graph.num_relations, CONFIGS["cone"], 1)
    validate = make_validator(tiny_queries()["valid"], graph.num_entities, max_queries=4)
    measured = validate(model)
    report = evaluate(
        model, tiny_queries()["valid"], num_entities=graph.num_entities, max_queries=4
    )
    assert measured["score"] == pytest.approx(report.mean("mrr"))
    assert measured["mrr_1p"] == report.measured["1p"].mrr
    assert validate(model) == measured
