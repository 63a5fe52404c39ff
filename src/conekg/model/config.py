"""Model configurations: range checks shared by all, and reading one from a mapping.

Each model's configuration is a frozen dataclass beside the model. This module turns what
a recipe or a command line says into one, refusing what it does not know.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from conekg.errors import ConfigError


class ModelConfig(Protocol):
    """What every model configuration has: it is a dataclass with a dimension."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def dim(self) -> int:
        """d, the number of dimensions of a region."""
        ...


Config = TypeVar("Config", bound=ModelConfig)


def require(condition: bool, key: str, value: object, accepted: str) -> None:
    """Raise ConfigError unless the condition holds."""
    if not condition:
        raise ConfigError(f"{key} = {value!r} is out of range; it must be {accepted}", key=key)


def require_dimensions(dim: int, hidden: int | None = None) -> None:
    """Raise ConfigError unless the sizes are positive."""
    require(dim >= 1, "dim", dim, "at least 1")
    if hidden is not None:
        require(hidden >= 1, "hidden", hidden, "at least 1")


def read_config(kind: type[Config], values: Mapping[str, object]) -> Config:
    """A configuration from a mapping; unknown keys and wrong types raise ConfigError."""
    types = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        if key not in names:
            raise ConfigError(
                f"unknown option {key!r} of {kind.__name__}; it has {', '.join(names)}",
                key=key,
                suggestions=tuple(difflib.get_close_matches(key, names, n=1)),
            )
        arguments[key] = _convert(key, value, types[key])
    return kind(**arguments)


def _convert(key: str, value: object, expected: type) -> object:
    """`value` as the expected type; an integer is accepted where a number is."""
    if get_origin(expected) is Literal:
        accepted = get_args(expected)
        if value not in accepted:
            raise ConfigError(
                f"{key} = {value!r} is not one of {', '.join(map(repr, accepted))}",
                key=key,
                suggestions=tuple(
                    difflib.get_close_matches(str(value), [str(a) for a in accepted], n=1)
                ),
            )
        return value
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # bool is a subclass of int: `dim = true` must not mean `dim = 1`.
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ConfigError(
            f"{key} = {value!r} is of type {type(value).__name__}; {expected.__name__} is expected",
            key=key,
        )
    return value
