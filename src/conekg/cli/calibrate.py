"""`conekg calibrate`: fit probabilities and estimated numbers of answers for a trained run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conekg.cli.console import print_json
from conekg.cli.options import CheckpointOption, JsonOption, RunArgument
from conekg.cli.training_report import printed_events, report_calibration
from conekg.query.shape import STRUCTURES

if TYPE_CHECKING:
    from conekg.answering.calibration import Calibration


def calibrate(
    run: RunArgument,
    which: CheckpointOption = "best",
    as_json: JsonOption = False,
) -> None:
    """Fit a run's probabilities and estimated numbers of answers on its validation queries.

    `conekg fit` has already done so; a run from `conekg train` answers without
    probabilities until it is calibrated. Each checkpoint has its own calibration.
    """
    from conekg.answering.stages import calibrate_run
    from conekg.training.run import open_run

    with printed_events() as events:
        calibration = calibrate_run(open_run(run), which=which, events=events)
    if as_json:
        count = calibration.count
        print_json(
            {
                "queries": calibration.num_queries,
                "error": calibration.error,
                "general_error": calibration.predicted.error,
                "estimated_count_factor": None if count is None else count.factor,
                "weights": calibration.weights,
                "shapes": _by_shape(calibration),
            }
        )
    else:
        report_calibration(calibration)


def _by_shape(calibration: Calibration) -> dict[str, dict[str, float | None]]:
    """The calibration errors of the shapes that have curves of their own, by the shape's name.

    A calibration stores shapes as outlines of their regions. A shape without a name keeps its
    outline as its key.
    """
    from conekg.answering.calibration import joined, outlines
    from conekg.query.branches import DEFAULT_BRANCH_CAP

    names = {
        joined(outlines(shape, "dnf", DEFAULT_BRANCH_CAP)): name
        for name, shape in STRUCTURES.items()
    }
    errors = {
        names.get(regions, regions): _errors_of(calibration, regions)
        for regions in {*calibration.predicted_of, *calibration.count_of}
    }
    return dict(sorted(errors.items()))


def _errors_of(calibration: Calibration, regions: str) -> dict[str, float | None]:
    """The errors of the curves for such regions; None for a curve that was not fitted."""
    scores, sizes = calibration.predicted_of.get(regions), calibration.count_of.get(regions)
    return {
        "error": None if scores is None else scores.error,
        "estimated_count_factor": None if sizes is None else sizes.factor,
    }
