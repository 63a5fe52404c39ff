"""docs/http-api.md is complete: routes, fields, limits, errors and metrics."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from extras import need

need("fastapi")

import pytest

from conekg.query.parse import DEPTH_LIMIT
from conekg.serving.errors import STATUS, kind_of
from conekg.serving.http import ERRORS, create_app
from conekg.serving.limits import Limits
from conekg.serving.schemas import (
    AnswerItem,
    AskResponse,
    ErrorBody,
    ExplainResponse,
    WitnessItem,
)

PAGE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text(encoding="utf-8")


def rows_of(section: str) -> list[list[str]]:
    text = PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def test_every_route_is_documented_and_no_other(answerer):
    documented = {cells[0].strip("`") for cells in rows_of("Routes")}
    described = {
        f"{method.upper()} {path}"
        for path, methods in create_app(answerer).openapi()["paths"].items()
        for method in methods
    }
    assert documented == described | {"GET /"}


def test_every_option_of_a_request_is_documented_with_its_default(answerer):
    api = create_app(answerer).openapi()
    text = {cells[0].strip("`"): cells[1] for cells in rows_of("Routes")}
    defaults = 0
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            row = text[f"{method.upper()} {path}"]
            options = {each["name"]: each["schema"] for each in operation.get("parameters", [])}
            if "requestBody" in operation:
                reference = operation["requestBody"]["content"]["application/json"]["schema"]
                schema = api["components"]["schemas"][reference["$ref"].rsplit("/", 1)[1]]
                options |= schema["properties"]
            for name, option in options.items():
                assert f"`{name}`" in row, f"{path} does not document {name}"
                if (default := option.get("default")) not in (None, "", []):
                    shown = default if isinstance(default, str) else json.dumps(default)
                    after = row.partition(f"`{name}`")[2][:60]
                    assert re.search(rf"\b{shown}\b", after), (
                        f"{path}: {name} is {shown} by default"
                    )
                    defaults += 1
    assert defaults > 10


@pytest.mark.parametrize(
    "schema",
    [AskResponse, AnswerItem, ExplainResponse, WitnessItem],
    ids=lambda each: each.__name__,
)
def test_every_field_of_an_answer_is_documented(schema):
    section = PAGE.split("## Answers\n", 1)[1].split("\n## ", 1)[0]
    for name in schema.model_fields.keys() - {"answer"}:
        assert f"`{name}`" in section, name


def test_every_limit_is_documented_with_its_default():
    documented = {cells[0].strip("`"): cells[1] for cells in rows_of("Limits")}
    assert documented == {each.name: str(each.default) for each in fields(Limits)}


def test_the_deepest_limit_of_depth_is_documented():
    (said,) = (cells[2] for cells in rows_of("Limits") if cells[0] == "`query_depth`")
    assert said.endswith(f"can be raised to {DEPTH_LIMIT}")


def test_every_error_kind_is_documented_under_its_status():
    documented = {
        kind: int(status)
        for status, kinds in rows_of("Errors")
        for kind in re.findall(r"`([a-z_]+)`", kinds)
    }
    for kind, status in STATUS.items():
        bare = kind.__new__(kind)
        assert documented[kind_of(bare)] == status
    assert set(documented.values()) >= {int(status) for status in ERRORS}


@pytest.mark.parametrize("field", ErrorBody.model_fields)
def test_the_error_shape_is_shown(field):
    assert f'"{field}"' in PAGE
