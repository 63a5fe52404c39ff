"""The learning rate of each step: divided at fixed fractions of the run, or falling linearly."""

from __future__ import annotations

from conekg.training.recipe import TrainingRecipe


def drop_steps(recipe: TrainingRecipe) -> tuple[int, ...]:
    """The steps that start with a lower learning rate than the step before, rounded down."""
    # Rounded first: 0.29 of 100 steps is 29, but the product of the floats is a little less.
    return tuple(int(round(recipe.steps * fraction, 6)) for fraction in recipe.drops_at)


def learning_rate_at(recipe: TrainingRecipe, step: int) -> float:
    """The learning rate of a step, counted from 0."""
    if recipe.decay == "linear":
        return recipe.learning_rate * (recipe.steps - step) / recipe.steps
    drops = sum(step >= drop for drop in drop_steps(recipe))
    return float(recipe.learning_rate / recipe.drop_factor**drops)


def forgets_moments_at(recipe: TrainingRecipe, step: int) -> bool:
    """Whether Adam's moments are reset before this step.

    The published code creates a new optimizer at every drop. Resetting twice before the same step
    changes nothing, so a run that is resumed exactly there equals one that was never stopped.
    """
    return recipe.fresh_moments and step in drop_steps(recipe)
