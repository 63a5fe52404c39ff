"""Changes of recipes: by a configuration file, and by `key=value` settings.

A change that would have no effect is refused, as are wrong keys and values, before any work starts.
"""

from __future__ import annotations

import copy
import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from conekg.errors import ConfigError
from conekg.model.catalog import find_model
from conekg.model.support import check_supported
from conekg.query.parse import parse_shape
from conekg.query.relax import near_miss_query
from conekg.training.batches import check_trainable
from conekg.training.recipe import Recipe, TrainingRecipe
from conekg.training.recipe_file import (
    Table,
    recipe_from_table,
    recipe_to_table,
    require_table,
    with_shape_names,
)

_SHARED_LOSS_SETTINGS = (
    "positives",
    "negatives",
    "negative_sampling",
    "shared_negatives",
    "near_misses",
    "adversarial_temperature",
    "answer_discount",
    "query_times",
    "compile_operators",
)
"""Settings that, like the pools, are ignored by models with a loss of their own."""
_DROP_SETTINGS = ("drop_factor", "fresh_moments")
"""Settings that have an effect only if the learning rate drops."""
_ADDED_LATER = frozenset(
    {
        "model.projection",
        "model.turned_share",
        "training.positives",
        "training.shared_negatives",
        "training.near_misses",
        "training.answer_discount",
        "training.decay",
    }
)
"""Settings that recipes of earlier versions lack. The default of each is the behaviour from before
it existed, so runs of those versions can still be opened. A new setting belongs here only if that
holds for it."""


def read_config(path: Path) -> Table:
    """The keys of a TOML file that changes some values of a recipe, as nested dictionaries."""
    try:
        # Some editors write a byte order mark, which "utf-8-sig" skips.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def change_recipe(recipe: Recipe, changes: Mapping[str, Any], settings: Iterable[str]) -> Recipe:
    """The recipe with a configuration table merged in, then `key=value` settings, in order.

    A pool in `changes` replaces the pool of that name; other tables are merged. If `changes` has
    the key `recipe`, as the `recipe.toml` of a run has, it must be a whole recipe, which replaces
    `recipe`.
    """
    if "recipe" in changes:
        recipe, changes = _whole_recipe(recipe, changes), {}
    table = _merged(recipe_to_table(recipe), changes, ())
    chosen, set_pools = _training_keys(changes), list[str]()
    for setting in settings:
        keys, value = _parse_setting(setting)
        if keys == ["recipe"]:
            raise ConfigError(
                f"--set {setting!r} would change the recipe's name alone; --recipe chooses another",
                key="recipe",
            )
        if isinstance(value, dict) and keys in (["model"], ["training"]):
            raise ConfigError(
                f"--set {setting!r} would replace all of {keys[0]}, not only the keys in it; set "
                f"one key at a time, as in --set {keys[0]}.KEY=VALUE",
                key=keys[0],
            )
        if value == "none" and ".".join(keys) in _may_be_none(recipe.model):
            value = None
        _assign(table, keys, value)
        chosen += keys[1:2] if keys[:1] == ["training"] else []
        set_pools += keys[2:3] if keys[:2] == ["training", "pools"] else []
    _refuse_another_model(recipe, table)
    changed = with_shape_names(recipe_from_table(table), unchanged=recipe.training.pools)
    _refuse_changes_without_effect(recipe, changed)
    _refuse_unused_drop_settings(recipe.training, changed.training, chosen)
    if "cycle" not in chosen:  # whoever chooses the cycle may leave pools of a file unused
        set_pools += _pools_in(changes)
    _refuse_unused_pools(changed.training, set_pools)
    shapes = [parse_shape(name) for name in changed.training.trained_shapes()]
    for shape in shapes:
        check_trainable(shape)
    check_supported(find_model(changed.model).model, shapes)
    return changed


def _whole_recipe(like: Recipe, table: Mapping[str, Any]) -> Recipe:
    """The recipe of a table that must hold a whole recipe; `ConfigError` if a key is missing.

    Nothing is merged with `like`, whose keys are the required ones: a key that may be missing
    means that its value is None. Keys in `_ADDED_LATER` may be missing too.
    """
    _refuse_another_model(like, table)
    missing = [
        f"{part}.{key}"
        for part in ("model", "training")
        for key in recipe_to_table(like)[part]
        if key not in require_table(table.get(part, {}), part)
    ]
    missing = [key for key in missing if key not in _may_be_none(like.model) | _ADDED_LATER]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ConfigError(
            f"recipe = {table['recipe']!r}: a configuration that names its recipe must be a whole "
            f"recipe, and this one lacks {', '.join(missing[:3])}{more}; leave out `recipe` to "
            "change only the keys it has (--recipe chooses the recipe to change), or add the "
            "missing keys",
            key=missing[0],
        )
    return with_shape_names(recipe_from_table(table))


def _training_keys(changes: Mapping[str, Any]) -> list[str]:
    """The keys of `training` that a table sets."""
    training = changes.get("training")
    return list(training) if isinstance(training, Mapping) else []


def _pools_in(changes: Mapping[str, Any]) -> list[str]:
    """The names of the pools that a table sets."""
    training = changes.get("training")
    pools = training.get("pools") if isinstance(training, Mapping) else None
    return list(pools) if isinstance(pools, Mapping) else []


