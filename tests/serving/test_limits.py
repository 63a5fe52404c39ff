"""Limits: defaults, settings by name, and refusals that say what is accepted."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from conekg.errors import ConfigError
from conekg.query.parse import DEPTH_LIMIT
from conekg.serving.limits import Limits, limits_from_settings


def test_no_settings_are_the_defaults():
    assert limits_from_settings([]) == Limits()


def test_settings_change_what_they_name_and_nothing_else():
    limits = limits_from_settings(["timeout_s=2.5", " top_k =7"])
    assert limits == Limits(timeout_s=2.5, top_k=7)
    assert isinstance(limits.top_k, int)


@pytest.mark.parametrize("each", fields(Limits), ids=lambda each: each.name)
def test_every_limit_is_positive_and_settable(each):
    assert getattr(Limits(), each.name) > 0
    assert getattr(limits_from_settings([f"{each.name}=3"]), each.name) == 3
    with pytest.raises(ConfigError, match=f"limit {each.name} is 0"):
        limits_from_settings([f"{each.name}=0"])


def test_a_depth_limit_beyond_what_can_be_parsed_is_refused():
    assert Limits(query_depth=DEPTH_LIMIT).query_depth == DEPTH_LIMIT
    with pytest.raises(ConfigError, match="limit query_depth is 200; set it to 128 or less") as got:
        limits_from_settings(["query_depth=200"])
    assert got.value.key == "query_depth"


def test_a_misspelt_limit_gets_a_suggestion():
    with pytest.raises(ConfigError, match="unknown limit 'timeout'") as caught:
        limits_from_settings(["timeout=3"])
    assert "timeout_s" in caught.value.suggestions
    assert "query_depth" in caught.value.message


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("timeout_s", "limit 'timeout_s' is not of the form name=value, such as timeout_s=5"),
        ("top_k=many", "limit top_k is a whole number, not 'many'"),
        ("top_k=2.5", "limit top_k is a whole number, not '2.5'"),
        ("timeout_s=soon", "limit timeout_s is a number, not 'soon'"),
        ("timeout_s=nan", "limit timeout_s is nan; a limit is a positive number"),
        ("timeout_s=inf", "limit timeout_s is inf; a limit is a positive number"),
    ],
)
def test_settings_that_are_not_numbers_are_refused(setting, told):
    with pytest.raises(ConfigError, match=f"^{re.escape(told)}$") as caught:
        limits_from_settings([setting])
    assert caught.value.key == setting.partition("=")[0]
