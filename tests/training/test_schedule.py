from dataclasses import replace

import pytest

from conekg.training.recipe import TrainingRecipe
from conekg.training.schedule import drop_steps, forgets_moments_at, learning_rate_at


def test_the_published_schedule_drops_twice_by_five():
    recipe = TrainingRecipe(steps=300_001, learning_rate=1e-4)
    assert drop_steps(recipe) == (150_000, 225_000)
    rates = [learning_rate_at(recipe, step) for step in (0, 149_999, 150_000, 225_000, 300_000)]
    assert rates == [1e-4, 1e-4, 1e-4 / 5, 1e-4 / 25, 1e-4 / 25]
    assert [s for s in (0, 149_999, 150_000, 225_000) if forgets_moments_at(recipe, s)] == [
        150_000,
        225_000,
    ]


def test_fractions_of_a_run_are_the_decimal_ones():
    fractions = tuple(percent / 100 for percent in range(1, 100))
    recipe = TrainingRecipe(steps=100, drops_at=fractions)
    assert drop_steps(recipe) == tuple(range(1, 100)), "100 * 0.29 is 28.999999999999996"
    assert drop_steps(replace(recipe, steps=700, drops_at=(0.6, 0.8, 0.9))) == (420, 560, 630)
    assert drop_steps(replace(recipe, steps=7, drops_at=(0.5, 0.9999))) == (3, 6)


def test_moments_can_be_kept_and_drops_left_out():
    recipe = TrainingRecipe(steps=100, learning_rate=1e-4, fresh_moments=False)
    assert not any(forgets_moments_at(recipe, step) for step in range(100))
    constant = replace(recipe, drops_at=())
    assert {learning_rate_at(constant, step) for step in range(100)} == {1e-4}


def test_a_linear_decay_reaches_zero_after_the_last_step():
    recipe = TrainingRecipe(steps=4, learning_rate=1e-4, decay="linear", drops_at=())
    rates = [learning_rate_at(recipe, step) for step in range(4)]
    assert rates == pytest.approx([1e-4, 0.75e-4, 0.5e-4, 0.25e-4])
    assert not any(forgets_moments_at(recipe, step) for step in range(4))
