"""`conekg calibrate`: probabilities and numbers of answers for a run that was only trained."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from conekg.cli.console import JsonOption, print_json
from conekg.cli.evaluate import RunArgument
from conekg.cli.training_report import tell_calibration


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
                "estimated_count_factor": None if count is None else count.factor,
                "weights": calibration.weights,
            }
        )
    else:
        tell_calibration(calibration)
