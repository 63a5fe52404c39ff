"""`conekg calibrate`: probabilities and numbers of answers for a run that was only trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from conekg.cli.console import JsonOption, print_json
from conekg.cli.evaluate import RunArgument
from conekg.cli.training_report import tell_calibration

if TYPE_CHECKING:
    from conekg.answering.calibration import Calibration


def calibrate(
    run: RunArgument,
    which: Annotated[
        Literal["best", "last"], typer.Option("--checkpoint", help="Which checkpoint.")
    ] = "best",
    as_json: JsonOption = False,
) -> None:
    """Fit a run's probabilities and numbers of answers on its validation queries.

    `conekg fit` has done so already; a run of `conekg train` answers without probabilities
    until it is calibrated. What was fitted for one checkpoint is not used for another.
    """
    from conekg.answering.fit import calibrate_run
    from conekg.training.run import open_run

    calibration = calibrate_run(open_run(run), which=which)
    if as_json:
        count = calibration.count
        print_json(
            {
                "queries": calibration.num_queries,
                "error": calibration.error,
                "general_error": calibration.predicted.error,
                "estimated_count_factor": None if count is None else count.factor,
                "weights": calibration.weights,
                "shapes": {
                    shape: _of_shape(calibration, shape)
                    for shape in sorted({*calibration.predicted_of, *calibration.count_of})
                },
            }
        )
    else:
        tell_calibration(calibration)


def _of_shape(calibration: Calibration, shape: str) -> dict[str, float | None]:
    """What the curves of one shape are off by; None where it has none of its own."""
    scores, sizes = calibration.predicted_of.get(shape), calibration.count_of.get(shape)
    return {
        "error": None if scores is None else scores.error,
        "estimated_count_factor": None if sizes is None else sizes.factor,
    }
