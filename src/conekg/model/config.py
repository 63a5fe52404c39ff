"""Configurations: range checks that models share, and reading a dataclass from a table.

Each model's configuration is a frozen dataclass beside the model. This module builds one
from the tables of a recipe file or of the command line, and refuses unknown keys.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from conekg.errors import ConfigError


class DataclassLike(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


class ModelConfig(DataclassLike, Protocol):
    """What every model configuration has: it is a dataclass with a dimension."""

    @property
    def dim(self) -> int:
        """d, the number of dimensions of a region."""
        ...


LARGEST_SIZE = 1_000_000
"""The largest dimension, width of a network and size of a sketch that is accepted."""

Options = TypeVar("Options", bound=DataclassLike)


def require(condition: bool, key: str, value: object, accepted: str) -> None:
    """Raise ConfigError unless the condition holds."""
    if not condition:
        raise ConfigError(f"{key} = {value!r} is not accepted: it must be {accepted}", key=key)


def require_choice(key: str, value: object, literal: Any) -> None:
    """Raise ConfigError unless the value is one of the choices of a `Literal`."""
    choices = get_args(literal)
    require(value in choices, key, value, " or ".join(map(repr, choices)))


def require_size(key: str, value: int) -> None:
    """Raise ConfigError unless the size is from 1 to a million.

    Larger ones are mistakes: tensors of that size fit no memory, and the largest overflow torch's
    64-bit integers.
    """
    require(1 <= value <= LARGEST_SIZE, key, value, "at least 1, and a million at most")


def require_dimensions(dim: int, hidden: int | None = None) -> None:
    """Raise ConfigError unless a model can have this dimension and this width of its networks."""
    require_size("dim", dim)
    if hidden is not None:
        require_size("hidden", hidden)


def require_margin(gamma: float) -> None:
    """Raise ConfigError unless the margin is positive and small enough for tables in float32."""
    require(0 < gamma <= 1e6, "gamma", gamma, "a positive number, a million at most")


def config_from_table(kind: type[Options], table: Mapping[str, object], where: str = "") -> Options:
    """The dataclass `kind` from a table of its fields; absent fields take their defaults.

    Unknown keys, missing keys without a default and values of the wrong type raise ConfigError,
    whose message calls a key `where.key`.
    """
    prefix = f"{where}." if where else ""
    types = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    check_keys(table, [field.name for field in fields], where, kind.__name__)
    for field in fields:
        has_default = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if field.name not in table and not has_default:
            key = prefix + field.name
            raise ConfigError(f"{key} is missing and has no default", key=key)
    values = {key: _convert(value, types[key], prefix + key) for key, value in table.items()}
    return kind(**values)


def check_keys(table: Mapping[str, object], known: Sequence[str], where: str, what: str) -> None:
    """Raise ConfigError for the first key of the table that is not in `known`.

    The message calls the table `where`, or `what` if `where` is empty.
    """
    prefix = f"{where}." if where else ""
    for key in table:
        if key not in known:
            raise ConfigError(
                f"unknown key {prefix + key!r}; {where or what} has {', '.join(known)}",
                key=prefix + key,
                suggestions=tuple(prefix + name for name in difflib.get_close_matches(key, known)),
            )


def _convert_to_any(value: Any, hints: Sequence[Any], key: str) -> Any:
    """`value` as the first of several annotated types that accepts it."""
    *others, last = hints
    for hint in others:
        with suppress(ConfigError):
            return _convert(value, hint, key)
    return _convert(value, last, key)


def as_float(number: float) -> float:
    """A number as a float; a whole number too large for a float becomes infinity."""
    return math.inf if isinstance(number, int) and number.bit_length() >= 1024 else float(number)


def _convert(value: Any, hint: Any, key: str) -> Any:
    """`value` as the annotated type, without guessing: an int may stand for a float only."""
    origin = get_origin(hint)
    if origin is Literal:
        choices = get_args(hint)
        if value not in choices:
            raise ConfigError(
                f"{key} = {value!r} is not accepted: choose {' or '.join(map(str, choices))}",
                key=key,
                suggestions=tuple(difflib.get_close_matches(str(value), map(str, choices))),
            )
        return value
    if origin in (UnionType, Union):
        return _convert_to_any(value, [c for c in get_args(hint) if c is not NoneType], key)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{key} = {value!r}: a list is needed", key=key)
        return tuple(_convert(item, get_args(hint)[0], key) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = as_float(value)
    # bool is a subclass of int: `dim = true` must not mean `dim = 1`.
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        raise ConfigError(f"{key} = {value!r}: {words.get(hint, hint)} is needed", key=key)
    if hint is float and not math.isfinite(value):
        raise ConfigError(f"{key} = {value!r}: a finite number is needed", key=key)
    return value
