"""The catalogue of all experiments, by name."""

from __future__ import annotations

from conekg.errors import unknown_choice
from conekg.experiments.cardinality import CARDINALITY
from conekg.experiments.dimensions import DIMENSIONS
from conekg.experiments.empty_intersection import EMPTY_INTERSECTION
from conekg.experiments.emql import EMQL
from conekg.experiments.experiment import Experiment
from conekg.experiments.figures import FIGURES
from conekg.experiments.main_results import MAIN_EPFO, MAIN_NEGATION
from conekg.experiments.membership import MEMBERSHIP
from conekg.experiments.operators import OPERATORS
from conekg.experiments.seeds import SEEDS
from conekg.experiments.speed import SPEED
from conekg.experiments.union import UNION
from conekg.experiments.variability import VARIABILITY

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        MAIN_EPFO,
        MAIN_NEGATION,
        CARDINALITY,
        OPERATORS,
        EMPTY_INTERSECTION,
        DIMENSIONS,
        UNION,
        EMQL,
        SEEDS,
        VARIABILITY,
        MEMBERSHIP,
        SPEED,
        FIGURES,
    )
}
"""Every experiment by name, in the paper's order."""


def find_experiment(name: str) -> Experiment:
    """The experiment of that name; ConfigError with a suggestion if there is none."""
    experiment = EXPERIMENTS.get(name)
    if experiment is None:
        raise unknown_choice("experiment", name, EXPERIMENTS)
    return experiment
