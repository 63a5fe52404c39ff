"""Configurations from tables, with options of every type that a user's model may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional

import pytest

from conekg.errors import ConfigError
from conekg.model.cone import ConeConfig
from conekg.model.config import config_from_table


@dataclass(frozen=True)
class Options:
    """One option of each type."""

    dim: int = 8
    width: int | None = None
    rate: Optional[float] = None  # noqa: UP045  (the older notation, still in use)
    act: Literal["relu", "gelu"] | None = None
    norm: int | str = 2
    sizes: tuple[float, ...] = ()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("width", 3, 3),
        ("rate", 2, 2.0),
        ("rate", 0.25, 0.25),
        ("act", "gelu", "gelu"),
        ("norm", 1, 1),
        ("norm", "max", "max"),
        ("sizes", [1, 0.5], (1.0, 0.5)),
    ],
)
def test_a_value_of_an_accepted_type_is_taken(key: str, value: object, expected: object) -> None:
    found = getattr(config_from_table(Options, {key: value}, "model"), key)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("width", "wide", "a whole number is needed"),
        ("width", 1.5, "a whole number is needed"),
        ("rate", True, "a number is needed"),
        ("act", "tanh", "choose relu or gelu"),
        ("norm", 1.5, "text is needed"),
        ("sizes", 3, "a list is needed"),
        ("sizes", ["a"], "a number is needed"),
        pytest.param("rate", 10**400, "a finite number is needed", id="beyond floats"),
    ],
)
def test_a_value_of_another_type_is_refused(key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        config_from_table(Options, {key: value}, "model")
    assert caught.value.key == f"model.{key}"


def test_a_choice_is_checked_however_a_configuration_is_made() -> None:
    with pytest.raises(ConfigError) as caught:
        ConeConfig(arctangent="exakt")  # type: ignore[arg-type]
    accepted = "it must be 'exact' or 'published'"
    assert str(caught.value) == f"arctangent = 'exakt' is not accepted: {accepted}"
    assert caught.value.key == "arctangent"