def _refuse_unused_drop_settings(
    before: TrainingRecipe, after: TrainingRecipe, chosen: Iterable[str]
) -> None:
    """Raise `ConfigError` if a setting of the drops was changed and the learning rate never drops.

    `chosen` are the keys of `training` that the user set.
    """
    for name in _DROP_SETTINGS:
        value = getattr(after, name)
        if name in chosen and value != getattr(before, name) and not after.drops_at:
            key = f"training.{name}"
            raise ConfigError(
                f"{key} = {value!r} would change nothing: the learning rate never drops, as "
                f"training.drops_at is empty (training.decay = {after.decay!r})",
                key=key,
            )


def _refuse_unused_pools(training: TrainingRecipe, names: Iterable[str]) -> None:
    """Raise `ConfigError` for one of these pools, which were changed, that is not in the cycle.

    Pools that came with a recipe may be unused.
    """
    existing = {pool.name for pool in training.pools}
    for name in names:
        if name in existing and name not in training.cycle:
            key = f"training.pools.{name}"
            raise ConfigError(
                f"{key} would change nothing: training.cycle, {list(training.cycle)}, has no "
                f"{name!r}; name it there, as in training.cycle = {[*training.cycle, name]}",
                key=key,
            )


def _refuse_another_model(recipe: Recipe, table: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if a table names another model than that of the recipe."""
    model = table.get("model")
    name = model.get("name", recipe.model) if isinstance(model, Mapping) else recipe.model
    if name != recipe.model:
        find_model(str(name))
        raise ConfigError(
            f"model.name = {name!r}: the recipe is one of model {recipe.model!r}; choose the other "
            f"by --model {name}",
            key="model.name",
        )


def _refuse_changes_without_effect(before: Recipe, after: Recipe) -> None:
    """Raise `ConfigError` for a change of examples that this recipe never draws.

    Near misses need a shape with a negated part; models with a loss of their own draw their own
    examples.
    """
    near_misses, shapes = after.training.near_misses, after.training.trained_shapes()
    if near_misses > before.training.near_misses and not any(map(_has_near_misses, shapes)):
        raise ConfigError(
            f"training.near_misses = {near_misses!r} would change nothing: of the shapes trained "
            f"on, {', '.join(shapes)}, none is an intersection with a negated part",
            key="training.near_misses",
        )
    if not find_model(after.model).model.has_own_loss:
        return
    idle = {
        f"training.{name}": getattr(after.training, name)
        for name in _SHARED_LOSS_SETTINGS
        if getattr(after.training, name) != getattr(before.training, name)
    } | {
        f"training.pools.{pool.name}": dict(pool.shares)
        for pool in after.training.pools
        if pool not in before.training.pools
    }
    if idle:
        key, value = next(iter(idle.items()))
        raise ConfigError(
            f"{key} = {value!r} would change nothing: {after.model} is trained by a loss of its "
            "own, on examples that it draws itself; leave it out (training.batch_size says how "
            "many an update has, training.cycle how many updates a step)",
            key=key,
        )


def _has_near_misses(shape_name: str) -> bool:
    """Whether queries of that shape can have near misses."""
    return near_miss_query(parse_shape(shape_name).template) is not None


def _parse_setting(setting: str) -> tuple[list[str], Any]:
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            f"--set {setting!r} is not key=value; for example: --set training.steps=1000"
        )
    try:  # any other text is a string: TOML's quotes would have to be quoted again in a shell
        ((_, value),) = tomllib.loads(f"value = {text.strip()}").items()
    except (ValueError, RecursionError):
        value = text.strip()
    return _keys_of(key), value


def _keys_of(key: str) -> list[str]:
    """The parts of a dotted key of TOML; a part that contains dots must be in quotes."""
    try:
        inner: Any = tomllib.loads(f"{key} = 0")
        keys = []
        while isinstance(inner, dict):
            ((name, inner),) = inner.items()
            keys.append(name)
    except ValueError:  # not a TOML key: refused later, with the list of known keys
        return key.strip().split(".")
    return keys


def _assign(table: Table, keys: list[str], value: Any) -> None:
    *folders, last = keys
    for depth, folder in enumerate(folders):
        inner: Any = table.setdefault(folder, {})
        if not isinstance(inner, dict):
            where = ".".join(keys[: depth + 1])
            raise ConfigError(f"{'.'.join(keys)}: {where} is a value and has no keys", key=where)
        table = inner
    if value is None:
        table.pop(last, None)  # TOML has no null: leaving out the key means None
    else:
        table[last] = value


def _may_be_none(model: str) -> frozenset[str]:
    """The keys of a model's recipes whose value may be None."""
    parts: dict[str, type[Any]] = {
        "training": TrainingRecipe,
        "model": find_model(model).config,
    }
    return frozenset(
        f"{part}.{field.name}"
        for part, kind in parts.items()
        for field in dataclasses.fields(kind)
        if field.default is None
    )


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any], path: tuple[str, ...]) -> Table:
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        replaces = len(path) >= 2  # each table below training.pools is one value
        if isinstance(old, dict) and isinstance(value, Mapping) and not replaces:
            result[key] = _merged(old, value, (*path, key))
        else:
            result[key] = copy.deepcopy(value)  # settings must not change the caller's table
    return result
