from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError
from conekg.model.gqe import GqeConfig
from conekg.training.recipe import OTHER_POOL, PATH_POOL, Pool, TrainingRecipe


def test_compositions_of_the_published_pools():
    assert PATH_POOL.composition(512) == {"1p": 171, "2p": 171, "3p": 170}
    assert OTHER_POOL.composition(500) == {
        "2i": 200, "3i": 200, "2in": 20, "3in": 20, "inp": 20, "pin": 20, "pni": 20,
    }  # fmt: skip
    counts = OTHER_POOL.composition(512)
    assert counts["2i"] == counts["3i"] == 205
    assert {counts[name] for name in ("2in", "3in", "inp", "pin", "pni")} == {20, 21}


def test_the_rest_of_a_batch_goes_to_the_largest_remainder():
    assert Pool("p", (("1p", 1.0), ("2p", 2.0))).composition(4) == {"1p": 1, "2p": 3}
    assert Pool("p", (("1p", 2.0), ("2p", 1.0))).composition(4) == {"1p": 3, "2p": 1}
    assert Pool("p", (("1p", 1.0), ("2p", 1.0))).composition(5) == {"1p": 3, "2p": 2}


def test_a_batch_smaller_than_its_pool_is_refused():
    assert set(PATH_POOL.composition(3).values()) == {1}
    with pytest.raises(ConfigError, match="batch_size = 2 is less than the 3 shapes") as caught:
        PATH_POOL.composition(2)
    assert "raise it, or take shapes out of the pool" in caught.value.message
    assert caught.value.key == "training.batch_size"


@given(
    shares=st.lists(st.floats(0.001, 1000), min_size=1, max_size=12),
    extra=st.integers(0, 600),
)
def test_a_composition_fills_the_batch_and_has_every_shape(shares, extra):
    pool = Pool("p", tuple((f"s{i}", share) for i, share in enumerate(shares)))
    size = len(shares) + extra
    counts = pool.composition(size)
    assert sum(counts.values()) == size
    assert min(counts.values()) >= 1
    assert list(counts) == list(pool.shapes)


@given(shares=st.lists(st.floats(1, 3), min_size=2, max_size=6))
def test_shares_are_kept_to_within_one_query(shares):
    pool = Pool("p", tuple((f"s{i}", share) for i, share in enumerate(shares)))
    for share, count in zip(shares, pool.composition(600).values(), strict=True):
        assert abs(count - 600 * share / sum(shares)) < 1.0 + 1e-6


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"steps": 0}, "training.steps"),
        ({"batch_size": 2}, "training.batch_size"),
        ({"positives": 0}, "training.positives"),
        ({"near_misses": -0.1}, "training.near_misses"),
        ({"near_misses": 1.5}, "training.near_misses"),
        ({"negatives": 0}, "training.negatives"),
        ({"adversarial_temperature": -0.5}, "training.adversarial_temperature"),
        ({"answer_discount": -0.1}, "training.answer_discount"),
        ({"answer_discount": 1.5}, "training.answer_discount"),
        ({"log_every": 0}, "training.log_every"),
        ({"checkpoint_every": 0}, "training.checkpoint_every"),
        ({"negative_sampling": "uniform"}, "training.negative_sampling"),
        ({"decay": "evenly"}, "training.decay"),
        ({"idle_weights": "sleep"}, "training.idle_weights"),
        ({"precision": "float16"}, "training.precision"),
        ({"learning_rate": 0.0}, "training.learning_rate"),
        ({"learning_rate": 1.5}, "training.learning_rate"),
        ({"drops_at": (0.75, 0.5)}, "training.drops_at"),
        ({"drops_at": (1.0,)}, "training.drops_at"),
        ({"decay": "linear", "drops_at": (0.5,)}, "training.drops_at"),
        ({"drop_factor": 0.5}, "training.drop_factor"),
        ({"drop_factor": 1e300}, "training.drop_factor"),
        ({"batch_size": 10**22}, "training.batch_size"),
        ({"positives": 10**22}, "training.positives"),
        ({"negatives": 10**18}, "training.negatives"),
        ({"query_times": 10**22}, "training.query_times"),
        ({"cycle": ()}, "training.cycle"),
        ({"cycle": ("path", "others")}, "training.cycle"),
        ({"pools": (PATH_POOL, PATH_POOL)}, "training.pools"),
        ({"seed": -1}, "training.seed"),
        ({"validate_every": 0}, "training.validate_every"),
        ({"query_times": 0}, "training.query_times"),
        ({"validate_queries": 0}, "training.validate_queries"),
    ],
)
def test_values_out_of_range_are_refused_by_name(change, key):
    with pytest.raises(ConfigError) as error:
        replace(TrainingRecipe(steps=10), **change)
    assert error.value.key == key


def test_models_and_recipes_refuse_values_with_the_same_wording():
    with pytest.raises(ConfigError) as error:
        TrainingRecipe(steps=0)
    words = "is not accepted: it must be"
    assert str(error.value) == f"training.steps = 0 {words} a whole number above 0"
    with pytest.raises(ConfigError) as error:
        GqeConfig(gamma=0.0)
    assert str(error.value) == f"gamma = 0.0 {words} a positive number, a million at most"


def test_a_batch_may_be_smaller_than_a_pool_that_is_not_in_the_cycle():
    assert TrainingRecipe(steps=1, batch_size=3, cycle=("path",)).batch_size == 3
    with pytest.raises(ConfigError, match="less than the 7 shapes of pool 'other'"):
        TrainingRecipe(steps=1, batch_size=3)


def test_pools_need_positive_shares():
    with pytest.raises(ConfigError, match="positive"):
        Pool("p", (("1p", 0.0),))
    with pytest.raises(ConfigError, match="empty"):
        Pool("p", ())


def test_restriction_drops_shapes_then_pools_then_updates():
    recipe = TrainingRecipe(steps=10)
    assert recipe.trained_shapes()[:4] == ("1p", "2p", "3p", "2i")
    only_paths = recipe.restricted_to(frozenset({"1p", "3p"}))
    assert only_paths.cycle == ("path", "path")
    assert only_paths.trained_shapes() == ("1p", "3p")
    with pytest.raises(ConfigError, match="4p"):
        recipe.restricted_to(frozenset({"4p"}))
