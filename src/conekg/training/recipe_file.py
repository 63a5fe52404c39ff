"""Recipes as text: reads and writes TOML.

Keys and types are checked against the dataclasses, so a misspelt key or a value of the wrong
type is refused here, with a suggestion, before any work starts.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from conekg.errors import ConfigError
from conekg.model.catalog import find_model
from conekg.model.config import as_float, check_keys, config_from_table
from conekg.query.parse import parse_shape
from conekg.training.recipe import Pool, Recipe, TrainingRecipe

Table = dict[str, Any]
"""A table of TOML."""


def recipe_to_table(recipe: Recipe) -> Table:
    """The recipe as nested dictionaries of plain values, as in TOML and JSON; None is left out."""
    training = _plain(recipe.training)
    training["pools"] = {pool.name: dict(pool.shares) for pool in recipe.training.pools}
    return {
        "recipe": recipe.name,
        "model": {"name": recipe.model} | _plain(recipe.config),
        "training": training,
    }


def recipe_from_table(table: Mapping[str, Any]) -> Recipe:
    """The recipe of a table as `recipe_to_table` makes it; `ConfigError` for a wrong key or value.

    Keys that are left out have their default values.
    """
    model = dict(require_table(table.get("model", {}), "model"))
    name = _require_text(model.pop("name", "cone"), "model.name")
    _refuse_bare_keys(table, name)
    check_keys(table, ("recipe", "model", "training"), "", "a recipe")
    training = dict(require_table(table.get("training", {}), "training"))
    pools = training.pop("pools", None)
    if pools is not None:
        training["pools"] = _pools(pools)
    return Recipe(
        name=_require_text(table.get("recipe", "custom"), "recipe"),
        model=name,
        config=config_from_table(find_model(name).config, model, "model"),
        training=config_from_table(TrainingRecipe, training, "training"),
    )


def _refuse_bare_keys(table: Mapping[str, Any], model: str) -> None:
    """Raise `ConfigError` for a key that lacks its part: `steps` instead of `training.steps`."""
    for part, kind in (("training", TrainingRecipe), ("model", find_model(model).config)):
        for field in dataclasses.fields(kind):
            if field.name in table:
                raise ConfigError(
                    f"unknown key {field.name!r}; it belongs to {part}",
                    key=field.name,
                    suggestions=(f"{part}.{field.name}",),
                )


def dump_recipe(recipe: Recipe) -> str:
    """The recipe as TOML text."""
    lines: list[str] = []
    _write_table(recipe_to_table(recipe), (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def parse_recipe(text: str, source: str = "recipe") -> Recipe:
    """The recipe in a TOML text; `source` names the text in errors.

    Shapes have the names that query sets use now: one that has been given a name since the text was
    written is spelled out there.
    """
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source} is not TOML: {error}") from error
    try:
        return with_shape_names(recipe_from_table(table))
    except ConfigError as error:
        raise ConfigError(
            f"{source}: {error.message}", key=error.key, suggestions=error.suggestions
        ) from error


def with_shape_names(recipe: Recipe, unchanged: Collection[Pool] = ()) -> Recipe:
    """The recipe with each shape of its pools under the name that query sets use.

    Pools in `unchanged` are not changed. Raises `ConfigError` for text that is no shape.
    """
    training = recipe.training
    pools = tuple(pool if pool in unchanged else _pool_by_names(pool) for pool in training.pools)
    return dataclasses.replace(recipe, training=dataclasses.replace(training, pools=pools))


def _pool_by_names(pool: Pool) -> Pool:
    shares: dict[str, float] = {}
    for written, share in pool.shares:
        key = f"training.pools.{pool.name}.{written}"
        try:
            name = parse_shape(written).name
        except ConfigError as error:
            raise ConfigError(
                f"training.pools.{pool.name}: {error.message}",
                key=key,
                suggestions=error.suggestions,
            ) from error
        if name in shares:
            raise ConfigError(
                f"training.pools.{pool.name}: {written!r} is the shape {name}, which the pool has "
                "already; give it one share",
                key=key,
            )
        shares[name] = share
    return Pool(pool.name, tuple(shares.items()))


def _plain(value: Any) -> Table:
    """The fields of a dataclass as TOML values; unset ones are left out."""
    table: Table = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item is not None:
            table[field.name] = list(item) if isinstance(item, tuple) else item
    return table


def _pools(table: Any) -> tuple[Pool, ...]:
    pools = []
    for name, shares in require_table(table, "training.pools").items():
        where = f"training.pools.{name}"
        for shape, share in require_table(shares, where).items():
            if isinstance(share, bool) or not isinstance(share, int | float):
                key = f"{where}.{shape}"
                raise ConfigError(f"{key} = {share!r}: a share is a number", key=key)
        pools.append(Pool(name, tuple((shape, as_float(s)) for shape, s in shares.items())))
    return tuple(pools)


def require_table(value: Any, key: str) -> Mapping[str, Any]:
    """The value, which must be a table; `ConfigError` naming its `key` otherwise."""
    if not isinstance(value, Mapping):
        is_name = key == "model" and isinstance(value, str)
        other = f"; the model is chosen by --model {value}" if is_name else ""
        raise ConfigError(f"{key} = {value!r}: a table of keys is needed{other}", key=key)
    return value


def _require_text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{key} = {value!r}: text is needed", key=key)
    return value


def _write_table(table: Table, path: tuple[str, ...], lines: list[str]) -> None:
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if path and values:
        lines.extend(("", f"[{'.'.join(path)}]"))
    lines.extend(f"{_key(key)} = {_value(value)}" for key, value in values.items())
    for key, value in table.items():
        if isinstance(value, dict):
            _write_table(value, (*path, _key(key)), lines)


def _key(key: str) -> str:
    bare = key.replace("-", "").replace("_", "")
    return key if bare.isalnum() and bare.isascii() else _value(key)


def _value(value: Any) -> str:
    """A string, number, boolean or list as TOML, which is JSON with two differences in text.

    TOML has no surrogate escapes, and the delete character must be escaped.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
