import tomllib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError
from conekg.model.catalog import MODELS
from conekg.training.recipe import RESERVED, Pool
from conekg.training.recipe_file import dump_recipe, parse_recipe, recipe_from_table
from conekg.training.recipes import DATA_SETS, RECIPES, find_recipe


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_toml(name, model):
    for graph in (*DATA_SETS, "geography"):
        recipe = find_recipe(name, model, graph)
        assert parse_recipe(dump_recipe(recipe)) == recipe


@given(
    rate=st.floats(1e-12, 0.99),
    seed=st.integers(0, 2**63 - 1),
    pool=st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12).filter(
        lambda name: name not in (*RESERVED, "path", "other")
    ),
    validate=st.none() | st.integers(1, 10**9),
)
def test_any_values_survive_toml(rate, seed, pool, validate):
    recipe = find_recipe("paper", "cone")
    training = replace(
        recipe.training,
        learning_rate=rate,
        seed=seed,
        validate_every=validate,
        pools=(*recipe.training.pools, Pool(pool, (("e.r.r.r.r", 1.5),))),
    )
    changed = replace(recipe, training=training)
    assert parse_recipe(dump_recipe(changed)) == changed


def test_a_shape_that_was_spelled_out_has_the_name_it_was_given_since():
    """Query sets use that name: the run of such a recipe could not be resumed or timed."""
    recipe = find_recipe("paper", "cone")
    old = dump_recipe(recipe).replace("\n2p = 1.0\n3p", '\n"e.r.r" = 1.0\n3p')
    assert tomllib.loads(old)["training"]["pools"]["path"] == {"1p": 1, "e.r.r": 1, "3p": 1}
    assert parse_recipe(old) == recipe


def test_a_recipe_without_pools_has_the_published_ones():
    recipe = recipe_from_table({"training": {"steps": 3, "learning_rate": 0.01}})
    assert recipe.training.pools == find_recipe("paper", "cone").training.pools


@pytest.mark.parametrize(
    "text", ["steps = = 3", "steps = " + "9" * 5000, "steps = " + "[" * 5000], ids=len
)
def test_text_that_is_no_toml_is_refused(text):
    with pytest.raises(ConfigError, match="mine is not TOML"):
        parse_recipe(text, "mine")
    with pytest.raises(ConfigError, match="recipe is not TOML"):
        parse_recipe(text)


def test_an_error_in_a_recipe_says_which():
    with pytest.raises(ConfigError, match=r"^my/recipe\.toml: "):
        parse_recipe("", "my/recipe.toml")
