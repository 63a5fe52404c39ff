"""What `fit`, `train` and `calibrate` print with --json: how a training stands, a calibration.

How a training stands is read from the run's folder, so that a script gets the same document whether
the command ended, ran out of time or was interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from conekg.query.shape import STRUCTURES
from conekg.version import VERSION

if TYPE_CHECKING:
    from conekg.answering.calibration import Calibration
    from conekg.training.loop import Outcome
    from conekg.training.run import Run, Which


def training_facts(out: Path, outcome: Outcome | None, continue_with: str) -> dict[str, Any]:
    """How the training of the run in `out` stands, as plain data.

    Without an `outcome` the command was interrupted outside the training steps, perhaps before
    there was a run. `continue_with` is the command that continues an unfinished run.
    """
    from conekg.experiments.experiment import run_facts
    from conekg.training.loop import pick_device
    from conekg.training.run import is_run, open_run

    run = open_run(out) if is_run(out) else None
    last = None if run is None else _checkpoint(run, "last")
    if outcome is not None:
        step, seconds = outcome.step, outcome.seconds
    else:
        step, seconds = (0, 0.0) if last is None else (last["step"], last["seconds"])
    finished = outcome is not None and outcome.finished
    return {
        "conekg": VERSION,
        "folder": str(out),
        "run": None if run is None else run_facts(run, None),
        "device": str(pick_device()),
        "finished": finished,
        "reason": "interrupted" if outcome is None else outcome.reason,
        "step": step,
        "seconds": round(seconds, 3),
        "checkpoints": {
            "best": None if run is None else _checkpoint(run, "best"),
            "last": last,
        },
        "continue_with": None if finished or run is None else continue_with,
    }


def _checkpoint(run: Run, which: Which) -> dict[str, Any] | None:
    """The step and training time of a checkpoint, and what was validated after that step, if any.

    None if there is no such checkpoint yet.
    """
    from conekg.training.checkpoint import checkpoint_seconds, checkpoint_step, has_checkpoint
    from conekg.training.tracking import read_metrics

    folder = run.checkpoint_folder(which)
    if not has_checkpoint(folder):
        return None
    step = checkpoint_step(folder)
    validated = [
        {name: value for name, value in line.items() if name not in ("step", "kind")}
        for line in read_metrics(run.folder)
        if line["kind"] == "valid" and line["step"] == step
    ]
    return {
        "step": step,
        "seconds": round(checkpoint_seconds(folder), 3),
        "validation": validated[-1] if validated else None,
    }


def calibration_facts(calibration: Calibration) -> dict[str, Any]:
    """On how many queries a run was calibrated, and how far off it is, as plain data."""
    count = calibration.count
    return {
        "queries": calibration.num_queries,
        "error": calibration.error,
        "general_error": calibration.predicted.error,
        "estimated_count_factor": None if count is None else count.factor,
        "weights": calibration.weights,
        "shapes": _by_shape(calibration),
    }


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
