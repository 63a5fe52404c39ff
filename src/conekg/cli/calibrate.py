"""`conekg calibrate`: fit probabilities and estimated numbers of answers for a trained run."""

from __future__ import annotations

from conekg.cli.console import print_json
from conekg.cli.options import CheckpointOption, JsonOption, RunArgument
from conekg.cli.run_json import calibration_facts
from conekg.cli.training_report import printed_events, report_calibration


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
        print_json(calibration_facts(calibration))
    else:
        report_calibration(calibration)
