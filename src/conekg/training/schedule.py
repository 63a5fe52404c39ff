"""The learning rate of each step: divided at fixed fractions of the run, or falling evenly."""

from __future__ import annotations

from conekg.training.recipe import TrainingRecipe


def drop_steps(recipe: TrainingRecipe) -> tuple[int, ...]:
    """The steps that start with a lower learning rate than the one before, rounded down."""
    # 0.29 of 100 steps is 29, though the product of floats is a little less.
    return tuple(int(round(recipe.steps * fraction, 6)) for fraction in recipe.drops_at)


def learning_rate_at(recipe: TrainingRecipe, step: int) -> float:
    """The learning rate of a step; the first step is 0."""
    if recipe.decay == "linear":
        return recipe.learning_rate * (recipe.steps - step) / recipe.steps
    drops = sum(step >= drop for drop in drop_steps(recipe))
    return float(recipe.learning_rate / recipe.drop_factor**drops)


def forgets_moments_at(recipe: TrainingRecipe, step: int) -> bool:
    """Whether Adam starts afresh before this step.

    Every published drop builds a new optimizer; doing so twice at one step changes nothing,
    so a run resumed exactly there equals the unbroken one.
    """
    return recipe.fresh_moments and step in drop_steps(recipe)
