"""The OpenAPI description is true: generated requests to a real server behave as described.

Random text is rarely a query, so half of the generated bodies get a real one: that is
what reaches the scoring thread.
"""

from __future__ import annotations

import random

from extras import need

need("fastapi", "uvicorn", "schemathesis")

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

QUERIES = (
    "France.borders",
    "France.borders & !Germany.borders",
    "(France.borders | Spain).^borders",
    "!*",
    "* & Europe.^in_region",
    '"South America".^in_subregion.capital',
    "?x: borders('France', ?x) & !borders('Spain', ?x)",
)
NAMES = ("France", "New Zealand", "Europe")


ROUTES = [
    ("GET", "/api/about"),
    ("GET", "/api/entities"),
    ("GET", "/api/graph/neighbors"),
    ("GET", "/api/relations"),
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("POST", "/api/ask"),
    ("POST", "/api/cones"),
    ("POST", "/api/explain"),
    ("POST", "/api/parse"),
]


@pytest.fixture(scope="module")
def api_schema(served):
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_the_description_is_true(api_schema, method, path, mode):
    operation = api_schema[path][method]
    if mode.is_negative and not (operation.body or operation.query):
        return  # nothing of this request can be made wrong

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        if mode.is_positive:
            make_real(case)
        # A text that matches the schema may not be a query of this graph: 400 and 404 are fine.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    check()


def make_real(case) -> None:
    """Half of the time, a query and names that the graph has."""
    chance = random.Random(repr((case.body, case.query)))
    if chance.random() < 0.5:
        return
    body = case.body if isinstance(case.body, dict) else {}
    if isinstance(body.get("query"), str):
        body["query"] = chance.choice(QUERIES)
    if isinstance(body.get("answer"), str):
        body["answer"] = chance.choice(NAMES)
    if "exclude" in body:
        body["exclude"] = [chance.choice(NAMES)]
    if case.query and "entity" in case.query:
        case.query["entity"] = chance.choice(NAMES)


def test_every_route_is_listed(api_schema):
    described = {
        (method.upper(), path)
        for path, methods in api_schema.raw_schema["paths"].items()
        for method in methods
    }
    assert described == set(ROUTES)
